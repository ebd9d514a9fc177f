//! The exchange of a damaged mailbox for a rebuilt one, which a kill between any two of its steps does not undo.
//!
//! - The rebuilt file is whole, without a log, and synced before the exchange begins.
//! - A record of the exchange is durable before its first rename and is removed after its last one. While it is there, the
//!   exchange is finished before anything opens the mailbox.
//! - The damaged log leaves before its file: beside the rebuilt file it would be taken for that one's.
//! - Each step is synced before the next one, so that a power loss leaves the steps in their order.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use mailbox::Salvaged;
use model::Timestamp;
use serde::{Deserialize, Serialize};
use sqlite::fault;

use crate::home::{Home, write_durably};

/// Ends the name of the rebuilt file until it is exchanged.
const REBUILT: &str = ".recovering";
/// Ends the name of a damaged file that was set aside; behind it stands the instant, in microseconds.
const ASIDE: &str = ".corrupt-";
/// Ends the name of the record of an exchange under way.
const RECORD: &str = ".exchange";

/// The files of one mesh's mailbox, during a recovery and after it.
pub(super) struct MailboxFiles {
    folder: PathBuf,
    pub(super) mailbox: PathBuf,
}

/// What an exchange will have done, kept on disk while it is under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ExchangeRecord {
    /// What was found, in the store's words.
    pub(super) damage: String,
    /// The name of the damaged file once it is set aside.
    pub(super) aside: String,
    #[serde(with = "salvaged_numbers")]
    pub(super) salvaged: Salvaged,
}

/// A file that could not be moved, written or removed.
#[derive(Debug)]
pub(super) struct FileError {
    pub(super) path: PathBuf,
    pub(super) source: io::Error,
}

impl MailboxFiles {
    pub(super) fn of(home: &Home, slug: &str) -> Self {
        Self { folder: home.mesh(slug), mailbox: home.mailbox(slug) }
    }

    pub(super) fn rebuilt(&self) -> PathBuf {
        with(&self.mailbox, REBUILT)
    }

    fn record(&self) -> PathBuf {
        with(&self.mailbox, RECORD)
    }

    /// The name under which a file that is damaged now is set aside.
    pub(super) fn new_aside(&self, now: Timestamp) -> PathBuf {
        with(&self.mailbox, &format!("{ASIDE}{}", now.as_micros()))
    }

