//! Door ①: a caller's message becomes a row, or meets the row that has its id.

use std::sync::{Arc, LazyLock};

use model::outbox::{Found, Verdict, decide};
use model::{ClientMessageId, Fingerprint, MemberId, RowId, Timestamp, limits};
use rusqlite::types::{ToSqlOutput, Value};
use rusqlite::{Connection, Row, params};
use sqlite::{Gathering, InsertMany, StorageError};

use super::names::Names;
use super::row;
use crate::column::{Stored, get};
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

    fn has_name_of(&self, other: &NewRow) -> bool {
        self.client_message_id == other.client_message_id && self.sender == other.sender
    }

    /// Whether its payload stands in its row.
    fn is_short(&self) -> bool {
        self.payload.len() <= limits::SHORT_BODY_BYTES
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
        let mut door = Door::open(conn, &names);
        let accepted = asked.iter().map(|new| door.accept(new)).collect::<rusqlite::Result<_>>()?;
        door.close()?;
        Ok(accepted)
    })
}

impl Mailbox {
    /// Stores the message unless its id is taken; the verdict tells which. No verdict changes a row.
    pub async fn accept(&self, new: NewRow) -> Result<Accepted, StorageError> {
        let accepted = self.db.write_gathered(&self.accepts, new).await?;
        self.file_names_if_due().await;
        Ok(accepted)
    }

    /// What [`Mailbox::accept`] answers to an id that has a row already; none when the id is new. It only reads, so a
    /// full disk does not stand in its way.
    pub async fn accepted_before(
        &self,
        sender: MemberId,
        client_message_id: ClientMessageId,
        fingerprint: Fingerprint,
    ) -> Result<Option<Accepted>, StorageError> {
        let names = Arc::clone(&self.names);
        self.db
            .read("mailbox.accepted_before", move |conn| {
                let held = held_row(conn, &names, &sender, &client_message_id)?;
                Ok(held.map(|(found, row, enqueued_at)| Accepted {
                    verdict: decide(Some(&found), &fingerprint),
                    row,
                    enqueued_at,
                }))
            })
            .await
    }
}

/// Stores the message inside a job of the caller's.
pub(crate) fn accept(conn: &Connection, names: &Names, new: &NewRow) -> rusqlite::Result<Accepted> {
    let mut door = Door::open(conn, names);
    let accepted = door.accept(new)?;
    door.close()?;
    Ok(accepted)
}

/// The row and its payload, behind every row its lane has.
pub(super) fn insert(conn: &Connection, names: &Names, new: &NewRow) -> rusqlite::Result<()> {
    let mut door = Door::open(conn, names);
    door.inside.push(Inside { new, named: new.is_named() });
    door.close()
}

/// Those who come together. They are judged one after the other and inserted together, before the door is closed.
struct Door<'job> {
    conn: &'job Connection,
    names: &'job Names,
    /// Judged to be new, and not inserted yet.
    inside: Vec<Inside<'job>>,
}

/// A message that will be a row.
struct Inside<'job> {
    new: &'job NewRow,
    /// Whether its caller named it.
    named: bool,
}

impl<'job> Door<'job> {
    fn open(conn: &'job Connection, names: &'job Names) -> Self {
        Self { conn, names, inside: Vec::new() }
    }

    fn accept(&mut self, new: &'job NewRow) -> rusqlite::Result<Accepted> {
        let named = new.is_named();
        let held = if named { self.held(new)? } else { None };
        let (found, row, enqueued_at) = match held {
            Some((found, row, enqueued_at)) => (Some(found), row, enqueued_at),
            None => (None, new.row, new.enqueued_at),
        };
        let verdict = decide(found.as_ref(), &new.fingerprint);
        if verdict == Verdict::Insert {
            self.inside.push(Inside { new, named });
        }
        Ok(Accepted { verdict, row, enqueued_at })
    }

    /// The row that has the message's name already.
    fn held(&mut self, new: &NewRow) -> rusqlite::Result<Option<(Found, RowId, Timestamp)>> {
        if self.inside.iter().any(|inside| inside.new.has_name_of(new)) {
            self.close()?;
        }
        held_row(self.conn, self.names, &new.sender, &new.client_message_id)
    }

    /// Inserts whoever is inside.
    fn close(&mut self) -> rusqlite::Result<()> {
        if self.inside.is_empty() {
            return Ok(());
        }
        INSERT.insert(self.conn, &self.inside, Inside::values)?;
        // Places are given without gaps, in the order of the rows.
        let first = self.conn.last_insert_rowid().unsigned_abs() + 1 - self.inside.len() as u64;
        for (seq, inside) in (first..).zip(self.inside.drain(..)) {
            let Inside { new, named } = inside;
            if !new.is_short() {
                self.conn.prepare_cached(sql::OUTBOX_INSERT_PAYLOAD)?.execute(params![seq, new.payload])?;
            }
            if named {
                self.names.add(&new.sender, &new.client_message_id, seq);
            }
        }
        Ok(())
    }
}

static INSERT: LazyLock<InsertMany> = LazyLock::new(|| InsertMany::new(sql::OUTBOX_INSERT));

impl Inside<'_> {
    fn values(&self) -> [ToSqlOutput<'_>; 10] {
        let new = self.new;
        let payload = new.is_short().then_some(new.payload.as_slice());
        [
            new.row.store(),
            new.sender.store(),
            new.client_message_id.store(),
            new.fingerprint.store(),
            new.to_asked.as_str().into(),
            new.lane.as_str().into(),
            new.enqueued_at.store(),
            new.deliver_by.store(),
            payload.map_or(ToSqlOutput::Owned(Value::Null), ToSqlOutput::from),
            self.named.into(),
        ]
    }
}

/// The row that has this name of its sender's.
fn held_row(
    conn: &Connection,
    names: &Names,
    sender: &MemberId,
    name: &ClientMessageId,
) -> rusqlite::Result<Option<(Found, RowId, Timestamp)>> {
    let place = names.place_of(conn, sender, name)?;
    let read = |seq| conn.prepare_cached(sql::ACCEPT_FIND)?.query_row([seq], held);
    place.map(read).transpose()
}

fn held(row: &Row<'_>) -> rusqlite::Result<(Found, RowId, Timestamp)> {
    let found = Found { fingerprint: get(row, "request_fingerprint")?, state: row::state(row)? };
    Ok((found, get(row, "id")?, get(row, "enqueued_at")?))
}
