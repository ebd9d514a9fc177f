//! What can go wrong at the two doors, opening and working, each with the file and the way out.
//!
//! An error is cloneable because one lost transaction is told to every job that was in it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::log_readers::LogReader;
use crate::scene;

/// Why a write or a read has no result of its own.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StorageError {
    /// The line of waiting jobs is as long as it may be. Nothing was run.
    #[error("{}: {waiting_max} requests are waiting already; try again shortly", .path.display())]
    QueueFull {
        /// The database file.
        path: Arc<Path>,
        /// The bound that was reached.
        waiting_max: usize,
    },
    /// No space left. Nothing of the transaction is stored; later writes try again.
    #[error("{}: no space left on the disk; free some, then repeat: nothing of this was stored", .path.display())]
    Full {
        /// The database file.
        path: Arc<Path>,
    },
    /// The disk refused to read or write. Nothing of the transaction is stored.
    #[error("{}: the disk answered with an error ({detail}); check it, then repeat: nothing of this was stored", .path.display())]
    Io {
        /// The database file.
        path: Arc<Path>,
        /// SQLite's words.
        detail: String,
    },
    /// The file's content contradicts itself.
    #[error("{}: the file is damaged ({detail}); stop, keep a copy of it and restore a backup", .path.display())]
    Corrupt {
        /// The database file.
        path: Arc<Path>,
        /// SQLite's words.
        detail: String,
    },
    /// The log is as long as it may be, because a read transaction keeps it from starting over. Nothing was run.
    #[error("{}: the log has {pages} pages and cannot start over {}, then repeat: nothing of this was stored", .path.display(), way_out(.readers))]
    LogFull {
        /// The database file.
        path: Arc<Path>,
        /// Pages in the log.
        pages: u32,
        /// The other processes that read the file, as far as the system tells.
        readers: Vec<LogReader>,
    },
    /// Somebody outside this process holds the write lock.
    #[error("{}: another process holds the file's lock; end it, then repeat", .path.display())]
    Busy {
        /// The database file.
        path: Arc<Path>,
    },
    /// A read ran into its bound and was interrupted.
    #[error("{}: the read `{name}` took longer than {limit:?}; ask for less at a time", .path.display())]
    ReadTooLong {
        /// The database file.
        path: Arc<Path>,
        /// The read's name.
        name: &'static str,
        /// The bound it hit.
        limit: Duration,
    },
    /// The job itself panicked; its changes are undone, its neighbours' stand.
    #[error("{}: the job `{name}` panicked and was undone; the log shows where: report it", .path.display())]
    Panicked {
        /// The database file.
        path: Arc<Path>,
        /// The job's name.
        name: &'static str,
    },
    /// SQLite gave up the whole transaction while a job of it ran, and that job did not say why.
    #[error("{}: the transaction was lost while `{name}` ran; nothing of it was stored: repeat", .path.display())]
    RolledBack {
        /// The database file.
        path: Arc<Path>,
        /// The job during which it happened.
        name: &'static str,
    },
    /// The file was closed in this process.
    #[error("{}: the file is closed; start again", .path.display())]
    Closed {
        /// The database file.
        path: Arc<Path>,
    },
    /// The commit of this very request met a storage error, after which no write is accepted any more. Whether the
    /// request is stored shows only after a restart.
    #[error("{}: the commit met a storage error ({cause}), so it is unknown whether this is stored; check the disk, restart the process, then ask again with the same id", .path.display())]
    OutcomeUnknown {
        /// The database file.
        path: Arc<Path>,
        /// The error of the commit.
        cause: Arc<str>,
    },
    /// A sync or a commit met an I/O error before, and no write is accepted any more. Nothing of this one is stored.
    #[error("{}: writing has stopped after a storage error ({cause}); check the disk and restart the process: nothing of this was stored", .path.display())]
    Stopped {
        /// The database file.
        path: Arc<Path>,
        /// What happened first.
        cause: Arc<str>,
    },
    /// Any other answer of SQLite: a broken constraint, a mistyped statement.
    #[error("{}: {source}", .path.display())]
    Sql {
        /// The database file.
        path: Arc<Path>,
        /// SQLite's error.
        source: Arc<rusqlite::Error>,
    },
}

