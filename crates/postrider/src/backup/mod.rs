//! Copies of a home: made while its processes run, looked through, and put back.
//!
//! - A backup is a folder with `manifest.json` and the tree `home/`. It has its name only when it is whole and synced.
//! - Each database is copied by one read transaction of its own; all of them begin together.
//! - Files are 0600 and folders 0700: a backup holds keys and everybody's words.

mod folder;
mod leftover;
mod make;
mod manifest;
mod owner;
mod restore;
mod tree;
mod verify;

use std::io;
use std::path::{Path, PathBuf};

pub use leftover::{Leftover, LeftoverKind, leftovers};
pub use make::{Progress, make};
#[cfg(test)]
pub use manifest::FileKind;
pub use manifest::{BackupFile, Manifest};
pub use restore::{OldHome, Restored, finish_restore, restore};
pub use verify::{Wrong, verify};

/// Why a backup was not made, not read, or not put back.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The home has nothing to copy.
    #[error("there is no home at {}", .0.display())]
    NoHome(PathBuf),
    /// Something has the backup's name.
    #[error("{} is there already; name another folder", .0.display())]
    Taken(PathBuf),
    /// A part of the home lies elsewhere.
    #[error("{} is a link; a backup copies files and folders of the home alone", .0.display())]
    Link(PathBuf),
    /// A repair was cut off: the mailbox is not where it belongs.
    #[error("{} tells of a repair that is not finished", .0.display())]
    Unrecovered(PathBuf),
    /// The backup would copy itself.
    #[error("{} lies inside the home; name a folder outside", .0.display())]
    Inside(PathBuf),
    /// A process runs on the home.
    #[error("a process runs on {}; stop it first", .0.display())]
    Running(PathBuf),
    /// The home to restore to is in use by its owner.
    #[error("{} is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// The system cannot exchange two folders in one step.
    #[error("the file system of {} cannot exchange two folders in one step", .0.display())]
    NoExchange(PathBuf),
    /// The folder is no whole backup.
    #[error("{} is no backup, or not a whole one: {detail}", path.display())]
    NoBackup {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        detail: String,
    },
    /// The backup differs from its manifest.
    #[error("the backup is not what it was: {} findings", .0.len())]
    Differs(Vec<Wrong>),
    /// A database.
    #[error("{}: {source}", path.display())]
    Database {
        /// Which.
        path: PathBuf,
        /// What was found.
        source: sqlite::CopyError,
    },
    /// A file or folder.
    #[error("{}: {source}", path.display())]
    Files {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl BackupError {
    /// About a file or folder.
    fn files(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
        let path = path.to_owned();
        move |source| BackupError::Files { path, source }
    }
}

/// Makes names in `folder` durable.
fn sync_folder(folder: &Path) -> Result<(), BackupError> {
    std::fs::File::open(folder).and_then(|opened| opened.sync_all()).map_err(BackupError::files(folder))
}

/// The folder that holds `path`.
fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// `path` with more text behind its name, whether or not it ends with a slash.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.components().collect::<PathBuf>().into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}
