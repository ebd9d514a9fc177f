//! Opening a file: settings asked for and read back, steps run, folder synced.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, OpenFlags};

use crate::checkpoint::copy;
use crate::log_index::LogIndex;
use crate::log_readers;
use crate::wait::now;
use crate::{Bounds, Freed, OpenError, Options, StorageError, folder, migrate};

/// 3.51.3 fixed a corruption of the log that a checkpoint beside a writer could cause.
const VERSION_MIN: (i32, &str) = (3_051_003, "3.51.3");

/// A file that passed every check, as the connections the engine needs.
pub(crate) struct Opened {
    pub(crate) path: Arc<Path>,
    pub(crate) writer: Connection,
    pub(crate) checkpointer: Connection,
    pub(crate) readers: Vec<Connection>,
    pub(crate) readers_here: Vec<Connection>,
    pub(crate) hold: Hold,
}

/// What makes the file this process's own, for as long as any connection is open.
pub(crate) struct Hold {
    _lock: File,
    /// The file itself, outside SQLite: closing it before the last connection would drop the locks SQLite has on it.
    data: Arc<File>,
    /// The same holds for the log's index; there is one once a connection has read the log.
    index: Option<Arc<LogIndex>>,
}

impl Hold {
    fn take(path: &Path) -> Result<Self, OpenError> {
        let lock = folder::lock(path)?;
        folder::make_file(path)?;
        let data = File::open(path).map_err(|error| OpenError::of_system(path, error))?;
        Ok(Self { _lock: lock, data: Arc::new(data), index: None })
    }

    pub(crate) fn data(&self) -> &Arc<File> {
        &self.data
    }

    pub(crate) fn index(&self) -> &Arc<LogIndex> {
        self.index.as_ref().expect("an opened file has a log, and a log has an index")
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Writer,
    Checkpointer,
    Reader,
}

/// Between two tries to open a file whose half copied log another process keeps.
const KEPT_INDEX_PAUSE: Duration = Duration::from_millis(250);

/// Opens or makes the file. What is refused is refused before anything is written.
pub(crate) fn open(options: &Options) -> Result<Opened, OpenError> {
    let begun_at = now();
    let mut is_told = false;
    loop {
        match open_once(options) {
            Err(error @ OpenError::IndexKept { .. })
                if begun_at.elapsed() < options.bounds.kept_index_wait_max =>
            {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!(%error, "waiting for a moment for that program to end");
                }
                std::thread::park_timeout(KEPT_INDEX_PAUSE);
            }
            ended => return ended,
        }
    }
}

fn open_once(options: &Options) -> Result<Opened, OpenError> {
    require_version()?;
    let path: Arc<Path> = options.path.as_path().into();
    folder::make(&path)?;
    let mut hold = Hold::take(&path)?;
    let writer = connect(options, &path, Role::Writer)?;
    migrate::inspect(&writer, &path, &options.schema)?;
    settle(&writer, options, &path, Role::Writer)?;
    require_whole_copy(&writer, &path)?;
    migrate::run(&writer, &path, &options.schema)?;
    require_log(&writer, &path)?;
    hold.index = Some(Arc::new(LogIndex::open(&path)?));
    make_durable(&writer, &path, &hold)?;
    let checkpointer = ready(options, &path, Role::Checkpointer)?;
    let ready_to_read =
        |many| (0..many).map(|_| ready(options, &path, Role::Reader)).collect::<Result<Vec<_>, _>>();
    let readers = ready_to_read(options.bounds.readers.max(1))?;
    let readers_here = ready_to_read(options.bounds.readers_here)?;
    // Before the first answer the log's name must be safe, and the removal of the journal that the
    // switch to the log used: that journal come back would undo the whole file.
    sync_folder(options, &path)?;
    Ok(Opened { path, writer, checkpointer, readers, readers_here, hold })
}

