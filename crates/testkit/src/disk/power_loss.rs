//! The proof that an answered commit survives a power loss, at every moment of a recording.
//!
//! One-row commits run through the real engine on a recording disk, with bounds so small that checkpoints and
//! restarts of the log happen many times. Then, for every note of the recording, the folder is rebuilt as a
//! power loss at that moment could leave it, opened by the real engine and read.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rusqlite::{Connection, params};
use sqlite::fault::{Disk, FolderWatch, Synced};
use sqlite::{Bounds, Db, Migration, OpenError, Options, Schema, StorageError};

use crate::disk::{Event, Image, Recorder, Survivors, mount};

/// What to record and how to replay it.
#[derive(Debug, Clone, Copy)]
pub struct PowerLoss {
    /// One-row commits to record.
    pub commits: u64,
    /// Which sync is left out, if any: each choice but the first must show losses.
    pub control: Control,
    /// Decides which unsynced writes and sectors survive.
    pub seed: u64,
}

/// A sync left out on purpose, to see that the replay finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The engine as it is.
    Nothing,
    /// The log is not synced at commit.
    CommitUnsynced,
    /// The folder is not synced when the file is opened.
    FolderUnsynced,
    /// What a killed process left is not synced when the file is opened, before the first answer; for [`second_crash`].
    ///
    /// [`second_crash`]: super::second_crash()
    OpeningUnsynced,
}

/// What the replays showed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Commits recorded and answered.
    pub commits: u64,
    /// Moments of the recording at which the power went.
    pub points: u64,
    /// Different folders opened; equal ones are opened once.
    pub folders: u64,
    /// Moments at which some variant lost an answered commit.
    pub points_with_loss: u64,
    /// The most answered commits lost at one moment.
    pub worst_loss: u64,
    /// Folders that did not open, or failed the integrity check, or held a wrong row.
    pub corrupt: u64,
    /// Times the log was begun anew while recording: 0 would leave checkpoints unproven.
    pub log_restarts: u64,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum PowerLossError {
    /// The recorded engine did not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A recorded commit was refused.
    #[error(transparent)]
    Write(#[from] StorageError),
    /// The folder for replays could not be written.
    #[error("writing a replayed folder: {0}")]
    Folder(#[from] std::io::Error),
}

pub(super) const FILE: &str = "rows.db";
const TABLE: &str = "CREATE TABLE row (n INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;";
pub(super) const SCHEMA: Schema =
    Schema { migrations: &[Migration { number: 1, name: "rows", sql: TABLE }], sum: TABLE };

/// Records, replays and counts.
///
/// # Errors
/// When the recording itself fails; losses are no error but figures of the report.
pub fn power_loss(config: &PowerLoss) -> Result<Report, PowerLossError> {
    let events = record(config)?;
    let mut report =
        Report { commits: config.commits, log_restarts: log_restarts(&events), ..Report::default() };
    let mut image = Image::default();
    let mut seen = HashMap::new();
    let mut answered = 0;
    for (moment, event) in events.iter().enumerate() {
        image.apply(event);
        if let Event::Answered { n } = event {
            answered = *n;
        }
        let seed = config.seed.wrapping_add(moment as u64);
        let mut lost = 0;
        for survivors in variants(&image, seed) {
            lost = lost.max(judge(&image, survivors, answered, &mut seen, &mut report)?);
        }
        report.points += 1;
        report.points_with_loss += u64::from(lost > 0);
        report.worst_loss = report.worst_loss.max(lost);
    }
    Ok(report)
}

impl Report {
    /// Nothing answered was lost, nothing was damaged, and checkpoints were part of it.
    pub fn is_clean(&self) -> bool {
        self.points_with_loss == 0 && self.corrupt == 0 && self.log_restarts > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} commits, {} crash points, {} folders opened, {} log restarts: {} points with loss (worst {}), {} corrupt",
            self.commits,
            self.points,
            self.folders,
            self.log_restarts,
            self.points_with_loss,
            self.worst_loss,
            self.corrupt
        )
    }
}

/// Commits in three sessions, so that closing, being killed and opening again are among the moments.
pub(super) fn record(config: &PowerLoss) -> Result<Vec<Event>, PowerLossError> {
    let folder = tempfile::tempdir()?;
    let recorder = Arc::new(Recorder::default());
    let disk = disk(config.control, &recorder);
    let options = Options::new(folder.path().join(FILE), SCHEMA);
    let bounds = Bounds { checkpoint_step_pages: 12, wal_budget_pages: 30, ..Bounds::default() };
    let options = options.bounds(bounds).fault(disk);
    let third = config.commits / 3;
    let sessions = [1..=third, third + 1..=2 * third, 2 * third + 1..=config.commits];
    for (number, session) in sessions.into_iter().enumerate() {
        let db = Db::open(options.clone())?;
        for n in session {
            db.write_blocking("row", move |conn| add(conn, n))?;
            recorder.answered(n);
        }
        if number == 1 { db.abandon() } else { db.close_blocking() }
    }
    Ok(recorder.take())
}

