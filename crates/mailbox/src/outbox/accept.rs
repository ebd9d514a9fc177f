//! Door ①: a caller's message becomes a row, or meets the row that has its id.

use model::outbox::{Found, Verdict, decide};
use model::{ClientMessageId, Fingerprint, MemberId, RowId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use sqlite::StorageError;

use super::row;
use crate::column::{Sql, get};
use crate::{Mailbox, sql};

/// A message to keep until the broker has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRow {
    /// The row's own id, minted by the caller.
    pub row: RowId,
    /// Who sends it.
    pub sender: MemberId,
    /// The caller's id for it.
    pub client_message_id: ClientMessageId,
    /// What is asked.
    pub fingerprint: Fingerprint,
    /// Where to, as asked.
    pub to_asked: String,
    /// Rows of one sender and lane keep their order.
    pub lane: String,
    /// The sender's fields, as they will go on the wire.
    pub payload: Vec<u8>,
    /// Its own deadline, in broker time.
    pub deliver_by: Option<Timestamp>,
    /// Now.
    pub enqueued_at: Timestamp,
}

/// The door's answer, true after the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// What became of the id; `Insert` means that this call stored it.
    pub verdict: Verdict,
    /// The row that holds the id.
    pub row: RowId,
    /// When that row was accepted.
    pub enqueued_at: Timestamp,
}

impl Mailbox {
    /// Stores the message unless its id is taken; the verdict tells which. No verdict changes a row.
    pub async fn accept(&self, new: NewRow) -> Result<Accepted, StorageError> {
        self.db.write_checked("mailbox.accept", move |conn| Ok(accept(conn, &new)?)).await
    }
}

/// Stores the message inside a job of the caller's.
pub(crate) fn accept(conn: &Connection, new: &NewRow) -> rusqlite::Result<Accepted> {
    let held = conn
        .prepare_cached(sql::ACCEPT_FIND)?
        .query_row(
            named_params! {":sender": Sql(&new.sender), ":client_message_id": Sql(&new.client_message_id)},
            held,
        )
        .optional()?;
    let (found, row, enqueued_at) = match held {
        Some((found, row, enqueued_at)) => (Some(found), row, enqueued_at),
        None => (None, new.row, new.enqueued_at),
    };
    let verdict = decide(found.as_ref(), &new.fingerprint);
    if verdict == Verdict::Insert {
        insert(conn, new)?;
    }
    Ok(Accepted { verdict, row, enqueued_at })
}

fn held(row: &Row<'_>) -> rusqlite::Result<(Found, RowId, Timestamp)> {
    let found = Found { fingerprint: get(row, "request_fingerprint")?, state: row::state(row)? };
    Ok((found, get(row, "id")?, get(row, "enqueued_at")?))
}

/// The row and its payload, behind every row its lane has.
pub(super) fn insert(conn: &Connection, new: &NewRow) -> rusqlite::Result<()> {
    conn.prepare_cached(sql::OUTBOX_INSERT)?.execute(named_params! {
        ":id": Sql(&new.row), ":sender": Sql(&new.sender), ":client_message_id": Sql(&new.client_message_id),
        ":fingerprint": Sql(&new.fingerprint), ":to_asked": new.to_asked, ":lane": new.lane,
        ":enqueued_at": Sql(&new.enqueued_at), ":deliver_by": Sql(&new.deliver_by),
    })?;
    let seq = conn.last_insert_rowid();
    conn.prepare_cached(sql::OUTBOX_INSERT_PAYLOAD)?
        .execute(named_params! {":seq": seq, ":payload": new.payload})?;
    Ok(())
}
