//! A file whose pages are mostly free is made anew without them, before anybody opens it: free pages are written to again,
//! but only a shorter file gives its room back to the disk.
//!
//! - It happens at a start: a running writer never waits for it. `VACUUM INTO` reads the file and writes the copy; the old
//!   file is not touched until the copy is whole and synced, and one rename takes its place.
//! - Only a file that was closed in order is copied: one with a log is left for the next start.
//! - A copy costs at most the time that [`ShrinkBounds::live_bytes_max`] takes, and no more room than the disk has.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use model::limits;
use rusqlite::{Connection, OpenFlags};
use sqlite::fault;

use crate::salvage::{Condition, condition};

/// When a file is worth being made anew.
#[derive(Clone, Copy, Debug)]
pub struct ShrinkBounds {
    /// Fewer free bytes are not worth a copy.
    pub free_bytes_min: u64,
    /// More bytes in use take too long at a start.
    pub live_bytes_max: u64,
}

impl Default for ShrinkBounds {
    fn default() -> Self {
        Self { free_bytes_min: limits::SHRINK_FREE_BYTES_MIN, live_bytes_max: limits::SHRINK_LIVE_BYTES_MAX }
    }
}

/// What became of a file that was made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShrunkFile {
    /// Its bytes before.
    pub bytes_before: u64,
    /// Its bytes now.
    pub bytes_after: u64,
}

/// Why a file was not made anew. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ShrinkError {
    /// It could not be read, or its copy could not be written.
    #[error(transparent)]
    Copy(#[from] rusqlite::Error),
    /// A file could not be made, synced or moved.
    #[error(transparent)]
    File(#[from] io::Error),
    /// It contradicts itself; a copy would hide what it lost.
    #[error("the file is damaged: {detail}")]
    Damaged {
        /// In SQLite's words.
        detail: String,
    },
}

/// Makes the file at `path`, which nobody has open, anew without its free pages when more than half of it is free.
/// `disk_free` are the bytes that its disk has. None when it is not worth it, or there is no room for a copy.
pub fn shrink(path: &Path, disk_free: u64, bounds: ShrinkBounds) -> Result<Option<ShrunkFile>, ShrinkError> {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let copy = beside(".shrinking");
    // Left by a start that was cut off.
    remove(&copy)?;
    let has_log = fs::metadata(beside("-wal")).is_ok_and(|log| log.len() > 0);
    if has_log || !path.exists() {
        return Ok(None);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    let figure = |name: &str| conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, u64>(0));
    let (page, pages, free_pages) = (figure("page_size")?, figure("page_count")?, figure("freelist_count")?);
    let (bytes_before, free) = (pages * page, free_pages * page);
    let live = bytes_before - free;
    let is_worth_it = free >= bounds.free_bytes_min && free > live && live <= bounds.live_bytes_max;
    if !is_worth_it || disk_free < live.saturating_add(limits::SHRINK_ROOM_BYTES) {
        return Ok(None);
    }
    if let Condition::Damaged { detail } = condition(path) {
        return Err(ShrinkError::Damaged { detail });
    }
    let copied = copy_without_free_pages(&conn, &copy);
    drop(conn);
    let bytes_after = match copied {
        Ok(bytes) => bytes,
        Err(error) => {
            // A half copy would take the room that is short.
            remove(&copy)?;
            return Err(error);
        }
    };
    for index in ["-shm", "-wal"] {
        remove(&beside(index))?;
    }
    fault::point("shrink.rename");
    fs::rename(&copy, path)?;
    fault::point("shrink.renamed");
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(Some(ShrunkFile { bytes_before, bytes_after }))
}

/// Writes and syncs the copy; its bytes.
fn copy_without_free_pages(conn: &Connection, copy: &Path) -> Result<u64, ShrinkError> {
    // SQLite would give a new file the mode of the umask.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(copy)?;
    fault::point("shrink.copy");
    conn.execute("VACUUM INTO ?1", [&*copy.to_string_lossy()])?;
    let file = File::open(copy)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
