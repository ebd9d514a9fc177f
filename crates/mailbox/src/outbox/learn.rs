//! Rows that ended without anybody knowing whether the broker has them: asked about with a fence on each
//! connect, and right after they end while a link is up.

use model::admission::StatusAnswer;
use model::outbox::{Learnt, Outcome, Status, learn};
use model::{ClientMessageId, Fingerprint, MemberId, RowId, Timestamp, limits};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use sqlite::StorageError;

use super::{Standing, one};
use crate::column::{Sql, get};
use crate::{Mailbox, sql};

/// A row to ask the broker about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// Its place.
    pub seq: u64,
    /// Its id.
    pub row: RowId,
    /// Who sent it.
    pub sender: MemberId,
    /// Under which id.
    pub client_message_id: ClientMessageId,
    /// What was asked.
    pub fingerprint: Fingerprint,
    /// When the first copy left, in broker time.
    pub first_attempt_at: Timestamp,
}

/// The broker's word on one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowStatus {
    /// Which row.
    pub seq: u64,
    /// What it was asked.
    pub fingerprint: Fingerprint,
    /// The word.
    pub answer: StatusAnswer,
}

/// What the broker's words did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// Rows that turned out accepted, dead ones and aborted ones.
    pub accepted: Vec<RowId>,
    /// Rows that never were, and never will be.
    pub not_accepted: Vec<RowId>,
    /// Rows nobody can tell of any more.
    pub unknown_for_good: Vec<RowId>,
}

impl Mailbox {
    /// Rows behind `after_seq` the broker should be asked about, oldest first.
    pub async fn unsettled(&self, after_seq: u64, limit: usize) -> Result<Vec<Unsettled>, StorageError> {
        self.db
            .read("mailbox.unsettled", move |conn| {
                let page = named_params! {":after": after_seq, ":limit": limit.min(limits::PAGE_ROWS_MAX)};
                let mut statement = conn.prepare_cached(sql::UNSETTLED)?;
                let rows = statement.query_map(page, unsettled)?.collect::<Result<_, _>>()?;
                Ok(rows)
            })
            .await
    }

    /// Applies the broker's words.
    pub async fn learn(&self, words: Vec<RowStatus>, now: Timestamp) -> Result<Learned, StorageError> {
        self.db
            .write("mailbox.learn", move |conn| {
                let mut learned = Learned::default();
                for word in &words {
                    apply(conn, word, now, &mut learned)?;
                }
                Ok(learned)
            })
            .await
    }
}

fn apply(conn: &Connection, word: &RowStatus, now: Timestamp, learned: &mut Learned) -> rusqlite::Result<()> {
    let key = named_params! {":seq": word.seq, ":fingerprint": Sql(&word.fingerprint)};
    let found = conn.prepare_cached(sql::LEARN_ROW)?.query_row(key, |row| asked(row, word)).optional()?;
    let Some((id, standing)) = found else { return Ok(()) };
    match learn(standing.status, word.answer) {
        Learnt::Done(receipt) => {
            standing.done(conn, &receipt, now)?;
            learned.accepted.push(id);
        }
        Learnt::LateAck(receipt) => {
            standing.late_ack(conn, &receipt, now)?;
            learned.accepted.push(id);
        }
        Learnt::NotAccepted => {
            if settle_outcome(conn, &standing, Outcome::NotAccepted, now)? {
                learned.not_accepted.push(id);
            }
        }
        Learnt::Final => {
            if settle_outcome(conn, &standing, Outcome::Unknown, now)? {
                learned.unknown_for_good.push(id);
            }
        }
        Learnt::Nothing => {}
    }
    Ok(())
}

/// Whether that was news: an outcome that is known already stays.
fn settle_outcome(
    conn: &Connection,
    standing: &Standing,
    outcome: Outcome,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    let changed = conn.prepare_cached(sql::LEARN_OUTCOME)?.execute(named_params! {
        ":seq": standing.seq, ":status": Sql(&standing.status), ":outcome": Sql(&outcome), ":now": Sql(&now),
    })?;
    if changed == 0 { Ok(false) } else { one(changed).map(|()| true) }
}

fn asked(row: &Row<'_>, word: &RowStatus) -> rusqlite::Result<(RowId, Standing)> {
    let standing = Standing {
        seq: word.seq,
        status: get::<Status>(row, "status")?,
        fingerprint: word.fingerprint,
        broker_message_id: get(row, "broker_message_id")?,
        successor: get(row, "superseded_by")?,
    };
    Ok((get(row, "id")?, standing))
}

fn unsettled(row: &Row<'_>) -> rusqlite::Result<Unsettled> {
    Ok(Unsettled {
        seq: row.get("seq")?,
        row: get(row, "id")?,
        sender: get(row, "sender_member_id")?,
        client_message_id: get(row, "client_message_id")?,
        fingerprint: get(row, "request_fingerprint")?,
        first_attempt_at: get(row, "first_attempt_at")?,
    })
}