/// Why a file could not be opened. Nothing was deleted, and no half-made table is left behind.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The linked SQLite has a known way to corrupt a log.
    #[error(
        "SQLite {found} is older than {needed}, which fixed a corruption of the log: build with the bundled one"
    )]
    SqliteTooOld {
        /// Version in use.
        found: &'static str,
        /// Lowest version accepted.
        needed: &'static str,
    },
    /// The file holds something else.
    #[error("{}: not an SQLite database; move it away, or name another file", .path.display())]
    NotADatabase {
        /// The file.
        path: Arc<Path>,
    },
    /// An SQLite database, but with tables that are not ours.
    #[error("{}: a database of another program; move it away, or name another file", .path.display())]
    Foreign {
        /// The file.
        path: Arc<Path>,
    },
    /// Written by a newer binary.
    #[error("{}: schema {found} is newer than {known}, the newest this program knows; use a newer program", .path.display())]
    NewerSchema {
        /// The file.
        path: Arc<Path>,
        /// Number of the last migration in the file.
        found: u32,
        /// Number of the last migration in this binary.
        known: u32,
    },
    /// A migration in the file differs from the one of that number in this binary.
    #[error(
        "{}: migration {number} was applied as `{found}` and is `{known}` here, or its text was changed; use the program that wrote the file",
        .path.display()
    )]
    ChangedMigration {
        /// The file.
        path: Arc<Path>,
        /// The migration's number.
        number: u32,
        /// Its name in the file.
        found: String,
        /// Its name in this binary.
        known: &'static str,
    },
    /// Folder or file cannot be written.
    #[error("{}: cannot be opened for writing ({detail}); make it writable for this user, or name another place", .path.display())]
    ReadOnly {
        /// The folder or file.
        path: Arc<Path>,
        /// The system's words.
        detail: String,
    },
    /// No space left for the file or its tables.
    #[error("{}: no space left on the disk; free some and start again", .path.display())]
    Full {
        /// The file.
        path: Arc<Path>,
    },
    /// Another handle, in this process or another, has the file.
    #[error("{}: in use by another process; stop that one first", .path.display())]
    Locked {
        /// The file.
        path: Arc<Path>,
    },
    /// Another process kept the log's index open while the one before this ended in the middle of a copy. Of the pages
    /// that the index counts as copied some may have failed to reach the disk, and they would not be copied again.
    #[error(
        "{}: when an earlier process ended in the middle of a copy, {} kept the file open, so the copied part may not be on the disk; end that program and start again",
        .path.display(),
        names_of(.holders)
    )]
    IndexKept {
        /// The file.
        path: Arc<Path>,
        /// The processes that have it open, as far as the system tells.
        holders: Vec<LogReader>,
    },
    /// SQLite kept another setting than the one asked for.
    #[error("{}: SQLite would not set {pragma} to {wanted}, it says {found}; without it answers would not be durable: check the file system", .path.display())]
    PragmaNotApplied {
        /// The file.
        path: Arc<Path>,
        /// Name of the setting.
        pragma: &'static str,
        /// The value asked for.
        wanted: String,
        /// The value read back.
        found: String,
    },
    /// The file's content contradicts itself.
    #[error("{}: the file is damaged ({detail}); keep a copy of it and restore a backup", .path.display())]
    Corrupt {
        /// The file.
        path: Arc<Path>,
        /// SQLite's words.
        detail: String,
    },
    /// A migration did not run; its transaction was undone.
    #[error("{}: migration {number} ({name}) did not run: {source}; nothing of it was kept", .path.display())]
    Migration {
        /// The file.
        path: Arc<Path>,
        /// The migration's number.
        number: u32,
        /// Its name.
        name: &'static str,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The disk or the system refused.
    #[error("{}: {source}; check the disk and the path", .path.display())]
    Io {
        /// The file or folder.
        path: Arc<Path>,
        /// The system's error.
        source: std::io::Error,
    },
    /// Any other answer of SQLite.
    #[error("{}: {source}", .path.display())]
    Sql {
        /// The file.
        path: Arc<Path>,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

fn names_of(holders: &[LogReader]) -> String {
    match holders {
        [] => "another process".to_owned(),
        holders => holders.iter().map(LogReader::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// What a storage error at `COMMIT`, or in a checkpoint, means for the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aftermath {
    /// The transaction is undone and the next one may well succeed.
    GoOn,
    /// The state of the disk is unknown: nothing may be claimed any more.
    Stop,
}

impl StorageError {
    /// SQLite's error as ours, for the file at `path`.
    pub(crate) fn of(path: Arc<Path>, source: rusqlite::Error) -> Self {
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::SystemIoFailure) => Self::Io { path, detail: source.to_string() },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt { path, detail: source.to_string() }
            }
            Some(
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Busy { path },
            Some(_) | None => Self::Sql { path, source: Arc::new(source) },
        }
    }

    /// After a failed sync the kernel may have dropped the very pages it could not write and marked them
    /// clean, so a second sync answers "done" about data that is gone. Hence an I/O error at commit is
    /// final. Lack of space is not: SQLite meets it while writing, before the commit record is whole.
    pub(crate) fn aftermath(&self) -> Aftermath {
        match self {
            Self::Full { .. } | Self::Busy { .. } => Aftermath::GoOn,
            Self::Sql { source, .. } => match source.sqlite_error_code() {
                Some(ErrorCode::ConstraintViolation | ErrorCode::OperationInterrupted) => Aftermath::GoOn,
                Some(_) | None => Aftermath::Stop,
            },
            Self::Io { .. }
            | Self::Corrupt { .. }
            | Self::QueueFull { .. }
            | Self::LogFull { .. }
            | Self::ReadTooLong { .. }
            | Self::Panicked { .. }
            | Self::RolledBack { .. }
            | Self::Closed { .. }
            | Self::OutcomeUnknown { .. }
            | Self::Stopped { .. } => Aftermath::Stop,
        }
    }

    /// The error without any word on what is stored, for a store that stops because of it.
    pub(crate) fn as_cause(&self) -> String {
        match self {
            Self::Io { path, detail } => {
                format!("{}: the disk answered with an error ({detail})", path.display())
            }
            other => other.to_string(),
        }
    }

    /// Whether the error says that nothing of the request is stored, which then holds after a crash too.
    pub fn denies_storage(&self) -> bool {
        match self {
            Self::OutcomeUnknown { .. } => false,
            Self::QueueFull { .. }
            | Self::Full { .. }
            | Self::Io { .. }
            | Self::Corrupt { .. }
            | Self::LogFull { .. }
            | Self::Busy { .. }
            | Self::ReadTooLong { .. }
            | Self::Panicked { .. }
            | Self::RolledBack { .. }
            | Self::Closed { .. }
            | Self::Stopped { .. }
            | Self::Sql { .. } => true,
        }
    }

    /// The file this is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::QueueFull { path, .. }
            | Self::Full { path }
            | Self::Io { path, .. }
            | Self::Corrupt { path, .. }
            | Self::LogFull { path, .. }
            | Self::Busy { path }
            | Self::ReadTooLong { path, .. }
            | Self::Panicked { path, .. }
            | Self::RolledBack { path, .. }
            | Self::Closed { path }
            | Self::OutcomeUnknown { path, .. }
            | Self::Stopped { path, .. }
            | Self::Sql { path, .. } => path,
        }
    }
}

