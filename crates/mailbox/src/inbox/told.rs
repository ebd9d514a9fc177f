//! Rungs reached here and how far the broker knows them.

use model::receipt::rise;
use model::{DeliveryRung, MemberId, MessageId, Timestamp, limits};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use sqlite::StorageError;

use crate::column::{Sql, get};
use crate::{Mailbox, sql};

/// A rung to tell the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckRow {
    /// Its place in this inbox.
    pub seq: u64,
    /// The broker's message.
    pub id: MessageId,
    /// For whom.
    pub recipient: MemberId,
    /// How far it came.
    pub rung: DeliveryRung,
    /// When it came there.
    pub at: Timestamp,
    /// When its recipient read it.
    pub read_at: Option<Timestamp>,
}

/// A rung the broker has committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// The broker's message.
    pub id: MessageId,
    /// For whom.
    pub recipient: MemberId,
    /// How far the broker knows it.
    pub rung: DeliveryRung,
    /// Whether the broker was told in the same breath that it was read.
    pub read: bool,
}

impl Mailbox {
    /// Rungs behind `after_seq` the broker has not confirmed, oldest first: told again on each connect.
    pub async fn unconfirmed(&self, after_seq: u64, limit: usize) -> Result<Vec<AckRow>, StorageError> {
        self.db
            .read("mailbox.unconfirmed", move |conn| {
                let page = named_params! {":after": after_seq, ":limit": limit.min(limits::PAGE_ROWS_MAX)};
                let mut statement = conn.prepare_cached(sql::INBOX_UNCONFIRMED)?;
                let rows = statement.query_map(page, ack)?.collect::<Result<_, _>>()?;
                Ok(rows)
            })
            .await
    }

    /// Notes what the broker confirmed; answers how many rows that was news for. A lost note costs a
    /// repeated ack and nothing else.
    pub async fn confirm(&self, rows: Vec<Confirmed>) -> Result<usize, StorageError> {
        self.db
            .write_checked("mailbox.confirm", move |conn| {
                let mut news = 0;
                for row in &rows {
                    news += conn.prepare_cached(sql::INBOX_CONFIRM)?.execute(named_params! {
                        ":message": Sql(&row.id), ":recipient": Sql(&row.recipient), ":rung": Sql(&row.rung),
                        ":read": row.read,
                    })?;
                }
                Ok(news)
            })
            .await
    }

    /// Notes that rows were handed to their recipient's own credential; answers those that rose, to be
    /// told to the broker.
    pub async fn mark_notified(&self, seqs: Vec<u64>, now: Timestamp) -> Result<Vec<AckRow>, StorageError> {
        self.db
            .write("mailbox.notified", move |conn| {
                let risen = seqs.iter().map(|seq| notify(conn, *seq, now));
                Ok(risen.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
            })
            .await
    }
}

fn notify(conn: &Connection, seq: u64, now: Timestamp) -> rusqlite::Result<Option<AckRow>> {
    let mut statement = conn.prepare_cached(sql::INBOX_RUNG)?;
    let held = statement.query_row(named_params! {":seq": seq}, ack).optional()?;
    let Some(held) = held else { return Ok(None) };
    let Some(rung) = rise(held.rung, DeliveryRung::Notified) else { return Ok(None) };
    conn.prepare_cached(sql::INBOX_NOTIFY)?.execute(named_params! {
        ":seq": seq, ":held": Sql(&held.rung), ":rung": Sql(&rung), ":now": Sql(&now),
    })?;
    Ok(Some(AckRow { rung, at: now, ..held }))
}

fn ack(row: &Row<'_>) -> rusqlite::Result<AckRow> {
    Ok(AckRow {
        seq: row.get("seq")?,
        id: get(row, "broker_message_id")?,
        recipient: get(row, "recipient_member_id")?,
        rung: get(row, "rung")?,
        at: get(row, "rung_at")?,
        read_at: get(row, "read_at")?,
    })
}
