//! Looking at the outbox; nothing here writes.

use std::sync::Arc;

use model::outbox::{OutboxState, Status};
use model::{ClientMessageId, MemberId, MessageId, RowId, Timestamp, limits};
use rusqlite::{Connection, OptionalExtension, Params, named_params};
use sqlite::StorageError;

use super::names::Names;
use super::row::{self, OutboxRow};
use crate::column::{Sql, get};
use crate::{Mailbox, sql};

/// How a row may be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxKey {
    /// By its own id.
    Row(RowId),
    /// By its caller's id.
    Client {
        /// Whose.
        sender: MemberId,
        /// Which.
        client_message_id: ClientMessageId,
    },
    /// By the broker's message.
    Message(MessageId),
}

/// Which rows a list shows, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxFilter {
    /// Only rows in this state.
    pub status: Option<Status>,
    /// Only rows of this sender.
    pub sender: Option<MemberId>,
    /// Only rows before this one.
    pub before_seq: Option<u64>,
    /// How many at most; bounded by [`limits::PAGE_ROWS_MAX`].
    pub limit: usize,
}

/// Rows by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxCounts {
    /// Waiting.
    pub pending: u64,
    /// On the wire.
    pub inflight: u64,
    /// Accepted by the broker.
    pub done: u64,
    /// Given up.
    pub dead: u64,
    /// Retired.
    pub aborted: u64,
    /// When the oldest row that is not accepted yet was handed over.
    pub oldest_open_at: Option<Timestamp>,
}

impl Mailbox {
    /// A page of rows, newest first.
    pub async fn outbox_list(&self, filter: OutboxFilter) -> Result<Vec<OutboxRow>, StorageError> {
        self.db.read("mailbox.outbox_list", move |conn| Ok(list(conn, &filter)?)).await
    }

    /// One row.
    pub async fn outbox_row(&self, key: OutboxKey) -> Result<Option<OutboxRow>, StorageError> {
        let names = Arc::clone(&self.names);
        self.db.read("mailbox.outbox_row", move |conn| Ok(find(conn, &names, &key)?)).await
    }

    /// A row's payload, until it is scrubbed.
    pub async fn outbox_payload(&self, row: RowId) -> Result<Option<Vec<u8>>, StorageError> {
        self.db
            .read("mailbox.outbox_payload", move |conn| {
                let Some(seq) = seq_of_row(conn, &row)? else { return Ok(None) };
                Ok(payload(conn, seq)?)
            })
            .await
    }

    /// The row with all rows before and after it in its chain of requeues, oldest first.
    pub async fn outbox_chain(&self, row: RowId) -> Result<Vec<OutboxRow>, StorageError> {
        self.db.read("mailbox.outbox_chain", move |conn| Ok(chain(conn, row)?)).await
    }

    /// Rows by state.
    pub async fn outbox_counts(&self) -> Result<OutboxCounts, StorageError> {
        self.db.read("mailbox.outbox_counts", |conn| Ok(counts(conn)?)).await
    }
}

fn list(conn: &Connection, filter: &OutboxFilter) -> rusqlite::Result<Vec<OutboxRow>> {
    let before = filter.before_seq.unwrap_or(i64::MAX.unsigned_abs());
    let (sender, limit) = (Sql(&filter.sender), filter.limit.min(limits::PAGE_ROWS_MAX));
    let page = named_params! {":before": before, ":sender": sender, ":limit": limit};
    let seqs = match filter.status {
        Some(status @ (Status::Pending | Status::Inflight)) => {
            let status = Sql(&status);
            let page =
                named_params! {":status": status, ":before": before, ":sender": sender, ":limit": limit};
            seqs(conn, sql::OUTBOX_LIST_OPEN, page)
        }
        Some(Status::Done) => seqs(conn, sql::OUTBOX_LIST_DONE, page),
        Some(Status::Dead) => seqs(conn, sql::OUTBOX_LIST_DEAD, page),
        Some(Status::Aborted) => seqs(conn, sql::OUTBOX_LIST_ABORTED, page),
        None => seqs(conn, sql::OUTBOX_LIST, page),
    };
    seqs?.into_iter().map(|seq| by_seq(conn, seq)).collect()
}