    /// The damaged file that was set aside last.
    pub(super) fn last_aside(&self) -> Result<Option<PathBuf>, FileError> {
        let start = file_name(&with(&self.mailbox, ASIDE));
        let instant = |name: &str| name.strip_prefix(&start)?.parse::<i64>().ok();
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(FileError { path: self.folder.clone(), source }),
        };
        let mut last = None;
        for entry in entries {
            let entry = entry.map_err(|source| FileError { path: self.folder.clone(), source })?;
            last = last.max(entry.file_name().to_str().and_then(instant));
        }
        Ok(last.map(|instant| with(&self.mailbox, &format!("{ASIDE}{instant}"))))
    }

    /// The exchange that is under way.
    pub(super) fn under_way(&self) -> Result<Option<ExchangeRecord>, FileError> {
        let path = self.record();
        let fail = |source| FileError { path: path.clone(), source };
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| fail(error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(fail(source)),
        }
    }

    /// Records the exchange and carries it out.
    pub(super) fn exchange(&self, record: &ExchangeRecord) -> Result<(), FileError> {
        let path = self.record();
        let bytes = serde_json::to_vec(record).expect("texts and numbers are JSON");
        fault::point("recover.record");
        write_durably(&path, &bytes, 0o600).map_err(|source| FileError { path, source })?;
        self.finish(record)
    }

    /// Carries out the steps that are left of a recorded exchange.
    pub(super) fn finish(&self, record: &ExchangeRecord) -> Result<(), FileError> {
        let (aside, rebuilt) = (self.folder.join(&record.aside), self.rebuilt());
        if rebuilt.exists() {
            for part in ["-wal", "-shm"] {
                self.rename(&with(&self.mailbox, part), &with(&aside, part))?;
            }
            // The mailbox's name belongs to the damaged file until that one has its new name.
            if !aside.exists() {
                self.rename(&self.mailbox, &aside)?;
            }
            self.rename(&rebuilt, &self.mailbox)?;
        }
        self.remove(&self.record())
    }

    /// Brings the log of the damaged file `aside` beside it: a recovery of an earlier version may have been killed before
    /// it had set the log aside too.
    pub(super) fn reunite(&self, aside: &Path) -> Result<(), FileError> {
        for part in ["-wal", "-shm"] {
            if !with(aside, part).exists() {
                self.rename(&with(&self.mailbox, part), &with(aside, part))?;
            }
        }
        Ok(())
    }

    /// Removes a rebuilt file that was never exchanged.
    pub(super) fn remove_rebuilt(&self) -> Result<(), FileError> {
        for part in ["", "-wal", "-shm", "-lock"] {
            self.remove(&with(&self.rebuilt(), part))?;
        }
        Ok(())
    }

    /// Makes the rebuilt file durable and whole in itself; it is closed. A log that its close left holds rows.
    pub(super) fn seal_rebuilt(&self) -> Result<(), FileError> {
        let path = self.rebuilt();
        let log = with(&path, "-wal");
        if fs::metadata(&log).is_ok_and(|found| found.len() > 0) {
            let source = io::Error::other("the log could not be copied into its file; is the disk full?");
            return Err(FileError { path: log, source });
        }
        for part in ["-wal", "-shm", "-lock"] {
            self.remove(&with(&path, part))?;
        }
        File::open(&path)
            .and_then(|file| file.sync_all())
            .map_err(|source| FileError { path: path.clone(), source })?;
        self.sync_folder()
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        fault::point("recover.rename");
        match fs::rename(from, to) {
            Ok(()) => self.sync_folder(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(FileError { path: from.to_owned(), source }),
        }
    }

    fn remove(&self, path: &Path) -> Result<(), FileError> {
        fault::point("recover.remove");
        match fs::remove_file(path) {
            Ok(()) => self.sync_folder(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(FileError { path: path.to_owned(), source }),
        }
    }

    fn sync_folder(&self) -> Result<(), FileError> {
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(|source| FileError { path: self.folder.clone(), source })
    }
}

/// `path` with `end` behind its name.
fn with(path: &Path, end: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// The name of a file below a mesh's folder, which this crate chose.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

mod salvaged_numbers {
    //! [`Salvaged`] as JSON: the mailbox knows no form of its own on disk but SQLite's.

    use mailbox::{LossCount, Salvaged};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Numbers {
        outbox: u64,
        outbox_lost: u64,
        inbox: u64,
        inbox_lost: u64,
        turns: u64,
        turns_lost: u64,
        lost_is_exact: bool,
        members: u64,
    }

    pub(super) fn serialize<S: Serializer>(salvaged: &Salvaged, to: S) -> Result<S::Ok, S::Error> {
        let Salvaged { outbox, outbox_lost, inbox, inbox_lost, turns, turns_lost, count, members } =
            *salvaged;
        let lost_is_exact = count == LossCount::Exact;
        Numbers { outbox, outbox_lost, inbox, inbox_lost, turns, turns_lost, lost_is_exact, members }
            .serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Salvaged, D::Error> {
        let Numbers { outbox, outbox_lost, inbox, inbox_lost, turns, turns_lost, lost_is_exact, members } =
            Numbers::deserialize(from)?;
        let count = if lost_is_exact { LossCount::Exact } else { LossCount::AtLeast };
        Ok(Salvaged { outbox, outbox_lost, inbox, inbox_lost, turns, turns_lost, count, members })
    }
}
