//! Whom the files of a restored home belong to.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

use super::{BackupError, parent_of};

/// An account and its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    uid: u32,
    gid: u32,
}

impl Owner {
    /// Of the home that is there, or of the folder that it will lie in: the account that runs `restore` may be another one.
    pub fn of(home: &Path) -> Result<Self, BackupError> {
        let owner = |path: &Path| fs::metadata(path).map(|found| Self { uid: found.uid(), gid: found.gid() });
        match owner(home) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = parent_of(home);
                owner(&parent).map_err(BackupError::files(&parent))
            }
            found => found.map_err(BackupError::files(home)),
        }
    }

    /// Gives an open file or folder to this owner, durably. Where this account may not, it stays this account's. A file that
    /// another name leads to as well may be another's, and stays whose it is.
    pub fn take(self, file: &File) -> io::Result<()> {
        let found = file.metadata()?;
        if (found.uid(), found.gid()) == (self.uid, self.gid) || found.is_file() && found.nlink() > 1 {
            return Ok(());
        }
        match fchown(file, Some(self.uid), Some(self.gid)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            Err(error) => Err(error),
            Ok(()) => file.sync_all(),
        }
    }
}
