//! What this node holds under an id.

use mailbox::{InboxPlace, InboxQuery, InboxRow, InboxShow, OutboxFilter, OutboxKey, OutboxRow, Turn};
use model::{ErrorCode, MemberId, MessageId, limits};
use net::respond::Refusal;
use wire::Refused;
use wire::ask::BrokerExplained;

use crate::ground::Actor;
use crate::mesh::Mesh;
use crate::{storage, view};

/// Shorter tails would too often name several.
const TAIL_MIN: usize = 6;

/// A message as this node has it: sent from here, received here, or both.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) out: Option<OutboxRow>,
    pub(super) ins: Vec<InboxRow>,
}

/// A row of the inbox with its recipient's name and its turns.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) recipient: String,
    pub(super) row: InboxRow,
    pub(super) turns: Vec<Turn>,
}

/// By a whole id first; then by the tail of one, when that names one message only.
pub(super) async fn find(actor: &Actor, id: &str, sees_all: bool) -> Result<Found, Refusal> {
    let mut rows = by_whole_id(actor, id, sees_all).await?;
    let mut messages: Vec<MessageId> = id.parse().ok().into_iter().collect();
    let known = !rows.is_empty() || !inbox_of(actor, messages.first().copied(), sees_all).await?.is_empty();
    if !known && id.len() >= TAIL_MIN {
        (rows, messages) = by_tail(actor, id, sees_all).await?;
    }
    let own =
        rows.iter().position(|row| row.sender == actor.member.id && row.client_message_id.as_str() == id);
    let out = match (own, rows.len()) {
        (_, 0) => None,
        // The acting member's own use of an id comes before others'.
        (Some(own), _) => Some(rows.swap_remove(own)),
        (None, 1) => rows.pop(),
        (None, _) => return Err(ambiguous(rows.iter().map(|row| row.row.to_string()))),
    };
    messages
        .retain(|message| out.as_ref().is_none_or(|row| message_of(row).is_none_or(|own| own == *message)));
    if messages.len() > 1 {
        return Err(ambiguous(messages.iter().map(MessageId::to_string)));
    }
    let message = out.as_ref().and_then(message_of).or(messages.pop());
    let ins = inbox_of(actor, message, sees_all).await?;
    Ok(Found { out, ins })
}

/// The broker may know the message by a name this node did not look for.
pub(super) async fn complete(
    actor: &Actor,
    found: &mut Found,
    told: &BrokerExplained,
    sees_all: bool,
) -> Result<(), Refusal> {
    if found.ins.is_empty() {
        let sender = found.out.as_ref().map(|row| row.sender);
        let record =
            told.records.iter().find(|record| sender.is_none_or(|sender| sender == record.sender.id));
        found.ins = inbox_of(actor, record.and_then(|record| record.broker_message_id), sees_all).await?;
    }
    Ok(())
}

pub(super) async fn with_turns(mesh: &Mesh, rows: Vec<InboxRow>) -> Result<Vec<Received>, Refusal> {
    let mut received = Vec::new();
    for row in rows {
        let turns = mesh.mailbox.turns_of(row.seq).await.map_err(|error| storage::refusal(&error))?;
        received.push(Received { recipient: view::name_of(mesh, row.recipient).to_string(), row, turns });
    }
    Ok(received)
}

async fn by_whole_id(actor: &Actor, id: &str, sees_all: bool) -> Result<Vec<OutboxRow>, Refusal> {
    let mut keys: Vec<OutboxKey> = id.parse().ok().map(OutboxKey::Row).into_iter().collect();
    keys.extend(id.parse().ok().map(OutboxKey::Message));
    let everybody = actor.mesh.everybody().into_iter().map(|member| member.id);
    for sender in everybody.filter(|member| sees_all || *member == actor.member.id) {
        keys.extend(id.parse().ok().map(|client_message_id| OutboxKey::Client { sender, client_message_id }));
    }
    let mut rows: Vec<OutboxRow> = Vec::new();
    for key in keys {
        let row = actor.mesh.mailbox.outbox_row(key).await.map_err(|error| storage::refusal(&error))?;
        let visible = row.filter(|row| sees_all || row.sender == actor.member.id);
        rows.extend(visible.filter(|row| rows.iter().all(|known| known.row != row.row)));
    }
    Ok(rows)
}

/// Among the newest rows; an older message is asked for by its whole id.
async fn by_tail(
    actor: &Actor,
    tail: &str,
    sees_all: bool,
) -> Result<(Vec<OutboxRow>, Vec<MessageId>), Refusal> {
    let own: Option<MemberId> = (!sees_all).then_some(actor.member.id);
    let filter = OutboxFilter { sender: own, limit: limits::PAGE_ROWS_MAX, ..OutboxFilter::default() };
    let sent = actor.mesh.mailbox.outbox_list(filter).await.map_err(|error| storage::refusal(&error))?;
    let ends = |text: String| text.ends_with(tail);
    let rows: Vec<OutboxRow> = sent
        .into_iter()
        .filter(|row| {
            ends(row.row.to_string())
                || ends(row.client_message_id.to_string())
                || message_of(row).is_some_and(|message| ends(message.to_string()))
        })
        .collect();
    let query = InboxQuery {
        recipient: own,
        place: InboxPlace::Newest,
        show: InboxShow::All,
        from: None,
        limit: limits::PAGE_ROWS_MAX,
    };
    let received = actor.mesh.mailbox.inbox(query).await.map_err(|error| storage::refusal(&error))?;
    let named = received
        .into_iter()
        .filter(|row| ends(row.id.to_string()) || ends(row.client_message_id.to_string()));
    let mut messages: Vec<MessageId> = named.map(|row| row.id).collect();
    messages.sort_unstable();
    messages.dedup();
    Ok((rows, messages))
}

async fn inbox_of(
    actor: &Actor,
    message: Option<MessageId>,
    sees_all: bool,
) -> Result<Vec<InboxRow>, Refusal> {
    let Some(message) = message else { return Ok(Vec::new()) };
    let rows = actor.mesh.mailbox.inbox_by_id(message).await.map_err(|error| storage::refusal(&error))?;
    Ok(rows.into_iter().filter(|row| sees_all || row.recipient == actor.member.id).collect())
}

fn message_of(row: &OutboxRow) -> Option<MessageId> {
    match &row.state {
        model::outbox::OutboxState::Done { receipt } => Some(receipt.broker_message_id),
        model::outbox::OutboxState::Pending
        | model::outbox::OutboxState::Inflight { .. }
        | model::outbox::OutboxState::Dead { .. }
        | model::outbox::OutboxState::Aborted { .. } => None,
    }
}

fn ambiguous(candidates: impl Iterator<Item = String>) -> Refusal {
    Refused::plain(ErrorCode::IdAmbiguous).with("candidates", candidates.collect::<Vec<_>>()).into()
}
