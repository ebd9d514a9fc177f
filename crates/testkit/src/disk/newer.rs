//! A file as a later version of the product would leave it.

use std::path::Path;

use rusqlite::Connection;

/// A number no release will reach.
const FROM_THE_FUTURE: i64 = 9_999;

/// Records one more migration in the file at `path`, one this version does not know.
pub fn raise_schema_version(path: &Path) -> rusqlite::Result<()> {
    let conn = Connection::open(path)?;
    let add = "INSERT INTO schema_version (number, name, checksum) SELECT ?1, 'later', checksum FROM schema_version LIMIT 1";
    conn.execute(add, [FROM_THE_FUTURE])?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}
