//! Recovering a home whose mailbox is damaged, while its daemon does not run.
//!
//! - Nothing is deleted: the damaged file is set aside under a name that says so, and what can be read of it stands in a
//!   new one. Ids come first: whatever is salvaged stays used. The new file is another life of the inbox, which the broker
//!   hears at the next link.
//! - A kill at any step loses nothing: until the exchange is recorded the damaged file stands where it was, and from then
//!   on the next start, or the next recovery, finishes it.
//! - No empty mailbox is made where one was set aside: every id in it would be free again.

mod exchange;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mailbox::{Condition, Mailbox, OpenError, Salvaged, condition};
use model::{Clock, Entropy};
use net::local::{LockError, lock_exclusive};
use sqlite::StorageError;

use self::exchange::{ExchangeRecord, FileError, MailboxFiles, file_name};
use crate::home::Home;
use crate::settings::{Settings, SettingsError};

/// What became of one mesh's mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Nothing contradicts itself; the mailbox was not changed.
    Sound {
        /// The local alias.
        mesh: String,
        /// A file that a recovery which was cut off had begun or not put in place. It is kept: an earlier version may have
        /// been killed between its renames, and then it holds what the mailbox does not.
        leftover: Option<PathBuf>,
    },
    /// It was damaged.
    Rebuilt {
        /// The local alias.
        mesh: String,
        /// What was found, in the store's words.
        damage: String,
        /// Where the damaged file is now.
        aside: PathBuf,
        /// What came over.
        salvaged: Salvaged,
        /// Which run rebuilt it.
        run: RecoveryRun,
    },
}

/// Which run of a recovery rebuilt a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryRun {
    /// This one.
    This,
    /// An earlier one that was cut off; this one finished its exchange of files.
    Earlier,
}

/// Why a home was not recovered. The damaged file is kept, where it was or under the name it was set aside by.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// Its daemon runs.
    #[error("stop the daemon first: {}", home.display())]
    Running {
        /// The home.
        home: PathBuf,
    },
    /// Its lock cannot be used.
    #[error(transparent)]
    Lock(LockError),
    /// Its `config.toml` makes no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The new file cannot be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The new file cannot be written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file cannot be moved.
    #[error("{}: {source}", path.display())]
    Files {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The mailbox is gone, and no damaged one stands beside it.
    #[error(
        "{} is missing, and no file it could be rebuilt from stands beside it; put it back, or remove {} to begin \
         with an empty one, in which every id is free again",
        mailbox.display(),
        rebuilt.display()
    )]
    NoSource {
        /// The mailbox.
        mailbox: PathBuf,
        /// A half-made file of a recovery.
        rebuilt: PathBuf,
    },
}

impl From<FileError> for RecoverError {
    fn from(FileError { path, source }: FileError) -> Self {
        RecoverError::Files { path, source }
    }
}

/// Looks through every mailbox of the home and rebuilds the damaged ones. Takes as long as the disk does.
pub fn recover(
    root: &Path,
    clock: &dyn Clock,
    entropy: Arc<dyn Entropy>,
) -> Result<Vec<Recovered>, RecoverError> {
    let home = Home::at(root);
    let _lock = lock_exclusive(&home.lock()).map_err(|error| match error {
        LockError::Held { .. } => RecoverError::Running { home: root.to_owned() },
        LockError::Unusable { .. } => RecoverError::Lock(error),
    })?;
    let settings = Settings::read(&home.config())?;
    let mut recovered = Vec::new();
    for entry in &settings.meshes {
        recovered.extend(recover_mesh(&home, &entry.slug, clock, &entropy)?);
    }
    Ok(recovered)
}

/// Before a mailbox is opened: finishes an exchange that was cut off. Refuses, with the remedy, to have an empty mailbox
/// made where one was set aside.
pub(crate) fn before_open(home: &Home, slug: &str) -> Result<(), String> {
    let files = MailboxFiles::of(home, slug);
    let told = |FileError { path, source }: FileError| {
        format!("{}: {source}; postrider down && postrider daemon recover", path.display())
    };
    if let Some(record) = files.under_way().map_err(told)? {
        files.finish(&record).map_err(told)?;
        tracing::warn!(mesh = slug, aside = record.aside, "a recovery that was cut off is finished");
    }
    if files.mailbox.exists() {
        return Ok(());
    }
    let left =
        files.last_aside().map_err(told)?.or_else(|| Some(files.rebuilt()).filter(|path| path.exists()));
    match left {
        None => Ok(()),
        Some(left) => Err(format!(
            "{} is missing, and {} stands beside it: a recovery was cut off, and an empty mailbox would forget \
             every id; postrider down && postrider daemon recover",
            files.mailbox.display(),
            file_name(&left),
        )),
    }
}

/// None where there never was a mailbox.
fn recover_mesh(
    home: &Home,
    slug: &str,
    clock: &dyn Clock,
    entropy: &Arc<dyn Entropy>,
) -> Result<Option<Recovered>, RecoverError> {
    let (files, mesh) = (MailboxFiles::of(home, slug), slug.to_owned());
    if let Some(record) = files.under_way()? {
        files.finish(&record)?;
        return Ok(Some(rebuilt(home, mesh, record, RecoveryRun::Earlier)));
    }
    let (source, aside, damage) = if files.mailbox.exists() {
        match condition(&files.mailbox) {
            Condition::Sound => {
                let leftover = Some(files.rebuilt()).filter(|path| path.exists());
                return Ok(Some(Recovered::Sound { mesh, leftover }));
            }
            Condition::Damaged { detail } => (files.mailbox.clone(), files.new_aside(clock.now()), detail),
        }
    } else if let Some(aside) = files.last_aside()? {
        files.reunite(&aside)?;
        (aside.clone(), aside, "it was set aside by a recovery that was cut off".to_owned())
    } else if files.rebuilt().exists() {
        return Err(RecoverError::NoSource { rebuilt: files.rebuilt(), mailbox: files.mailbox });
    } else {
        return Ok(None);
    };
    files.remove_rebuilt()?;
    let mailbox = Mailbox::open(files.rebuilt(), entropy.clone())?;
    let salvaged = mailbox.salvage_blocking(&source, clock.now())?;
    mailbox.close_blocking();
    drop(mailbox);
    files.seal_rebuilt()?;
    let record = ExchangeRecord { damage, aside: file_name(&aside), salvaged };
    files.exchange(&record)?;
    Ok(Some(rebuilt(home, mesh, record, RecoveryRun::This)))
}

fn rebuilt(home: &Home, mesh: String, record: ExchangeRecord, run: RecoveryRun) -> Recovered {
    let ExchangeRecord { damage, aside, salvaged } = record;
    Recovered::Rebuilt { aside: home.mesh(&mesh).join(aside), mesh, damage, salvaged, run }
}
