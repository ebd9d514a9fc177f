//! Which other processes read the file: an open read transaction keeps the log from starting over.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

use crate::log_index::LogIndex;

/// The bytes of the log's index that SQLite locks for the length of a read transaction.
const READ_LOCKS: RangeInclusive<u64> = 123..=127;
/// The byte that it locks for as long as a connection is open.
const OPEN_LOCK: u64 = 128;
/// The number of a process in another container.
const UNSEEN: u32 = 0;

/// Another process with a read transaction on the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogReader {
    /// Its number on this machine; 0 when this process may not see it.
    pub process: u32,
    /// Its program, where the system tells.
    pub program: Option<String>,
}

impl fmt::Display for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.program {
            Some(program) => write!(f, "`{program}` (process {})", self.process),
            None if self.process == UNSEEN => write!(f, "a process outside of this container"),
            None => write!(f, "process {}", self.process),
        }
    }
}

/// A log longer than its usual bound, because a read transaction keeps it from starting over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptLog {
    /// The database file.
    pub path: Arc<Path>,
    /// Pages in the log.
    pub pages: u32,
    /// The other processes that read the file, as far as the system tells.
    pub readers: Vec<LogReader>,
}

impl fmt::Display for KeptLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, pages, readers } = self;
        write!(f, "the log of {} has {pages} pages, more than usual: ", path.display())?;
        match readers.as_slice() {
            [] => write!(f, "no other process reads it now, and the next writes start it over"),
            readers => {
                let names: Vec<String> = readers.iter().map(LogReader::to_string).collect();
                write!(f, "{} reads the file; end that read", names.join(", "))
            }
        }
    }
}

/// The other processes that read the file now.
pub(crate) fn of(index: &LogIndex) -> Vec<LogReader> {
    locking(index, READ_LOCKS)
}

/// The other processes that have the file open, whether they read it now or not: the log's index is theirs too.
pub(crate) fn holders_of(index: &LogIndex) -> Vec<LogReader> {
    locking(index, OPEN_LOCK..=OPEN_LOCK)
}

/// Asks who shares a lock on each of these bytes; of several on one byte the system names one. Locks of this process do
/// not stand in its own way.
fn locking(index: &LogIndex, bytes: RangeInclusive<u64>) -> Vec<LogReader> {
    let mut found: Vec<LogReader> = Vec::new();
    for byte in bytes {
        let asked = Flock {
            start: byte,
            length: 1,
            pid: None,
            typ: FlockType::WriteLock,
            offset_type: FlockOffsetType::Set,
        };
        let Ok(Some(held)) = fcntl_getlk(index.file(), &asked) else { continue };
        let process = held.pid.map_or(UNSEEN, |pid| pid.as_raw_nonzero().get().unsigned_abs());
        if held.typ == FlockType::ReadLock && found.iter().all(|reader| reader.process != process) {
            found.push(LogReader { process, program: program_of(process) });
        }
    }
    found
}

fn program_of(process: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some(name.trim_end().to_owned()).filter(|name| !name.is_empty())
}
