//! The table the engine is measured with: shaped like an outbox, 256 bytes a row, keyed by time-ordered ids.

use sqlite::rusqlite::{Connection, OptionalExtension, params};
use sqlite::{Migration, Schema, StorageError};

const SQL: &str = "CREATE TABLE item (
    seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, state INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX item_pending ON item (seq) WHERE state = 0;";

pub const SCHEMA: Schema =
    Schema { migrations: &[Migration { number: 1, name: "items", sql: SQL }], sum: SQL };

const BODY: [u8; 256] = [7; 256];

/// An id as a daemon mints it: time first, then the caller.
pub fn id(n: u64, caller: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&n.to_be_bytes());
    id[8..].copy_from_slice(&caller.to_be_bytes());
    id
}

/// What an accept does: look the id up, then insert.
pub fn accept(conn: &Connection, id: [u8; 16]) -> Result<(), StorageError> {
    if find(conn, id)?.is_none() {
        insert(conn, id)?;
    }
    Ok(())
}

/// The row of an id.
pub fn find(conn: &Connection, id: [u8; 16]) -> Result<Option<i64>, StorageError> {
    let mut select = conn.prepare_cached("SELECT seq FROM item WHERE id = ?1")?;
    Ok(select.query_row([id], |row| row.get(0)).optional()?)
}

/// A done row, which is what most rows of an old file are.
pub fn insert(conn: &Connection, id: [u8; 16]) -> Result<(), StorageError> {
    let mut insert = conn.prepare_cached("INSERT INTO item (id, state, body) VALUES (?1, 2, ?2)")?;
    insert.execute(params![id, BODY])?;
    Ok(())
}
