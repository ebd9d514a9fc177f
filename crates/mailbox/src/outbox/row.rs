//! An outbox row as its readers see it.

use model::outbox::{AbortedBy, BrokerReceipt, DeadReason, OutboxState, Outcome, Status, ended};
use model::receipt::{DeliveryRung, Ended, Rung, Standing};
use model::{ClientMessageId, Fingerprint, LeaseToken, MemberId, MessageId, RowId, Timestamp};
use rusqlite::Row;

use crate::column::get;

/// An outbox row, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// Its place: rows of one lane leave in this order.
    pub seq: u64,
    /// Its id.
    pub row: RowId,
    /// Who sent it.
    pub sender: MemberId,
    /// The caller's id for it.
    pub client_message_id: ClientMessageId,
    /// What was asked.
    pub fingerprint: Fingerprint,
    /// Where to, as asked.
    pub to_asked: String,
    /// Rows of one sender and lane keep their order.
    pub lane: String,
    /// When it was accepted here.
    pub enqueued_at: Timestamp,
    /// Its own deadline, in broker time.
    pub deliver_by: Option<Timestamp>,
    /// How far it came.
    pub state: OutboxState,
    /// Tries so far.
    pub attempts: u32,
    /// When it first went on the wire, in broker time; in a restored file the earliest that it may have.
    pub first_attempt_at: Option<Timestamp>,
    /// Until when its lane waits, for a pending row behind a refusal.
    pub next_attempt_at: Option<Timestamp>,
    /// The last refusal, in words.
    pub last_error: Option<String>,
    /// What receipts told.
    pub rungs: Rungs,
    /// When it was retired.
    pub aborted_at: Option<Timestamp>,
    /// When an acceptance became known after the row had ended.
    pub late_ack_at: Option<Timestamp>,
    /// When the broker's word on a row that ended `unknown` became final.
    pub outcome_settled_at: Option<Timestamp>,
    /// When its payload was scrubbed.
    pub scrubbed_at: Option<Timestamp>,
    /// Until when an operator holds it back.
    pub held_until: Option<Timestamp>,
    /// Where the broker has a row that had ended here when its acceptance became known, and stays ended.
    pub late_receipt: Option<BrokerReceipt>,
    /// The broker's message receipts spoke of, also while its acceptance is not known here.
    pub told_message: Option<MessageId>,
}

/// Instants of the rungs above `accepted`, as receipts told them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rungs {
    /// In the recipient's inbox.
    pub delivered_at: Option<Timestamp>,
    /// Its agent was woken.
    pub notified_at: Option<Timestamp>,
    /// A turn began.
    pub engaged_at: Option<Timestamp>,
    /// The turn ended.
    pub processed_at: Option<Timestamp>,
    /// Ended before the inbox: `Expired` or `DeadLetter`.
    pub ended_as: Option<DeliveryRung>,
}

impl OutboxRow {
    /// What may be claimed of it now. Receipts count only for a row the broker is known to have.
    pub fn standing(&self) -> Standing {
        match &self.state {
            OutboxState::Pending | OutboxState::Inflight { .. } => Standing::At(Rung::Queued),
            OutboxState::Done { .. } => self.rungs.held().standing(),
            OutboxState::Dead { reason, .. } => Standing::Ended(ended(*reason)),
            OutboxState::Aborted { .. } => Standing::Ended(Ended::Aborted),
        }
    }
}

impl Rungs {
    /// The highest rung told.
    pub fn held(&self) -> DeliveryRung {
        let told = [
            (self.processed_at, DeliveryRung::Processed),
            (self.engaged_at, DeliveryRung::Engaged),
            (self.notified_at, DeliveryRung::Notified),
            (self.delivered_at, DeliveryRung::Delivered),
        ];
        let highest = told.into_iter().find_map(|(at, rung)| at.map(|_| rung));
        highest.or(self.ended_as).unwrap_or(DeliveryRung::Accepted)
    }
}

pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<OutboxRow> {
    Ok(OutboxRow {
        seq: row.get("seq")?,
        row: get(row, "id")?,
        sender: get(row, "sender_member_id")?,
        client_message_id: get(row, "client_message_id")?,
        fingerprint: get(row, "request_fingerprint")?,
        to_asked: row.get("to_asked")?,
        lane: row.get("lane")?,
        enqueued_at: get(row, "enqueued_at")?,
        deliver_by: get(row, "deliver_by")?,
        state: state(row)?,
        attempts: row.get("attempts")?,
        first_attempt_at: get(row, "first_attempt_at")?,
        next_attempt_at: get(row, "next_attempt_at")?,
        last_error: row.get("last_error")?,
        rungs: rungs(row)?,
        aborted_at: get(row, "aborted_at")?,
        late_ack_at: get(row, "late_ack_at")?,
        outcome_settled_at: get(row, "outcome_settled_at")?,
        scrubbed_at: get(row, "scrubbed_at")?,
        held_until: get(row, "lease_until")?,
        late_receipt: late_receipt(row)?,
        told_message: get(row, "broker_message_id")?,
    })
}

/// An aborted row stays aborted when it turns out accepted; its receipt is stored beside.
fn late_receipt(row: &Row<'_>) -> rusqlite::Result<Option<BrokerReceipt>> {
    let has_late_receipt = get::<Status>(row, "status")? == Status::Aborted
        && get::<Option<Outcome>>(row, "outcome")? == Some(Outcome::Accepted)
        && get::<Option<Timestamp>>(row, "accepted_at")?.is_some();
    if has_late_receipt { broker_receipt(row).map(Some) } else { Ok(None) }
}

fn broker_receipt(row: &Row<'_>) -> rusqlite::Result<BrokerReceipt> {
    Ok(BrokerReceipt {
        broker_message_id: get(row, "broker_message_id")?,
        conversation: get(row, "conversation")?,
        history_id: row.get("history_id")?,
        accepted_at: get(row, "accepted_at")?,
    })
}

pub(crate) fn rungs(row: &Row<'_>) -> rusqlite::Result<Rungs> {
    Ok(Rungs {
        delivered_at: get(row, "delivered_at")?,
        notified_at: get(row, "notified_at")?,
        engaged_at: get(row, "engaged_at")?,
        processed_at: get(row, "processed_at")?,
        ended_as: get(row, "ended_as")?,
    })
}

/// The state with what belongs to it; the table's checks keep the columns of each state present.
pub(crate) fn state(row: &Row<'_>) -> rusqlite::Result<OutboxState> {
    Ok(match get::<Status>(row, "status")? {
        Status::Pending => OutboxState::Pending,
        Status::Inflight => OutboxState::Inflight { lease: get::<LeaseToken>(row, "lease_token")? },
        Status::Done => OutboxState::Done { receipt: broker_receipt(row)? },
        Status::Dead => OutboxState::Dead {
            reason: get::<DeadReason>(row, "dead_reason")?,
            outcome: get::<Outcome>(row, "outcome")?,
            last_error: row.get("last_error")?,
        },
        Status::Aborted => OutboxState::Aborted {
            by: get::<AbortedBy>(row, "aborted_by")?,
            outcome: get::<Outcome>(row, "outcome")?,
            successor: get(row, "superseded_by")?,
        },
    })
}
