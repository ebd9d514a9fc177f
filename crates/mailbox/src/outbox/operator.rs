//! A person retires a row, or gives it a successor under a new id.
//!
//! - A row on the wire is nobody's to touch.
//! - A row that may have left this host is replaced only after the broker's word on it, or by force.
//! - The old row and its successor change in one transaction; nothing is deleted, no id comes free.

use std::sync::Arc;

use model::operator::{self, Asking, Doubt, Finality, Untouchable, Word};
use model::outbox::{AbortedBy, BrokerReceipt, Conflict, Found, Outcome};
use model::{ClientMessageId, Fingerprint, LeaseToken, RowId, Timestamp, limits};
use rusqlite::{Connection, named_params};
use sqlite::StorageError;

use super::accept::{self, NewRow};
use super::names::Names;
use super::read;
use super::row::OutboxRow;
use super::{Standing, one};
use crate::column::{Sql, get};
use crate::{Mailbox, sql};

/// A row held back from the courier while the broker is asked about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The row.
    pub row: OutboxRow,
    /// Its payload, to build the successor's from.
    pub payload: Vec<u8>,
    /// Under which it may be replaced.
    pub lease: LeaseToken,
    /// Whether the broker must be asked before.
    pub asking: Asking,
}

/// The replacement of a held row. Sender, destination and lane are the old row's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requeue {
    /// The held row.
    pub row: RowId,
    /// Its hold.
    pub lease: LeaseToken,
    /// What the broker said.
    pub word: Word,
    /// What to do when nobody can say whether it was accepted.
    pub doubt: Doubt,
    /// The successor's row.
    pub successor: RowId,
    /// The successor's id.
    pub client_message_id: ClientMessageId,
    /// What the successor asks: the old fingerprint unless its words were changed.
    pub fingerprint: Fingerprint,
    /// The successor's payload.
    pub payload: Vec<u8>,
    /// The successor's own deadline, in broker time.
    pub deliver_by: Option<Timestamp>,
    /// Now.
    pub now: Timestamp,
}

/// What became of a held row; whatever it is, the hold is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requeued {
    /// The old row is aborted and the successor pending.
    Replaced {
        /// What is known of the old row.
        outcome: Outcome,
    },
    /// The broker has it: the row is done, and there is no successor.
    AlreadyAccepted(BrokerReceipt),
    /// Nobody knows, and force was not asked for.
    Doubtful,
    /// The successor's id is used.
    IdTaken {
        /// By this row.
        holder: RowId,
        /// Why it cannot be used for the successor too.
        conflict: Conflict,
    },
}

/// Why a row cannot be held or aborted.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// No such row.
    #[error("the outbox has no row {0}")]
    NotFound(RowId),
    /// Its answer is on the way.
    #[error("row {row} is on the wire; wait for its answer")]
    Inflight {
        /// The row.
        row: RowId,
        /// What it asks.
        fingerprint: Fingerprint,
    },
    /// The broker has it.
    #[error("row {row} was accepted as {}", receipt.broker_message_id)]
    Done {
        /// The row.
        row: RowId,
        /// What it asked.
        fingerprint: Fingerprint,
        /// Where the broker has it.
        receipt: BrokerReceipt,
    },
    /// It was retired before.
    #[error("row {row} is aborted already")]
    Aborted {
        /// The row.
        row: RowId,
        /// What it asked.
        fingerprint: Fingerprint,
        /// The row that took its place.
        successor: Option<RowId>,
    },
    /// Another operator's request is under way, or this one took too long.
    #[error("row {row} is held by another request")]
    HeldElsewhere {
        /// The row.
        row: RowId,
        /// What it asks.
        fingerprint: Fingerprint,
    },
    /// Its payload was freed, or lost with a damaged file.
    #[error("row {0} has no words any more; send them again under a new id, and retire it")]
    Wordless(RowId),
    /// The file.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<rusqlite::Error> for OperatorError {
    fn from(source: rusqlite::Error) -> Self {
        OperatorError::Storage(source.into())
    }
}

impl Mailbox {
    /// Holds a pending or dead row back from the courier, for at most [`limits::OPERATOR_HOLD_MAX`].
    pub async fn hold(&self, row: RowId, now: Timestamp) -> Result<Held, OperatorError> {
        let entropy = Arc::clone(&self.entropy);
        self.db
            .write("mailbox.hold", move |conn| hold(conn, row, LeaseToken::mint(now, &*entropy), now))
            .await
    }

    /// Gives a held row back unchanged; a hold that is over already is no error.
    pub async fn release(&self, row: RowId, lease: LeaseToken) -> Result<(), StorageError> {
        self.db.write("mailbox.release", move |conn| Ok(release(conn, row, lease)?)).await
    }

    /// Replaces a held row by its successor, where the broker's word allows it.
    pub async fn requeue(&self, requeue: Requeue) -> Result<Requeued, OperatorError> {
        let names = Arc::clone(&self.names);
        let requeued = self.db.write("mailbox.requeue", move |conn| replace(conn, &names, &requeue)).await?;
        self.file_names_if_due().await;
        Ok(requeued)
    }

    /// Retires a pending or dead row at once. Whether the broker has it is learnt later, where it may.
    pub async fn abort(&self, row: RowId, by: AbortedBy, now: Timestamp) -> Result<Outcome, OperatorError> {
        self.db.write("mailbox.abort", move |conn| abort(conn, row, by, now)).await
    }
}