/// Makes durable whatever an earlier process left: it may have been killed between a write and its sync, and answers of
/// this one rest on those bytes.
fn make_durable(writer: &Connection, path: &Arc<Path>, hold: &Hold) -> Result<(), OpenError> {
    let lock = |sql| writer.execute_batch(sql).map_err(|source| OpenError::of(Arc::clone(path), source));
    lock("BEGIN IMMEDIATE")?;
    let rewritten = folder::rewrite_log(path);
    lock("ROLLBACK")?;
    rewritten?;
    hold.data.sync_data().map_err(|error| OpenError::of_system(path, error))?;
    match copy(writer, path, CheckpointMode::PASSIVE) {
        Ok(_) => Ok(()),
        // The log stays as it is and is synced; reads need no room.
        Err(error @ (StorageError::Full { .. } | StorageError::Busy { .. })) => {
            tracing::warn!(%error, "the log was not copied into the file at the start");
            Ok(())
        }
        Err(error) => Err(OpenError::Io { path: Arc::clone(path), source: std::io::Error::other(error) }),
    }
}

fn require_version() -> Result<(), OpenError> {
    let (number, needed) = VERSION_MIN;
    if rusqlite::version_number() >= number {
        return Ok(());
    }
    Err(OpenError::SqliteTooOld { found: rusqlite::version(), needed })
}

#[cfg(not(feature = "faults"))]
fn sync_folder(_options: &Options, path: &Path) -> Result<(), OpenError> {
    folder::sync(&folder::folder_of(path))
}

#[cfg(feature = "faults")]
fn sync_folder(options: &Options, path: &Path) -> Result<(), OpenError> {
    use crate::fault::FolderWatch;
    match &options.fault.folder {
        FolderWatch::Unwatched => folder::sync(&folder::folder_of(path)),
        FolderWatch::Told(watch) => folder::sync(&folder::folder_of(path)).map(|()| watch()),
        FolderWatch::LeftOut => Ok(()),
    }
}

fn ready(options: &Options, path: &Arc<Path>, role: Role) -> Result<Connection, OpenError> {
    let conn = connect(options, path, role)?;
    settle(&conn, options, path, role)?;
    Ok(conn)
}

