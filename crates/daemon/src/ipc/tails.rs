//! A message by the tail of its id, as lists show it: the heads of minted ids look alike.

use mailbox::{InboxPlace, InboxQuery, InboxRow, InboxShow, OutboxFilter, OutboxRow};
use model::limits;
use model::outbox::OutboxState;
use net::respond::Refusal;

use crate::ground::Actor;
use crate::storage;

/// Shorter tails would too often name several.
const TAIL_MIN: usize = 6;
/// Pages looked through, the newest first: a tail names something a person just saw.
const PAGES_MAX: usize = 10;

/// Whether `id` may be a tail at all.
pub(super) fn may_be(id: &str) -> bool {
    id.len() >= TAIL_MIN
}

/// Rows of the outbox that `tail` names; everybody's for an operator who looks after all of them.
pub(super) async fn outbox(actor: &Actor, tail: &str, sees_all: bool) -> Result<Vec<OutboxRow>, Refusal> {
    let sender = (!sees_all).then_some(actor.member.id);
    let (mut found, mut before_seq) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let filter = OutboxFilter { status: None, sender, before_seq, limit: limits::PAGE_ROWS_MAX };
        let rows = actor.mesh.mailbox.outbox_list(filter).await.map_err(|error| storage::refusal(&error))?;
        before_seq = rows.last().map(|row| row.seq);
        found.extend(rows.into_iter().filter(|row| names(row, tail)));
        if before_seq.is_none() {
            break;
        }
    }
    Ok(found)
}

/// Rows of the acting member's inbox that `tail` names.
pub(super) async fn inbox(actor: &Actor, tail: &str) -> Result<Vec<InboxRow>, Refusal> {
    let query = InboxQuery {
        recipient: Some(actor.member.id),
        place: InboxPlace::Newest,
        show: InboxShow::All,
        from: None,
        limit: limits::PAGE_ROWS_MAX,
    };
    let rows = actor.mesh.mailbox.inbox(query).await.map_err(|error| storage::refusal(&error))?;
    let named =
        |row: &InboxRow| row.id.to_string().ends_with(tail) || row.client_message_id.as_str().ends_with(tail);
    Ok(rows.into_iter().filter(named).collect())
}

fn names(row: &OutboxRow, tail: &str) -> bool {
    let message = match &row.state {
        OutboxState::Done { receipt } => Some(receipt.broker_message_id.to_string()),
        OutboxState::Pending
        | OutboxState::Inflight { .. }
        | OutboxState::Dead { .. }
        | OutboxState::Aborted { .. } => None,
    };
    row.row.to_string().ends_with(tail)
        || row.client_message_id.as_str().ends_with(tail)
        || message.is_some_and(|message| message.ends_with(tail))
}