pub(super) fn disk(control: Control, recorder: &Arc<Recorder>) -> Disk {
    let watcher = Arc::clone(recorder);
    let told = Arc::clone(recorder);
    let (synced, folder) = match control {
        Control::Nothing | Control::OpeningUnsynced => {
            (Synced::Full, FolderWatch::Told(Arc::new(move || told.folder_synced())))
        }
        Control::CommitUnsynced => {
            (Synced::Normal, FolderWatch::Told(Arc::new(move || told.folder_synced())))
        }
        Control::FolderUnsynced => (Synced::Full, FolderWatch::LeftOut),
    };
    Disk { vfs: Some(mount(watcher)), synced, folder }
}

pub(super) fn add(conn: &Connection, n: u64) -> Result<(), StorageError> {
    let mut insert = conn.prepare_cached("INSERT INTO row (n, body) VALUES (?1, ?2)")?;
    insert.execute(params![n.cast_signed(), body(n)])?;
    Ok(())
}

/// Some hundred bytes that tell one row from another.
fn body(n: u64) -> Vec<u8> {
    let mut body = vec![0; 200];
    crate::seeded::Seeded::new(n).fill(&mut body);
    body
}

/// A settled folder has one way to survive; otherwise the dice choose, too.
pub(super) fn variants(image: &Image<'_>, seed: u64) -> Vec<Survivors> {
    if !image.is_unsettled() {
        return vec![Survivors::Nothing];
    }
    vec![Survivors::Nothing, Survivors::Everything, Survivors::SomeWrites(seed), Survivors::SomeSectors(seed)]
}

/// Opens one folder and answers how many answered commits it lost. What a folder holds does not depend on
/// the moment, so equal ones are opened once and their rows remembered.
fn judge(
    image: &Image<'_>,
    survivors: Survivors,
    answered: u64,
    seen: &mut HashMap<u64, u64>,
    report: &mut Report,
) -> Result<u64, PowerLossError> {
    let files = image.after_power_loss(survivors);
    let mut digest = DefaultHasher::new();
    files.hash(&mut digest);
    let digest = digest.finish();
    let rows = match seen.get(&digest) {
        Some(rows) => *rows,
        None => {
            let folder = scratch()?;
            for (name, content) in &files {
                std::fs::write(folder.path().join(name), content)?;
            }
            report.folders += 1;
            let rows = rows_in(&folder).unwrap_or_else(|| {
                report.corrupt += 1;
                0
            });
            seen.insert(digest, rows);
            rows
        }
    };
    Ok(answered.saturating_sub(rows))
}

/// In memory where there is such a folder: what is opened here was "on disk" before.
pub(super) fn scratch() -> std::io::Result<tempfile::TempDir> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}

/// How many rows, from the first on without a gap, the folder holds; `None` when it is damaged.
pub(super) fn rows_in(folder: &tempfile::TempDir) -> Option<u64> {
    let bounds = Bounds { readers: 1, ..Bounds::default() };
    let db = Db::open_inline(Options::new(folder.path().join(FILE), SCHEMA).bounds(bounds)).ok()?;
    let rows = db.read_blocking("rows", |conn| Ok::<_, StorageError>(sound_rows(conn)?));
    db.abandon();
    rows.ok().flatten()
}

pub(super) fn sound_rows(conn: &Connection) -> rusqlite::Result<Option<u64>> {
    let verdict: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Ok(None);
    }
    let mut read = conn.prepare("SELECT n, body FROM row ORDER BY n")?;
    let mut rows = read.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        if row.get::<_, i64>(0)?.unsigned_abs() != count || row.get::<_, Vec<u8>>(1)? != body(count) {
            return Ok(None);
        }
    }
    Ok(Some(count))
}

/// The log's header is written at its beginning, and there alone.
fn log_restarts(events: &[Event]) -> u64 {
    let begins =
        |event: &&Event| matches!(event, Event::Written { file, at: 0, .. } if file.ends_with("-wal"));
    (events.iter().filter(begins).count() as u64).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(control: Control) -> Report {
        power_loss(&PowerLoss { commits: 60, control, seed: 1 }).unwrap()
    }

    #[test]
    fn no_answered_commit_is_lost_at_any_moment_of_a_recording() {
        let report = replay(Control::Nothing);
        assert!(report.is_clean(), "{report}");
        assert!(report.points > 60 * 3, "{report}");
    }

    #[test]
    fn the_same_replay_finds_the_losses_of_an_unsynced_commit() {
        let report = replay(Control::CommitUnsynced);
        assert!(report.points_with_loss > 0, "{report}");
    }

    #[test]
    fn the_same_replay_finds_the_losses_of_an_unsynced_folder() {
        let report = replay(Control::FolderUnsynced);
        assert!(report.points_with_loss > 0, "{report}");
    }
}