fn hold(conn: &Connection, id: RowId, lease: LeaseToken, now: Timestamp) -> Result<Held, OperatorError> {
    let (row, held) = free_row(conn, id)?;
    let until = now + limits::OPERATOR_HOLD_MAX;
    // A hold from a future the clock has left is over, like one from the past.
    if held.is_some_and(|held| held > now && held <= until) {
        return Err(OperatorError::HeldElsewhere { row: id, fingerprint: row.fingerprint });
    }
    one(conn.prepare_cached(sql::OPERATOR_HOLD)?.execute(named_params! {
        ":seq": row.seq, ":status": Sql(&row.state.status()), ":lease": Sql(&lease), ":until": Sql(&until),
    })?)?;
    let payload = read::payload(conn, row.seq)?.ok_or(OperatorError::Wordless(id))?;
    let asking = operator::asking(&row.state, row.first_attempt_at).map_err(|why| untouchable(&row, why))?;
    Ok(Held { row, payload, lease, asking })
}

fn release(conn: &Connection, row: RowId, lease: LeaseToken) -> rusqlite::Result<()> {
    if let Some(seq) = read::seq_of_row(conn, &row)? {
        conn.prepare_cached(sql::OPERATOR_RELEASE)?
            .execute(named_params! {":seq": seq, ":lease": Sql(&lease)})?;
    }
    Ok(())
}

fn replace(conn: &Connection, names: &Names, asked: &Requeue) -> Result<Requeued, OperatorError> {
    let (row, _) = free_row(conn, asked.row)?;
    let lease: Option<LeaseToken> = conn
        .prepare_cached(sql::OPERATOR_LEASE)?
        .query_row(named_params! {":seq": row.seq}, |row| get(row, "lease_token"))?;
    if lease != Some(asked.lease) {
        return Err(OperatorError::HeldElsewhere { row: asked.row, fingerprint: row.fingerprint });
    }
    release(conn, asked.row, asked.lease)?;
    let verdict = operator::requeue(&row.state, row.first_attempt_at, asked.word, asked.doubt)
        .map_err(|why| untouchable(&row, why))?;
    let (outcome, finality) = match verdict {
        operator::Requeue::Replace { outcome, finality } => (outcome, finality),
        operator::Requeue::NeedsForce(_) => return Ok(Requeued::Doubtful),
        operator::Requeue::AlreadyAccepted(receipt) => {
            standing(&row).done(conn, &receipt, asked.now)?;
            return Ok(Requeued::AlreadyAccepted(receipt));
        }
    };
    let settled_at = (finality == Finality::Settled).then_some(asked.now);
    if let Some(holder) = names.place_of(conn, &row.sender, &asked.client_message_id)? {
        let OutboxRow { row: holder, fingerprint, state, .. } = read::by_seq(conn, holder)?;
        let conflict = Conflict::between(&Found { fingerprint, state }, &asked.fingerprint);
        return Ok(Requeued::IdTaken { holder, conflict });
    }
    retire(
        conn,
        &row,
        &Retirement {
            by: AbortedBy::Operator,
            outcome,
            settled_at,
            now: asked.now,
            successor: Some(asked.successor),
        },
    )?;
    accept::insert(conn, names, &successor(row, asked))?;
    Ok(Requeued::Replaced { outcome })
}

fn abort(conn: &Connection, id: RowId, by: AbortedBy, now: Timestamp) -> Result<Outcome, OperatorError> {
    let (row, _) = free_row(conn, id)?;
    let outcome = operator::abort(&row.state, row.first_attempt_at).map_err(|why| untouchable(&row, why))?;
    retire(conn, &row, &Retirement { by, outcome, settled_at: None, now, successor: None })?;
    Ok(outcome)
}

/// A row an operator may touch, and until when another one does.
fn free_row(conn: &Connection, id: RowId) -> Result<(OutboxRow, Option<Timestamp>), OperatorError> {
    let row = read::by_row(conn, &id)?.ok_or(OperatorError::NotFound(id))?;
    operator::known(&row.state).map_err(|why| untouchable(&row, why))?;
    let held = row.held_until;
    Ok((row, held))
}

fn untouchable(row: &OutboxRow, why: Untouchable) -> OperatorError {
    let OutboxRow { row, fingerprint, .. } = *row;
    match why {
        Untouchable::Inflight => OperatorError::Inflight { row, fingerprint },
        Untouchable::Accepted(receipt) => OperatorError::Done { row, fingerprint, receipt },
        Untouchable::Aborted { successor } => OperatorError::Aborted { row, fingerprint, successor },
    }
}

struct Retirement {
    by: AbortedBy,
    outcome: Outcome,
    settled_at: Option<Timestamp>,
    now: Timestamp,
    successor: Option<RowId>,
}

fn retire(conn: &Connection, row: &OutboxRow, how: &Retirement) -> rusqlite::Result<()> {
    one(conn.prepare_cached(sql::OPERATOR_ABORT)?.execute(named_params! {
        ":seq": row.seq, ":status": Sql(&row.state.status()), ":now": Sql(&how.now), ":by": Sql(&how.by),
        ":successor": Sql(&how.successor), ":outcome": Sql(&how.outcome), ":settled_at": Sql(&how.settled_at),
    })?)
}

fn successor(row: OutboxRow, asked: &Requeue) -> NewRow {
    NewRow {
        row: asked.successor,
        sender: row.sender,
        client_message_id: asked.client_message_id.clone(),
        fingerprint: asked.fingerprint,
        to_asked: row.to_asked,
        lane: row.lane,
        payload: asked.payload.clone(),
        deliver_by: asked.deliver_by,
        enqueued_at: asked.now,
    }
}

fn standing(row: &OutboxRow) -> Standing {
    Standing {
        seq: row.seq,
        status: row.state.status(),
        fingerprint: row.fingerprint,
        broker_message_id: row.told_message,
        successor: None,
    }
}
