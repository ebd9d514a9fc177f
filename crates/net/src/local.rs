//! The files that make a process the one of its home: an operating-system lock, and the Unix socket under it.
//!
//! - The lock alone decides who lives: a pid file or a socket file proves nothing after kill -9.
//! - [`bind_unix`] needs the lock, so a stale socket may be replaced; anything that is no socket is left alone.
//! - The socket is never open to others, not for an instant: it is bound under another name inside a folder only
//!   we may enter, made 0600, and then renamed into place. The process's umask stays untouched.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use model::{hex, limits};
use sha2::{Digest, Sha256};
use tokio::net::UnixListener;

/// Between a socket's name and the one it is bound under.
const BINDING_SUFFIX: &str = ".b";

/// Held for the life of the process; gone with it, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("{} is held by another running process", path.display())]
    Held {
        /// The lock's file.
        path: PathBuf,
    },
    /// The file cannot be used.
    #[error("{} cannot be locked: {source}", path.display())]
    Unusable {
        /// The lock's file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a socket was not bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Something else stands at its path.
    #[error("{} is {found}, not a socket; it was left as it is", path.display())]
    Occupied {
        /// The socket's path.
        path: PathBuf,
        /// What stands there.
        found: &'static str,
    },
    /// Others may enter its folder.
    #[error("{} is open to others; close it first: chmod 700 {}", folder.display(), folder.display())]
    FolderOpen {
        /// The socket's folder.
        folder: PathBuf,
    },
    /// The system refused.
    #[error("{} cannot be bound: {source}", path.display())]
    Unusable {
        /// The socket's path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The path is over what a socket address holds, and there is no shorter one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is too long for a socket; use a shorter home, or set XDG_RUNTIME_DIR", wanted.display())]
pub struct PathTooLong {
    /// Where the socket should be.
    pub wanted: PathBuf,
}

/// Where the socket that should be at `wanted` really is: there, or when that is over 100 bytes in a folder of
/// `runtime_dir` named after it. Server and client compute it alike, from an absolute `wanted`.
pub fn socket_path(wanted: &Path, runtime_dir: Option<&Path>) -> Result<PathBuf, PathTooLong> {
    let fits = |path: &PathBuf| path.as_os_str().len() <= limits::SOCKET_PATH_BYTES_MAX;
    let wanted = wanted.to_path_buf();
    if fits(&wanted) {
        return Ok(wanted);
    }
    let digest = Sha256::digest(wanted.as_os_str().as_bytes());
    let name: String = hex::encode(&digest[..8]);
    let short = runtime_dir.map(|dir| dir.join(format!("postrider-{name}")).join("sock"));
    short.filter(fits).ok_or(PathTooLong { wanted })
}

/// Makes the folder and those above it that are missing, for this account alone. One that is there stays as it
/// is.
pub fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Takes the lock at `path`, or says that another process has it. The file stays when the lock goes.
pub fn lock_exclusive(path: &Path) -> Result<Lock, LockError> {
    let unusable = |source| LockError::Unusable { path: path.to_owned(), source };
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(no_follow)
        .open(path)
        .map_err(unusable)?;
    lock_opened(file, path)
}

/// [`lock_exclusive`] of a file that the caller opened; `path` is for errors.
pub fn lock_opened(file: File, path: &Path) -> Result<Lock, LockError> {
    match file.try_lock() {
        Ok(()) => Ok(Lock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(LockError::Held { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(LockError::Unusable { path: path.to_owned(), source }),
    }
}

/// Binds the socket at `path` for this account alone, replacing the socket of a process that is gone: `_lock`
/// is the proof that it is.
pub fn bind_unix(path: &Path, _lock: &Lock) -> Result<UnixListener, BindError> {
    let unusable = |source| BindError::Unusable { path: path.to_owned(), source };
    if let Some(found) = occupant(path) {
        return Err(BindError::Occupied { path: path.to_owned(), found });
    }
    let folder = path.parent().ok_or_else(|| unusable(io::ErrorKind::InvalidInput.into()))?;
    private_folder(folder).map_err(unusable)?;
    // Refused rather than closed: it may be a folder that is open for a reason, such as /tmp.
    if fs::metadata(folder).map_err(unusable)?.permissions().mode() & 0o077 != 0 {
        return Err(BindError::FolderOpen { folder: folder.to_owned() });
    }
    bind_privately(path).map_err(unusable)
}

/// What stands at `path` that is no socket.
fn occupant(path: &Path) -> Option<&'static str> {
    // A path that cannot be looked at cannot be bound either, and binding has the better error.
    let found = fs::symlink_metadata(path).ok()?.file_type();
    if found.is_socket() {
        None
    } else if found.is_symlink() {
        Some("a symbolic link")
    } else if found.is_dir() {
        Some("a folder")
    } else {
        Some("a file")
    }
}

fn bind_privately(path: &Path) -> io::Result<UnixListener> {
    let mut name = path.as_os_str().to_owned();
    name.push(BINDING_SUFFIX);
    let binding = PathBuf::from(name);
    // Left by a process that died between bind and rename.
    match occupant(&binding) {
        None => match fs::remove_file(&binding) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        },
        Some(_) => return Err(io::ErrorKind::AlreadyExists.into()),
    }
    let listener = UnixListener::bind(&binding)?;
    fs::set_permissions(&binding, Permissions::from_mode(0o600))?;
    fs::rename(&binding, path)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_in_the_home_unless_its_path_is_too_long_for_an_address() {
        let of_length = |length: usize| PathBuf::from(format!("/{}/daemon/sock", "h".repeat(length - 13)));
        let runtime = Path::new("/run/user/1000");
        let shortened = PathBuf::from("/run/user/1000/postrider-aa6d1cf7bb2695c0/sock");
        let too_long = |length| Err(PathTooLong { wanted: of_length(length) });
        for (wanted, runtime_dir, expected) in [
            (of_length(20), None, Ok(of_length(20))),
            (of_length(100), Some(runtime), Ok(of_length(100))),
            (of_length(101), Some(runtime), Ok(shortened)),
            (of_length(101), None, too_long(101)),
            (of_length(101), Some(of_length(80).as_path()), too_long(101)),
        ] {
            assert_eq!(socket_path(&wanted, runtime_dir), expected, "{}", wanted.display());
        }
    }

    #[test]
    fn two_homes_have_two_short_paths() {
        let runtime = Some(Path::new("/run/user/1000"));
        let (one, other) = (format!("/{}/a", "h".repeat(120)), format!("/{}/b", "h".repeat(120)));
        assert_ne!(socket_path(Path::new(&one), runtime), socket_path(Path::new(&other), runtime));
    }
}
