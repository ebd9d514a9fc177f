//! What callers handed over, from the first commit to the last receipt.

mod accept;
mod claim;
mod lane;
mod learn;
mod names;
mod operator;
mod read;
mod receipts;
mod recover;
mod redrive;
mod row;
mod settle;

use model::RowId;
use model::outbox::{BrokerReceipt, Status};
use model::{Fingerprint, MessageId, Timestamp};
use rusqlite::{Connection, named_params};

pub use accept::{Accepted, NewRow};
pub(crate) use accept::{Accepts, accept, accepts};
pub use claim::{ClaimRequest, Claimed, LaneFrame, Leased};
pub use lane::LaneKey;
pub use learn::{Learned, RowStatus, Unsettled};
pub(crate) use names::Names;
pub use operator::{Held, OperatorError, Requeue, Requeued};
pub(crate) use read::seq_of_row;
pub use read::{OutboxCounts, OutboxFilter, OutboxKey};
pub use receipts::Receipt;
pub use redrive::Witness;
pub use row::{OutboxRow, Rungs};
pub use settle::{RowAnswer, Settled, Settlement};

pub use model::operator::{Asking, Doubt, Word};

use crate::column::Sql;
use crate::sql;

/// A row as the rules about an acceptance need it.
struct Standing {
    seq: u64,
    status: Status,
    fingerprint: Fingerprint,
    broker_message_id: Option<MessageId>,
    successor: Option<RowId>,
}

impl Standing {
    /// The broker has it. Rungs told for another message of the broker were not this row's.
    fn done(&self, conn: &Connection, receipt: &BrokerReceipt, now: Timestamp) -> rusqlite::Result<()> {
        self.keep_rungs_of(conn, receipt.broker_message_id)?;
        self.accepted(conn, sql::SETTLE_DONE, receipt, now)
    }

    /// The broker has it although it was aborted: noted, and a copy of the same words that has not left
    /// yet is retired.
    fn late_ack(&self, conn: &Connection, receipt: &BrokerReceipt, now: Timestamp) -> rusqlite::Result<()> {
        self.keep_rungs_of(conn, receipt.broker_message_id)?;
        // First: whether the successor may have left is seen by what was known of this row until now.
        if let Some(successor) = &self.successor
            && let Some(seq) = seq_of_row(conn, successor)?
        {
            conn.prepare_cached(sql::SETTLE_RETIRE_SUCCESSOR)?.execute(named_params! {
                ":seq": seq, ":fingerprint": Sql(&self.fingerprint), ":now": Sql(&now),
            })?;
        }
        self.accepted(conn, sql::SETTLE_LATE_ACK, receipt, now)
    }

    fn keep_rungs_of(&self, conn: &Connection, message: MessageId) -> rusqlite::Result<()> {
        if self.broker_message_id.is_some_and(|held| held != message) {
            one(conn.prepare_cached(sql::RUNGS_CLEAR)?.execute(named_params! {":seq": self.seq})?)?;
        }
        Ok(())
    }

    fn accepted(
        &self,
        conn: &Connection,
        statement: &str,
        receipt: &BrokerReceipt,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        one(conn.prepare_cached(statement)?.execute(named_params! {
            ":seq": self.seq, ":now": Sql(&now), ":message": Sql(&receipt.broker_message_id),
            ":conversation": Sql(&receipt.conversation), ":history_id": receipt.history_id,
            ":accepted_at": Sql(&receipt.accepted_at),
        })?)
    }
}

/// The one writer read the row in this very transaction, so the state a statement names is the state it
/// finds; anything else undoes the job.
fn one(changed: usize) -> rusqlite::Result<()> {
    if changed == 1 { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(changed)) }
}
