//! Door ③: what the link brought becomes a row once per (sender, id, recipient), before it is acked.
//!
//! - A row that is there already is acked again with the rung it has now.
//! - A message past its own deadline is acked `expired` and not stored; one stored in time stays.
//! - A row that cannot be stored is refused by name and stops nobody else in its frame.

use model::{ClientMessageId, ConversationId, DeliveryRung, MemberId, MessageId, Priority, Timestamp};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, named_params};
use sqlite::StorageError;

use crate::column::{Sql, get};
use crate::went_back::count_back;
use crate::{Mailbox, sql};

/// A message for one recipient, as the link brought it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The broker's message.
    pub id: MessageId,
    /// Who sent it.
    pub sender: MemberId,
    /// The sender's id for it.
    pub client_message_id: ClientMessageId,
    /// For whom.
    pub recipient: MemberId,
    /// Its log.
    pub conversation: ConversationId,
    /// Its place there.
    pub history_id: u64,
    /// What is handed to the recipient.
    pub envelope: Vec<u8>,
    /// Its own deadline, in broker time.
    pub deliver_by: Option<Timestamp>,
    /// When it was read, as far as the broker knows.
    pub read_at: Option<Timestamp>,
    /// Whether an earlier life of this inbox may have had it.
    pub redelivered: bool,
    /// Orders its recipient's turns between conversations.
    pub priority: Priority,
    /// How far it had come, when it is sent again because this inbox went back to an older copy.
    pub again: Option<DeliveryRung>,
}

/// What became of one arrival, true after the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The broker's message.
    pub id: MessageId,
    /// For whom.
    pub recipient: MemberId,
    /// What to tell the broker, and whether to wake anybody.
    pub arrival: Arrival,
}

/// See [`Recorded`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Stored by this call: ack its rung, wake its recipient.
    Fresh {
        /// Its place in this inbox.
        seq: u64,
        /// `delivered`, or how far it had come before this inbox went back.
        rung: DeliveryRung,
        /// When.
        at: Timestamp,
        /// When it was read, in an earlier life of this inbox.
        read_at: Option<Timestamp>,
    },
    /// Stored before: ack the rung it has by now.
    Duplicate {
        /// Its place in this inbox.
        seq: u64,
        /// How far it came.
        rung: DeliveryRung,
        /// When it came there.
        at: Timestamp,
        /// When it was read.
        read_at: Option<Timestamp>,
    },
    /// Past its deadline and not stored: ack `expired`.
    Late {
        /// When it was refused.
        at: Timestamp,
    },
    /// It cannot be stored: refuse it by name.
    Poison {
        /// Why, for the log.
        cause: String,
    },
}

impl Recorded {
    /// The rung to ack, or none for a row to refuse.
    pub fn ack(&self) -> Option<(DeliveryRung, Timestamp)> {
        match self.arrival {
            Arrival::Fresh { rung, at, .. } | Arrival::Duplicate { rung, at, .. } => Some((rung, at)),
            Arrival::Late { at } => Some((DeliveryRung::Expired, at)),
            Arrival::Poison { .. } => None,
        }
    }

    /// Its place in this inbox, to be said with the rung.
    pub fn place(&self) -> Option<u64> {
        match self.arrival {
            Arrival::Fresh { seq, .. } | Arrival::Duplicate { seq, .. } => Some(seq),
            Arrival::Late { .. } | Arrival::Poison { .. } => None,
        }
    }

    /// When it was read, to be said with the rung.
    pub fn read_at(&self) -> Option<Timestamp> {
        match self.arrival {
            Arrival::Fresh { read_at, .. } | Arrival::Duplicate { read_at, .. } => read_at,
            Arrival::Late { .. } | Arrival::Poison { .. } => None,
        }
    }
}

impl Mailbox {
    /// Stores what is new and says what to tell the broker, row by row in the given order.
    pub async fn record(
        &self,
        arrived: Vec<Arrived>,
        now: Timestamp,
        broker_now: Timestamp,
    ) -> Result<Vec<Recorded>, StorageError> {
        self.db
            .write_checked("mailbox.record", move |conn| {
                let mut recorded = Vec::with_capacity(arrived.len());
                let mut back = 0;
                for row in &arrived {
                    let arrival = record(conn, row, now, broker_now).or_else(poison)?;
                    let is_back = row.again.is_some() && matches!(arrival, Arrival::Fresh { .. });
                    back += u64::from(is_back);
                    recorded.push(Recorded { id: row.id, recipient: row.recipient, arrival });
                }
                count_back(conn, back)?;
                Ok(recorded)
            })
            .await
    }
}