/// Why a log cannot start over, and what ends that.
fn way_out(readers: &[LogReader]) -> String {
    let names: Vec<String> = readers.iter().map(LogReader::to_string).collect();
    if names.is_empty() {
        "before it is copied into the file: wait for that".into()
    } else {
        format!("while the file is read by {}: end that read", names.join(", "))
    }
}

impl From<rusqlite::Error> for StorageError {
    /// Inside a job or a read, the error names the file at hand and is remembered as the cause, should
    /// SQLite have given up the whole transaction over it.
    fn from(source: rusqlite::Error) -> Self {
        let error = Self::of(scene::file(), source);
        scene::note(&error);
        error
    }
}

impl OpenError {
    /// SQLite's error while opening the file at `path`.
    pub(crate) fn of(path: Arc<Path>, source: rusqlite::Error) -> Self {
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, detail: source.to_string() },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::ReadOnly { path, detail: source.to_string() }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            Some(ErrorCode::SystemIoFailure) => Self::Io { path, source: std::io::Error::other(source) },
            Some(_) | None => Self::Sql { path, source },
        }
    }

    /// The system's error about `path`, outside SQLite.
    pub(crate) fn of_system(path: &Path, source: std::io::Error) -> Self {
        let path: Arc<Path> = path.into();
        match source.kind() {
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly { path, detail: source.to_string() }
            }
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::Full { path },
            _ => Self::Io { path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn sqlite(code: i32) -> StorageError {
        StorageError::of(
            Path::new("/x.db").into(),
            rusqlite::Error::SqliteFailure(ffi::Error::new(code), None),
        )
    }

    #[test]
    fn each_code_of_sqlite_leads_to_its_aftermath() {
        use Aftermath::{GoOn, Stop};
        for (code, aftermath) in [
            (ffi::SQLITE_FULL, GoOn),
            (ffi::SQLITE_BUSY, GoOn),
            (ffi::SQLITE_CONSTRAINT_FOREIGNKEY, GoOn),
            (ffi::SQLITE_INTERRUPT, GoOn),
            (ffi::SQLITE_IOERR_FSYNC, Stop),
            (ffi::SQLITE_IOERR_WRITE, Stop),
            (ffi::SQLITE_CORRUPT, Stop),
            (ffi::SQLITE_NOMEM, Stop),
        ] {
            assert_eq!(sqlite(code).aftermath(), aftermath, "code {code}");
        }
    }

    #[test]
    fn a_full_log_names_the_processes_that_read_it() {
        let full = |readers| StorageError::LogFull { path: Path::new("/x.db").into(), pages: 9, readers };
        let reader = LogReader { process: 4711, program: Some("sqlite3".into()) };
        assert!(full(vec![reader]).to_string().contains("read by `sqlite3` (process 4711): end that read"));
        assert!(full(vec![]).to_string().contains("wait for that"));
    }

    #[test]
    fn every_storage_error_names_its_file() {
        for code in
            [ffi::SQLITE_FULL, ffi::SQLITE_IOERR, ffi::SQLITE_CORRUPT, ffi::SQLITE_BUSY, ffi::SQLITE_ERROR]
        {
            let error = sqlite(code);
            assert!(error.to_string().starts_with("/x.db: "), "{error}");
            assert_eq!(error.path(), Path::new("/x.db"));
        }
    }
}
