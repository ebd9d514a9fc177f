//! Which other processes read the file: an open read transaction keeps the log from starting over.

use std::fmt;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use crate::log_index::{LogIndex, index_name};

/// The bytes of the log's index that SQLite locks for the length of a read transaction.
const READ_LOCKS: RangeInclusive<u64> = 123..=127;
/// The byte that it locks for as long as a connection is open.
const OPEN_LOCK: u64 = 128;

/// Another process with a read transaction on the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogReader {
    /// Its number on this machine.
    pub process: u32,
    /// Its program, where the system tells.
    pub program: Option<String>,
}

impl fmt::Display for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.program {
            Some(program) => write!(f, "`{program}` (process {})", self.process),
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

/// The other processes that read the file now, as far as the system tells: Linux does.
pub(crate) fn of(index: &LogIndex) -> Vec<LogReader> {
    index.inode().map_or_else(|_| Vec::new(), |inode| locking(inode, &READ_LOCKS))
}

/// The other processes that have the file at `path` open, whether they read it now or not: the log's index is theirs too.
pub(crate) fn holders_of(path: &Path) -> Vec<LogReader> {
    let index = std::fs::metadata(index_name(path));
    index.map_or_else(|_| Vec::new(), |index| locking(index.ino(), &(OPEN_LOCK..=OPEN_LOCK)))
}

fn locking(inode: u64, bytes: &RangeInclusive<u64>) -> Vec<LogReader> {
    let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return Vec::new() };
    let processes = locking_processes(&locks, inode, bytes, std::process::id());
    processes.into_iter().map(|process| LogReader { process, program: program_of(process) }).collect()
}

fn program_of(process: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some(name.trim_end().to_owned()).filter(|name| !name.is_empty())
}

/// The processes other than `own` that share a lock of SQLite on these bytes of the index `inode`, by the text of
/// `/proc/locks`.
fn locking_processes(locks: &str, inode: u64, bytes: &RangeInclusive<u64>, own: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for line in locks.lines() {
        // `8: POSIX  ADVISORY  READ 4711 fd:01:265 124 124`; a lock that is waited for has `->` before its kind.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "READ", process, file, from, to] = fields[..] else { continue };
        let (Ok(process), Some((_, file))) = (process.parse::<u32>(), file.rsplit_once(':')) else {
            continue;
        };
        let (Ok(from), Ok(file)) = (from.parse::<u64>(), file.parse::<u64>()) else { continue };
        // A range without an end reaches over the whole file.
        let to = to.parse::<u64>().unwrap_or(u64::MAX);
        let locks = from <= *bytes.end() && to >= *bytes.start();
        if file == inode && locks && process != own && process != 0 && !found.contains(&process) {
            found.push(process);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = "\
1: POSIX  ADVISORY  READ 4711 fd:01:265 124 124
2: POSIX  ADVISORY  READ 4711 fd:01:265 128 128
3: POSIX  ADVISORY  READ 99 fd:01:265 125 125
4: POSIX  ADVISORY  WRITE 12 fd:01:265 120 120
5: -> POSIX  ADVISORY  READ 13 fd:01:265 124 124
6: POSIX  ADVISORY  READ 14 fd:01:266 124 124
7: FLOCK  ADVISORY  WRITE 15 00:19:265 0 EOF
8: POSIX  ADVISORY  READ 16 fd:01:265 128 128
9: POSIX  ADVISORY  READ 4711 fd:01:265 127 EOF
";

    #[test]
    fn only_locks_of_other_processes_on_those_bytes_of_that_file_count() {
        let open = OPEN_LOCK..=OPEN_LOCK;
        for (locks, inode, bytes, own, expected) in [
            (LOCKS, 265, &READ_LOCKS, 99, vec![4711]),
            (LOCKS, 265, &READ_LOCKS, 1, vec![4711, 99]),
            (LOCKS, 267, &READ_LOCKS, 1, vec![]),
            (LOCKS, 265, &open, 1, vec![4711, 16]),
            (LOCKS, 265, &open, 16, vec![4711]),
            ("nonsense\n1: POSIX\n", 265, &READ_LOCKS, 1, vec![]),
        ] {
            assert_eq!(locking_processes(locks, inode, bytes, own), expected, "{inode} {bytes:?} {own}");
        }
    }
}