/// What is wrong with the row itself concerns the row alone; anything else undoes the frame, which then
/// comes again.
fn poison(error: rusqlite::Error) -> rusqlite::Result<Arrival> {
    let of_the_row = match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch) => true,
        Some(_) => false,
        None => matches!(error, rusqlite::Error::ToSqlConversionFailure(_)),
    };
    if of_the_row { Ok(Arrival::Poison { cause: error.to_string() }) } else { Err(error) }
}

struct Known {
    seq: u64,
    rung: DeliveryRung,
    at: Timestamp,
    read_at: Option<Timestamp>,
    message: MessageId,
}

fn record(
    conn: &Connection,
    row: &Arrived,
    now: Timestamp,
    broker_now: Timestamp,
) -> rusqlite::Result<Arrival> {
    let key = named_params! {
        ":sender": Sql(&row.sender), ":client_message_id": Sql(&row.client_message_id),
        ":recipient": Sql(&row.recipient),
    };
    if let Some(known) = conn.prepare_cached(sql::RECORD_FIND)?.query_row(key, known).optional()? {
        if known.message != row.id {
            rename(conn, &known, row)?;
        }
        let (rung, at) = match row.again {
            Some(told) if told > known.rung => {
                heard(conn, known.seq, told, row.read_at, now)?;
                (told, now)
            }
            Some(_) | None => (known.rung, known.at),
        };
        return Ok(Arrival::Duplicate { seq: known.seq, rung, at, read_at: known.read_at });
    }
    // What comes again was in this inbox before its deadline.
    if row.again.is_none() && row.deliver_by.is_some_and(|deliver_by| broker_now >= deliver_by) {
        return Ok(Arrival::Late { at: now });
    }
    insert(conn, row, now)
}

fn insert(conn: &Connection, row: &Arrived, now: Timestamp) -> rusqlite::Result<Arrival> {
    conn.prepare_cached(sql::RECORD_INSERT)?.execute(named_params! {
        ":sender": Sql(&row.sender), ":client_message_id": Sql(&row.client_message_id),
        ":recipient": Sql(&row.recipient), ":message": Sql(&row.id), ":conversation": Sql(&row.conversation),
        ":history_id": row.history_id, ":deliver_by": Sql(&row.deliver_by), ":now": Sql(&now),
        ":read_at": Sql(&row.read_at), ":redelivered": row.redelivered, ":priority": Sql(&row.priority),
    })?;
    let seq = conn.last_insert_rowid();
    conn.prepare_cached(sql::RECORD_INSERT_ENVELOPE)?
        .execute(named_params! {":seq": seq, ":envelope": row.envelope})?;
    let (seq, rung) = (seq.unsigned_abs(), row.again.unwrap_or(DeliveryRung::Delivered));
    if rung > DeliveryRung::Delivered {
        heard(conn, seq, rung, row.read_at, now)?;
    }
    Ok(Arrival::Fresh { seq, rung, at: now, read_at: row.read_at })
}

/// How far a message had come before this inbox went back.
fn heard(
    conn: &Connection,
    seq: u64,
    rung: DeliveryRung,
    read_at: Option<Timestamp>,
    now: Timestamp,
) -> rusqlite::Result<()> {
    conn.prepare_cached(sql::RECORD_HEARD)?.execute(named_params! {
        ":seq": seq, ":rung": Sql(&rung), ":read_at": Sql(&read_at), ":now": Sql(&now),
    })?;
    if rung == DeliveryRung::Processed {
        // A turn of the older copy is of work that is done.
        let turn = named_params! {":seq": seq, ":now": Sql(&now)};
        conn.prepare_cached(sql::RECORD_HEARD_TURN)?.execute(turn)?;
    }
    Ok(())
}

fn rename(conn: &Connection, known: &Known, row: &Arrived) -> rusqlite::Result<()> {
    conn.prepare_cached(sql::RECORD_RENAME)?.execute(named_params! {
        ":seq": known.seq, ":held": Sql(&known.message), ":message": Sql(&row.id),
        ":conversation": Sql(&row.conversation), ":history_id": row.history_id,
    })?;
    Ok(())
}

fn known(row: &Row<'_>) -> rusqlite::Result<Known> {
    Ok(Known {
        seq: row.get("seq")?,
        rung: get(row, "rung")?,
        at: get(row, "rung_at")?,
        read_at: get(row, "read_at")?,
        message: get(row, "broker_message_id")?,
    })
}
