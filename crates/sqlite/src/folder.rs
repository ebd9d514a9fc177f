//! The file system around a database: folder, file, lock, and the syncs SQLite leaves to us.
//!
//! SQLite ignores an error of its own folder sync, so a new file's name could vanish with a power loss
//! after the first answer. The folder is synced here, where an error counts.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::OpenError;

/// The log is written over itself in parts of this size.
const REWRITE_BYTES: usize = 1 << 20;
/// Folders are for their owner alone.
const FOLDER_MODE: u32 = 0o700;
/// So are files; SQLite gives the log and its index the mode of the database.
const FILE_MODE: u32 = 0o600;

/// Makes the missing folders above `path`, each one's name synced into its parent.
pub(crate) fn make(path: &Path) -> Result<(), OpenError> {
    let folder = folder_of(path);
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).collect();
    for dir in missing.into_iter().rev() {
        match DirBuilder::new().mode(FOLDER_MODE).create(dir) {
            Ok(()) => sync(&folder_of(dir))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(OpenError::of_system(dir, error)),
        }
    }
    Ok(())
}

/// Takes the lock that makes this process the file's only writer, for as long as the answer lives.
/// It is a file of its own: opening the database itself outside SQLite and closing it again would drop
/// the locks SQLite holds on it.
pub(crate) fn lock(path: &Path) -> Result<File, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push("-lock");
    let name = PathBuf::from(name);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(FILE_MODE)
        .open(&name)
        .map_err(|error| OpenError::of_system(&name, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { path: path.into() }),
        Err(TryLockError::Error(error)) => Err(OpenError::of_system(&name, error)),
    }
}

/// Makes an empty file when there is none, so that its mode is ours and not the umask's.
pub(crate) fn make_file(path: &Path) -> Result<(), OpenError> {
    match OpenOptions::new().create_new(true).write(true).mode(FILE_MODE).open(path) {
        Ok(file) => file.sync_all().map_err(|error| OpenError::of_system(path, error)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(OpenError::of_system(path, error)),
    }
}

/// Writes the log of `path` over itself and syncs it, where there is a log. A sync alone would not do: pages that the system
/// could not write once are clean to it and are not written again. The caller holds SQLite's write lock. Unlike the
/// database and the log's index, the log has no locks of SQLite on it that closing it here would drop.
pub(crate) fn rewrite_log(path: &Path) -> Result<(), OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    let failed = |error| OpenError::of_system(Path::new(&name), error);
    let log = match File::options().read(true).write(true).open(&name) {
        Ok(log) => log,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let (mut part, mut at) = (vec![0; REWRITE_BYTES], 0);
    loop {
        let read = log.read_at(&mut part, at).map_err(failed)?;
        if read == 0 {
            return log.sync_data().map_err(failed);
        }
        log.write_all_at(&part[..read], at).map_err(failed)?;
        at += read as u64;
    }
}

/// Makes the names of the files in `folder` durable.
pub(crate) fn sync(folder: &Path) -> Result<(), OpenError> {
    File::open(folder).and_then(|dir| dir.sync_all()).map_err(|error| OpenError::of_system(folder, error))
}

/// The folder that holds `path`; a bare name lies in the current one.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        Some(_) | None => PathBuf::from("."),
    }
}
