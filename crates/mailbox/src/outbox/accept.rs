//! Door ①: a caller's message becomes a row, or meets the row that has its id.

use std::sync::Arc;

use model::outbox::{Found, Verdict, decide};
use model::{ClientMessageId, Fingerprint, MemberId, RowId, Timestamp, limits};
use rusqlite::{CachedStatement, Connection, Row, params};
use sqlite::{Gathering, StorageError};

use super::names::Names;
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
    /// The caller's id for it; the row's own where the caller has none.
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

impl NewRow {
    /// Whether its caller named it. Otherwise its row does, and nobody can have used that name before.
    fn is_named(&self) -> bool {
        self.client_message_id != self.row.into()
    }
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

/// Callers that come together are one job.
pub(crate) type Accepts = Gathering<NewRow, Accepted, StorageError>;

pub(crate) fn accepts(names: &Arc<Names>) -> Accepts {
    let names = Arc::clone(names);
    Gathering::new("mailbox.accept", move |conn, asked: &[NewRow]| {
        let mut door = Door::open(conn, &names)?;
        Ok(asked.iter().map(|new| door.accept(new)).collect::<rusqlite::Result<_>>()?)
    })
}

impl Mailbox {
    /// Stores the message unless its id is taken; the verdict tells which. No verdict changes a row.
    pub async fn accept(&self, new: NewRow) -> Result<Accepted, StorageError> {
        let accepted = self.db.write_gathered(&self.accepts, new).await?;
        self.file_names_if_due().await;
        Ok(accepted)
    }
}

/// Stores the message inside a job of the caller's.
pub(crate) fn accept(conn: &Connection, names: &Names, new: &NewRow) -> rusqlite::Result<Accepted> {
    Door::open(conn, names)?.accept(new)
}

/// The row and its payload, behind every row its lane has.
pub(super) fn insert(conn: &Connection, names: &Names, new: &NewRow) -> rusqlite::Result<()> {
    Door::open(conn, names)?.insert(new, new.is_named())
}

/// The statements of the door, looked up once for all who come together.
struct Door<'conn> {
    conn: &'conn Connection,
    names: &'conn Names,
    insert: CachedStatement<'conn>,
    insert_payload: CachedStatement<'conn>,
}

impl<'conn> Door<'conn> {
    fn open(conn: &'conn Connection, names: &'conn Names) -> rusqlite::Result<Self> {
        Ok(Self {
            conn,
            names,
            insert: conn.prepare_cached(sql::OUTBOX_INSERT)?,
            insert_payload: conn.prepare_cached(sql::OUTBOX_INSERT_PAYLOAD)?,
        })
    }

    fn accept(&mut self, new: &NewRow) -> rusqlite::Result<Accepted> {
        let named = new.is_named();
        let held = if named { self.held(new)? } else { None };
        let (found, row, enqueued_at) = match held {
            Some((found, row, enqueued_at)) => (Some(found), row, enqueued_at),
            None => (None, new.row, new.enqueued_at),
        };
        let verdict = decide(found.as_ref(), &new.fingerprint);
        if verdict == Verdict::Insert {
            self.insert(new, named)?;
        }
        Ok(Accepted { verdict, row, enqueued_at })
    }

    /// The row that has the message's name already.
    fn held(&self, new: &NewRow) -> rusqlite::Result<Option<(Found, RowId, Timestamp)>> {
        let place = self.names.place_of(self.conn, &new.sender, &new.client_message_id)?;
        let read = |seq| self.conn.prepare_cached(sql::ACCEPT_FIND)?.query_row([seq], held);
        place.map(read).transpose()
    }

    fn insert(&mut self, new: &NewRow, named: bool) -> rusqlite::Result<()> {
        let is_short = new.payload.len() <= limits::SHORT_BODY_BYTES;
        // By place: looking every name up costs as much as what is done with it.
        self.insert.execute(params![
            Sql(&new.row),
            Sql(&new.sender),
            Sql(&new.client_message_id),
            Sql(&new.fingerprint),
            new.to_asked,
            new.lane,
            Sql(&new.enqueued_at),
            Sql(&new.deliver_by),
            is_short.then_some(&new.payload),
            named,
        ])?;
        let seq = self.conn.last_insert_rowid();
        if !is_short {
            self.insert_payload.execute(params![seq, new.payload])?;
        }
        let name = named.then_some((&new.sender, &new.client_message_id));
        self.names.add(name, seq.unsigned_abs());
        Ok(())
    }
}

fn held(row: &Row<'_>) -> rusqlite::Result<(Found, RowId, Timestamp)> {
    let found = Found { fingerprint: get(row, "request_fingerprint")?, state: row::state(row)? };
    Ok((found, get(row, "id")?, get(row, "enqueued_at")?))
}