fn connect(options: &Options, path: &Arc<Path>, role: Role) -> Result<Connection, OpenError> {
    let fail = |source| OpenError::of(Arc::clone(path), source);
    let access = match role {
        Role::Writer | Role::Checkpointer => OpenFlags::SQLITE_OPEN_READ_WRITE,
        Role::Reader => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    // One thread at a time uses a connection here, so SQLite's own mutex would only cost.
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = match disk(options) {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    };
    let conn = conn.map_err(fail)?;
    conn.busy_timeout(options.bounds.busy_wait).map_err(fail)?;
    conn.set_prepared_statement_cache_capacity(options.bounds.statements_max);
    // SQLite copies the log when the last connection goes. A file that is refused here shall keep its log,
    // and one that is closed has been copied by its writer before.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(fail)?;
    // A plan that depends on a bound value is made anew whenever the value changes: the cache would cache nothing.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(fail)?;
    // SQLite opens what it may not write read-only, without a word.
    if role != Role::Reader && conn.is_readonly(rusqlite::MAIN_DB).map_err(fail)? {
        return Err(OpenError::ReadOnly { path: Arc::clone(path), detail: "the file is read-only".into() });
    }
    Ok(conn)
}

#[cfg(not(feature = "faults"))]
fn disk(_options: &Options) -> Option<&str> {
    None
}

#[cfg(feature = "faults")]
fn disk(options: &Options) -> Option<&str> {
    options.fault.vfs.as_deref()
}

/// Asks for every setting the promises rest on, and believes only what is read back.
fn settle(conn: &Connection, options: &Options, path: &Arc<Path>, role: Role) -> Result<(), OpenError> {
    for (pragma, wanted) in settings(options, role) {
        let fail = |source| OpenError::of(Arc::clone(path), source);
        set(conn, pragma, &wanted).map_err(fail)?;
        let found = conn.pragma_query_value(None, pragma, |row| row.get(0)).map_err(fail)?;
        let found = spelled(&found);
        if found != wanted {
            return Err(OpenError::PragmaNotApplied { path: Arc::clone(path), pragma, wanted, found });
        }
    }
    Ok(())
}

/// Runs the statement to its very end. The switch to the log answers "wal" first and commits afterwards; an
/// error of that commit shows only to who asks for the next row.
fn set(conn: &Connection, pragma: &str, value: &str) -> rusqlite::Result<()> {
    let mut statement = conn.prepare(&format!("PRAGMA {pragma} = {value}"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// The word "wal" is what SQLite intends; pages in a log are what it does.
fn require_log(conn: &Connection, path: &Arc<Path>) -> Result<(), OpenError> {
    if logged_and_copied(conn, path)?.0 >= 0 {
        return Ok(());
    }
    let (wanted, found) = ("wal".to_owned(), "wal, but keeps no log".to_owned());
    Err(OpenError::PragmaNotApplied { path: Arc::clone(path), pragma: "journal_mode", wanted, found })
}

/// The first connection makes the log's index anew, with nothing counted as copied, unless another process has kept it.
/// Then SQLite goes on behind the pages that the index counts. A log that was copied to its end was synced.
fn require_whole_copy(conn: &Connection, path: &Arc<Path>) -> Result<(), OpenError> {
    let (pages, copied) = logged_and_copied(conn, path)?;
    if (1..pages).contains(&copied) {
        let holders = log_readers::holders_of(&LogIndex::open(path)?);
        return Err(OpenError::IndexKept { path: Arc::clone(path), holders });
    }
    Ok(())
}

/// Pages in the log, and how many of them the index counts as copied; less than nothing without a log.
fn logged_and_copied(conn: &Connection, path: &Arc<Path>) -> Result<(i32, i32), OpenError> {
    conn.wal_checkpoint_v2(Some(rusqlite::MAIN_DB), CheckpointMode::NOOP)
        .map_err(|source| OpenError::of(Arc::clone(path), source))
}

/// Name, and the value to set and to read back.
fn settings(options: &Options, role: Role) -> Vec<(&'static str, String)> {
    let Bounds { writer_cache_kib, reader_cache_kib, .. } = options.bounds;
    let cache = match role {
        Role::Writer => writer_cache_kib,
        Role::Checkpointer | Role::Reader => reader_cache_kib,
    };
    let freed = match options.freed {
        Freed::Kept => "0",
        Freed::Zeroed => "1",
    };
    let to = |name, value: &str| (name, value.to_owned());
    let mut list = vec![
        to("cache_size", &format!("-{cache}")),
        to("foreign_keys", "1"),
        // A schema written by somebody else must not run functions with side effects.
        to("trusted_schema", "0"),
        to("cell_size_check", "1"),
        to("mmap_size", "0"),
        // Sorts and undo copies hold message bodies; they stay out of the system's temporary folder.
        to("temp_store", "2"),
    ];
    match role {
        Role::Reader => list.push(to("query_only", "1")),
        Role::Writer | Role::Checkpointer => list.extend([
            to("journal_mode", "wal"),
            to("synchronous", synchronous(options)),
            to("wal_autocheckpoint", "0"),
            to("journal_size_limit", &options.bounds.log_kept_bytes.to_string()),
            to("secure_delete", freed),
        ]),
    }
    if cfg!(target_os = "macos") {
        // There a plain fsync stops at the drive's own cache.
        list.extend([to("fullfsync", "1"), to("checkpoint_fullfsync", "1")]);
    }
    list
}

const SYNCHRONOUS_FULL: &str = "2";

#[cfg(not(feature = "faults"))]
fn synchronous(_options: &Options) -> &'static str {
    SYNCHRONOUS_FULL
}

#[cfg(feature = "faults")]
fn synchronous(options: &Options) -> &'static str {
    use crate::fault::{SYNCHRONOUS_NORMAL, Synced, bug};
    match options.fault.synced {
        Synced::Full if !bug(SYNCHRONOUS_NORMAL) => SYNCHRONOUS_FULL,
        Synced::Full | Synced::Normal => "1",
    }
}

fn spelled(value: &rusqlite::types::Value) -> String {
    use rusqlite::types::Value;
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Null => "nothing".into(),
        Value::Real(number) => number.to_string(),
        Value::Blob(_) => "bytes".into(),
    }
}
