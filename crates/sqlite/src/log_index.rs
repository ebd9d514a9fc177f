//! Room for the log's index, the file `-shm` that SQLite keeps in shared memory.
//!
//! SQLite makes the index longer after it has synced a commit. Without room at that moment the commit is on the disk and
//! fails all the same, and the engine stops. So the index has room for the longest log before any transaction begins.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{OpenError, StorageError};

/// Pages of the log in one region of the index. The first region holds a few less, beside its header.
const REGION_PAGES: u64 = 4_096;
/// Bytes of a region.
const REGION_BYTES: u64 = 32 * 1_024;
/// Room is made for so many pages at a time, and for at least so many beyond the log: 128 MiB of one transaction. It is
/// little, because a nearly full disk must still let an operator free room.
const RESERVED_PAGES: u32 = 32_768;

/// The open index file. It stays open as long as any connection: closing it would drop the locks that SQLite has on it.
#[derive(Debug)]
pub(crate) struct LogIndex {
    file: File,
    path: Arc<Path>,
    /// What has been allocated.
    bytes: AtomicU64,
}

impl LogIndex {
    /// Opens the index of the database at `path`, which a connection has made, and asks for room. A disk without that room
    /// is no reason not to open: reads need none.
    pub(crate) fn open(path: &Arc<Path>) -> Result<Self, OpenError> {
        let mut name = path.as_os_str().to_owned();
        name.push("-shm");
        let name = PathBuf::from(name);
        let file = File::options()
            .read(true)
            .write(true)
            .open(&name)
            .map_err(|error| OpenError::of_system(&name, error))?;
        let index = Self { file, path: Arc::clone(path), bytes: AtomicU64::new(0) };
        if let Err(error) = index.reserve(0) {
            tracing::warn!(%error, "no room for the log's index: nothing is written before there is");
        }
        Ok(index)
    }

    /// The file, on which SQLite has its locks.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Gives the index room for a log of so many pages and a large transaction behind them, unless it has that.
    pub(crate) fn reserve(&self, log_pages: u32) -> Result<(), StorageError> {
        let needed = needed_bytes(log_pages);
        if self.bytes.load(Relaxed) >= needed {
            return Ok(());
        }
        match allocate(&self.file, needed) {
            Ok(()) => {
                self.bytes.store(needed, Relaxed);
                Ok(())
            }
            Err(error) => match error.kind() {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    Err(StorageError::Full { path: Arc::clone(&self.path) })
                }
                _ => Err(StorageError::Io { path: Arc::clone(&self.path), detail: error.to_string() }),
            },
        }
    }
}

/// Bytes of an index for so many pages of a log and [`RESERVED_PAGES`] more, in steps of these, with a region to spare for
/// the header.
fn needed_bytes(log_pages: u32) -> u64 {
    let reserved = u64::from(RESERVED_PAGES);
    let pages = (u64::from(log_pages) + reserved).next_multiple_of(reserved);
    (pages.div_ceil(REGION_PAGES) + 1) * REGION_BYTES
}

/// Allocates the file's first `bytes` and changes none of them.
#[cfg(target_os = "linux")]
fn allocate(file: &File, bytes: u64) -> std::io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(()),
        // A file system that cannot allocate ahead: the index grows when SQLite needs it.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Other systems let SQLite make the index longer when it needs that.
#[cfg(not(target_os = "linux"))]
fn allocate(_file: &File, _bytes: u64) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_has_room_for_the_log_and_a_large_transaction_in_few_steps() {
        for (log_pages, bytes) in [(0, 294_912), (1, 557_056), (32_768, 557_056), (32_769, 819_200)] {
            assert_eq!(needed_bytes(log_pages), bytes, "{log_pages} pages");
        }
    }
}
