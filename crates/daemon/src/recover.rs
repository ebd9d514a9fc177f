//! Recovering a home whose mailbox is damaged, while its daemon does not run.
//!
//! Nothing is deleted: the damaged file is set aside under a name that says so, and what can be read of it stands
//! in a new one. Ids come first: whatever is salvaged stays used. The new file is another life of the inbox, which
//! the broker hears at the next link.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mailbox::{Condition, Mailbox, OpenError, Salvaged, condition};
use model::{Clock, Entropy};
use net::local::{LockError, lock_exclusive};
use sqlite::StorageError;

use crate::home::Home;
use crate::settings::{Settings, SettingsError};

/// What became of one mesh's mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Nothing contradicts itself; nothing was changed.
    Sound {
        /// The local alias.
        mesh: String,
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
    },
}

/// Why a home was not recovered. The damaged file is where it was.
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
    let meshes = settings.meshes.iter().filter(|entry| home.mailbox(&entry.slug).exists());
    meshes.map(|entry| rebuild(&home, &entry.slug, clock, entropy.clone())).collect()
}

fn rebuild(
    home: &Home,
    slug: &str,
    clock: &dyn Clock,
    entropy: Arc<dyn Entropy>,
) -> Result<Recovered, RecoverError> {
    let (path, mesh) = (home.mailbox(slug), slug.to_owned());
    let damage = match condition(&path) {
        Condition::Sound => return Ok(Recovered::Sound { mesh }),
        Condition::Damaged { detail } => detail,
    };
    let now = clock.now();
    let new = home.mesh(slug).join("mailbox.db.recovering");
    // Left by a recovery that was cut off; nobody ever answered from it.
    remove(&new)?;
    let mailbox = Mailbox::open(&new, entropy)?;
    let salvaged = mailbox.salvage_blocking(&path, now)?;
    mailbox.close_blocking();
    drop(mailbox);
    let aside = home.mesh(slug).join(format!("mailbox.db.corrupt-{}", now.as_micros()));
    move_with_log(&path, &aside)?;
    move_with_log(&new, &path)?;
    let folder = home.mesh(slug);
    std::fs::File::open(&folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| RecoverError::Files { path: folder, source })?;
    Ok(Recovered::Rebuilt { mesh, damage, aside, salvaged })
}

/// The file and what belongs to it, its log included.
fn parts(path: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "-wal", "-shm"].into_iter().map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    })
}

fn move_with_log(from: &Path, to: &Path) -> Result<(), RecoverError> {
    for (from, to) in parts(from).zip(parts(to)) {
        match std::fs::rename(&from, &to) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(RecoverError::Files { path: from, source }),
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), RecoverError> {
    for part in parts(path) {
        match std::fs::remove_file(&part) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(RecoverError::Files { path: part, source }),
        }
    }
    Ok(())
}