fn seqs(conn: &Connection, statement: &str, page: impl Params) -> rusqlite::Result<Vec<u64>> {
    conn.prepare_cached(statement)?.query_map(page, |row| row.get(0))?.collect()
}

/// The row a key names.
pub(super) fn find(conn: &Connection, names: &Names, key: &OutboxKey) -> rusqlite::Result<Option<OutboxRow>> {
    let seq = match key {
        OutboxKey::Row(row) => return by_row(conn, row),
        OutboxKey::Client { sender, client_message_id } => names.place_of(conn, sender, client_message_id),
        OutboxKey::Message(message) => {
            seq(conn, sql::OUTBOX_SEQ_BY_MESSAGE, named_params! {":message": Sql(message)})
        }
    };
    seq?.map(|seq| by_seq(conn, seq)).transpose()
}

/// The row with this id.
pub(super) fn by_row(conn: &Connection, row: &RowId) -> rusqlite::Result<Option<OutboxRow>> {
    seq_of_row(conn, row)?.map(|seq| by_seq(conn, seq)).transpose()
}

pub(super) fn payload(conn: &Connection, seq: u64) -> rusqlite::Result<Option<Vec<u8>>> {
    let mut statement = conn.prepare_cached(sql::OUTBOX_PAYLOAD)?;
    statement.query_row(named_params! {":seq": seq}, |row| row.get(0)).optional()
}

/// Where the row with this id stands.
pub(crate) fn seq_of_row(conn: &Connection, row: &RowId) -> rusqlite::Result<Option<u64>> {
    seq(conn, sql::OUTBOX_SEQ_BY_ROW, named_params! {":id": Sql(row)})
}

fn seq(conn: &Connection, statement: &str, key: impl Params) -> rusqlite::Result<Option<u64>> {
    conn.prepare_cached(statement)?.query_row(key, |row| row.get(0)).optional()
}

pub(super) fn by_seq(conn: &Connection, seq: u64) -> rusqlite::Result<OutboxRow> {
    conn.prepare_cached(sql::OUTBOX_ROW)?.query_row(named_params! {":seq": seq}, row::read)
}

fn chain(conn: &Connection, row: RowId) -> rusqlite::Result<Vec<OutboxRow>> {
    let Some(asked) = by_row(conn, &row)? else { return Ok(Vec::new()) };
    let mut chain = vec![asked];
    while chain.len() < limits::PAGE_ROWS_MAX
        && let Some(before) =
            seq(conn, sql::OUTBOX_SEQ_OF_REPLACED, named_params! {":id": Sql(&chain[0].row)})?
    {
        chain.insert(0, by_seq(conn, before)?);
    }
    while chain.len() < limits::PAGE_ROWS_MAX
        && let Some(OutboxRow { state: OutboxState::Aborted { successor: Some(next), .. }, .. }) =
            chain.last()
        && let Some(next) = by_row(conn, next)?
    {
        chain.push(next);
    }
    Ok(chain)
}

fn counts(conn: &Connection) -> rusqlite::Result<OutboxCounts> {
    conn.prepare_cached(sql::OUTBOX_COUNTS)?.query_row([], |row| {
        let count = |column: &str| row.get::<_, u64>(column);
        let (open, inflight) = (count("open")?, count("inflight")?);
        let (dead, aborted) = (count("dead")?, count("aborted")?);
        Ok(OutboxCounts {
            pending: open - inflight,
            inflight,
            done: count("total")? - open - dead - aborted,
            dead,
            aborted,
            oldest_open_at: get(row, "oldest_open_at")?,
        })
    })
}
