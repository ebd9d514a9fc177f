//! A whole copy of a database file that another process may be writing, and a look through such a copy.
//!
//! - The copy is one read transaction: it holds what was committed when it began, without a log beside it.
//! - The source is only read. While the copy runs, its log cannot start over, so it grows by what is written meanwhile.
//! - Nothing is synced here but by its caller, who knows which files belong together.

use std::fs;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// Why there is no copy, or why it cannot be relied on.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// SQLite's word.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// Something in the file contradicts itself.
    #[error("damaged: {detail}")]
    Damaged {
        /// The first thing found, in SQLite's words.
        detail: String,
    },
}

/// Steps of SQLite between two looks at how long the copy is: a few milliseconds.
const STEPS_BETWEEN_LOOKS: i32 = 100_000;

/// A source that is open and not copied yet.
pub struct CopySource {
    conn: Connection,
}

impl CopySource {
    /// Opens `source` for reading.
    pub fn open(source: &Path) -> Result<Self, CopyError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(source, flags)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(Self { conn })
    }

    /// Writes what is committed now to `target`, an empty file. Tells again and again how long that is by now.
    pub fn copy_into(
        mut self,
        target: &Path,
        mut bytes_done: impl FnMut(u64) + Send + 'static,
    ) -> Result<(), CopyError> {
        let copy = target.to_owned();
        let look = move || {
            bytes_done(fs::metadata(&copy).map_or(0, |found| found.len()));
            false
        };
        self.conn.progress_handler(STEPS_BETWEEN_LOOKS, Some(look))?;
        self.conn.execute("VACUUM INTO ?1", [target.to_string_lossy()])?;
        Ok(())
    }
}

/// Looks through the whole of a file that nobody writes; answers with the last step of its schema.
pub fn look_through(path: &Path) -> Result<u32, CopyError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let shown = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    // Nothing is made beside the file.
    let conn = Connection::open_with_flags(format!("file:{shown}?immutable=1"), flags)?;
    let detail: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if detail != "ok" {
        return Err(CopyError::Damaged { detail });
    }
    Ok(conn.query_row("SELECT coalesce(max(number), 0) FROM schema_version", [], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_long_copy_tells_how_far_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let [source, target] = ["a.db", "b.db"].map(|name| folder.path().join(name));
        let conn = Connection::open(&source).unwrap();
        let rows = "CREATE TABLE t (b); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
            INSERT INTO t SELECT randomblob(400) FROM n";
        conn.execute_batch(rows).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = Arc::clone(&told);
        let copied = CopySource::open(&source).unwrap();
        copied.copy_into(&target, move |bytes| telling.lock().unwrap().push(bytes)).unwrap();
        let (told, whole) = (told.lock().unwrap(), fs::metadata(&target).unwrap().len());
        assert!(
            told.is_sorted() && told.iter().any(|bytes| (1..=whole).contains(bytes)),
            "{told:?} of {whole}"
        );
    }
}
