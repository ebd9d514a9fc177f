//! Rows as the local door shows them.

use mailbox::{InboxRow, OutboxRow};
use model::outbox::{OutboxState, Outcome};
use model::{DeliveryRung, MemberId, MemberName, Timestamp};
use wire::local::{InboxItem, OutboxCounts, OutboxItem, Receipt, StoppedStore};
use wire::message::Message;

use crate::mesh::Mesh;

/// An outbox row.
pub(crate) fn outbox_item(mesh: &Mesh, row: OutboxRow) -> OutboxItem {
    let rungs = rungs(mesh, &row);
    let receipt = receipt(mesh, &row, &rungs);
    let (mut dead_reason, mut outcome, mut broker) = (None, None, None);
    let (mut superseded_by, mut aborted_by) = (None, None);
    match &row.state {
        OutboxState::Pending | OutboxState::Inflight { .. } => {}
        OutboxState::Done { receipt } => broker = Some(*receipt),
        OutboxState::Dead { reason, outcome: known, .. } => {
            dead_reason = Some(reason.to_string());
            outcome = Some(*known);
        }
        OutboxState::Aborted { by, outcome: known, successor } => {
            aborted_by = Some(by.to_string());
            broker = row.late_receipt;
            outcome = Some(*known);
            superseded_by = successor.map(|row| row.to_string());
        }
    }
    OutboxItem {
        id: row.row,
        client_message_id: row.client_message_id.clone(),
        sender: name_of(mesh, row.sender),
        to: row.to_asked.clone(),
        status: row.state.status().to_string(),
        receipt,
        rungs,
        attempts: row.attempts,
        enqueued_at: row.enqueued_at,
        next_attempt_at: row.next_attempt_at,
        last_error: row.last_error,
        dead_reason,
        outcome: outcome.map(|outcome: Outcome| outcome.to_string()),
        broker_message_id: broker.map(|receipt| receipt.broker_message_id.to_string()),
        conversation: broker.map(|receipt| receipt.conversation.to_string()),
        history_id: broker.map(|receipt| receipt.history_id),
        superseded_by,
        aborted_by,
        aborted_at: row.aborted_at,
        late_ack_at: row.late_ack_at,
    }
}

/// Every rung reached, in order, with its observer.
fn rungs(mesh: &Mesh, row: &OutboxRow) -> Vec<Receipt> {
    let mut rungs = vec![reached("queued", mesh.node.as_str(), row.enqueued_at)];
    if let OutboxState::Done { receipt } = &row.state {
        rungs.push(reached("accepted", "broker", receipt.accepted_at));
        for (rung, at) in [
            (DeliveryRung::Delivered, row.rungs.delivered_at),
            (DeliveryRung::Notified, row.rungs.notified_at),
            (DeliveryRung::Engaged, row.rungs.engaged_at),
            (DeliveryRung::Processed, row.rungs.processed_at),
        ] {
            rungs.extend(at.map(|at| reached(rung.word(), "broker", at)));
        }
    }
    rungs
}

/// What is true now: the highest rung reached, or how it ended.
fn receipt(mesh: &Mesh, row: &OutboxRow, rungs: &[Receipt]) -> Receipt {
    let standing = row.standing().to_string();
    let top = rungs.last().expect("every row was queued");
    if top.rung == standing {
        return top.clone();
    }
    let at = row.aborted_at.unwrap_or(top.at);
    let by = match row.state {
        OutboxState::Done { .. } => "broker",
        OutboxState::Pending
        | OutboxState::Inflight { .. }
        | OutboxState::Dead { .. }
        | OutboxState::Aborted { .. } => mesh.node.as_str(),
    };
    reached(&standing, by, at)
}

fn reached(rung: &str, by: &str, at: Timestamp) -> Receipt {
    Receipt { rung: rung.to_owned(), by: by.to_owned(), at }
}

/// An inbox row; none when its body is gone.
pub(crate) fn inbox_item(mesh: &Mesh, row: InboxRow) -> Option<InboxItem> {
    let envelope = row.envelope?;
    let mut message: Message = match serde_json::from_slice(&envelope) {
        Ok(message) => message,
        Err(error) => {
            tracing::error!(seq = row.seq, %error, "a stored message cannot be read");
            return None;
        }
    };
    message.redelivered = row.redelivered;
    Some(InboxItem {
        message,
        recipient: name_of(mesh, row.recipient),
        inbox_seq: row.seq,
        received_at: row.received_at,
        rung: row.rung.standing().to_string(),
        seen: row.read_at.is_some(),
    })
}

/// A member's name; one this node has not heard of is shown by its id.
pub(crate) fn name_of(mesh: &Mesh, id: MemberId) -> MemberName {
    mesh.name_of(id).unwrap_or_else(|| id.to_string().parse().expect("an id has the form of a name"))
}

/// A stopped store as health names it.
pub(crate) fn stopped_store(store: &sqlite::StoppedStore) -> StoppedStore {
    StoppedStore {
        store: store.name.clone(),
        file: store.path.display().to_string(),
        cause: store.cause.to_string(),
    }
}

/// Rows by state.
pub(crate) fn outbox_counts(counts: &mailbox::OutboxCounts) -> OutboxCounts {
    let mailbox::OutboxCounts { pending, inflight, done, dead, aborted, .. } = *counts;
    OutboxCounts { pending, inflight, done, dead, aborted }
}
