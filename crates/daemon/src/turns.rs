//! Turns of the members at home here: handed out after their commit, ended with their reply in one transaction.
//!
//! - `engaged` and `processed` are told to the broker by whoever tells rungs; a turn never waits for a network.
//! - A caller that lost an answer asks again with the same turn id and gets the same turn, or the same end.

use mailbox::{
    BeginTurn, BeginTurnError, Begun, EndTurn, EndTurnError, RetryTurnError, Turn, TurnAsked, TurnLostError,
};
use model::outbox::Verdict;
use model::turn::TurnState;
use model::{ErrorCode, MessageId, TurnId, limits};
use net::respond::Refusal;
use net::run_to_end;
use wire::Refused;
use wire::local::{TurnAnswer, TurnEnd, TurnEnded, TurnReplied, TurnRequest, lease};

use crate::ground::Actor;
use crate::send::{refuse, row_of};
use crate::{storage, view};

/// A turn asked for, its fields checked.
pub(crate) struct Wanted {
    turn: TurnId,
    asked: TurnAsked,
    holder: Option<String>,
    lease: std::time::Duration,
}

impl Wanted {
    /// What `request` asks for; the id is minted once, however often is looked.
    pub(crate) fn of(actor: &Actor, request: &TurnRequest) -> Result<Self, Refusal> {
        let mesh = &actor.mesh;
        let minted = || Ok(TurnId::mint(mesh.clock.now(), &*mesh.entropy));
        let message = request.message_id.as_deref().map(str::parse).transpose()?;
        Ok(Self {
            turn: request.turn_id.as_deref().map_or_else(minted, str::parse)?,
            asked: message.map_or(TurnAsked::Next, TurnAsked::Message),
            holder: request.holder.as_deref().map(holder).transpose()?,
            lease: lease(request.lease)?,
        })
    }
}

fn holder(text: &str) -> Result<String, Refusal> {
    let fits = text.len() <= limits::TURN_HOLDER_BYTES_MAX && !text.chars().any(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err(Refusal::new(ErrorCode::InvalidRequest, HOLDER_FORM)) }
}

const NO_MESSAGE: &str = "This member holds no such message.";
const HOLDER_FORM: &str = "holder must be at most 64 bytes without control characters";

/// Whether the turn has a row already: then it is answered from it, and takes no room.
pub(crate) async fn has_begun(actor: &Actor, wanted: &Wanted) -> Result<bool, Refusal> {
    let known = actor.mesh.mailbox.turn(wanted.turn, actor.member.id).await.map_err(stored)?;
    Ok(known.is_some())
}

/// Begins the turn, when there is one to begin.
pub(crate) async fn begin(actor: &Actor, wanted: &Wanted) -> Result<Option<TurnAnswer>, Refusal> {
    let mesh = &actor.mesh;
    let (now, broker_now, agent) = (mesh.clock.now(), mesh.broker_now(), actor.member.id);
    // A waiting agent looks often; only a look that finds something is worth a write.
    let looks_first =
        wanted.asked == TurnAsked::Next && mesh.mailbox.open_turn(agent).await.map_err(stored)?.is_none();
    if looks_first && !mesh.mailbox.has_turn(agent, now, broker_now).await.map_err(stored)? {
        return Ok(None);
    }
    let asked = BeginTurn {
        turn: wanted.turn,
        agent,
        asked: wanted.asked,
        holder: wanted.holder.clone(),
        lease_until: now + wanted.lease,
        now,
        broker_now,
    };
    let mesh = mesh.clone();
    let begun = run_to_end(async move {
        let begun = mesh.mailbox.begin_turn(asked).await;
        if let Ok(Begun::Turn(_)) = begun {
            mesh.bells.climbed.ring();
        }
        begun
    });
    match begun.await {
        Ok(Begun::Turn(turn)) => answer(actor, *turn).map(Some),
        Ok(Begun::Nothing) => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

/// Keeps an open turn; answers it with its new lease.
pub(crate) async fn extend(actor: &Actor, turn: TurnId, asked: Option<u64>) -> Result<TurnAnswer, Refusal> {
    let until = actor.mesh.clock.now() + lease(asked)?;
    actor.mesh.mailbox.extend_turn(turn, actor.member.id, until).await.map_err(lost)?;
    show(actor, turn).await
}

/// Gives an open turn back; its message waits for another, marked.
pub(crate) async fn interrupt(actor: &Actor, turn: TurnId) -> Result<TurnAnswer, Refusal> {
    let now = actor.mesh.clock.now();
    actor.mesh.mailbox.interrupt_turn(turn, actor.member.id, now).await.map_err(lost)?;
    actor.mesh.bells.arrived.ring();
    show(actor, turn).await
}

/// Puts a message whose turns were given up back in line; answers its last turn.
pub(crate) async fn retry(actor: &Actor, message: MessageId) -> Result<TurnAnswer, Refusal> {
    let put_back = actor.mesh.mailbox.retry_turn(actor.member.id, message).await;
    let last = put_back.map_err(|error| match error {
        RetryTurnError::NotGivenUp(mark) => {
            Refused::plain(ErrorCode::NotGivenUp).with("turn", mark.to_string()).into()
        }
        RetryTurnError::Unknown => Refusal::new(ErrorCode::NotFound, NO_MESSAGE),
        RetryTurnError::Storage(error) => stored(error),
    })?;
    actor.mesh.bells.arrived.ring();
    answer(actor, last)
}

/// Ends a turn, with its reply.
pub(crate) async fn end(actor: &Actor, id: TurnId, asked: TurnEnd) -> Result<TurnEnded, Refusal> {
    let (mesh, agent) = (&actor.mesh, actor.member.id);
    let turn = mesh.mailbox.turn(id, agent).await.map_err(stored)?.ok_or_else(unknown)?;
    let reply = match asked.reply {
        None => None,
        Some(reply) => {
            let answered = view::inbox_item(mesh, turn.message.clone()).ok_or_else(scrubbed)?;
            Some(row_of(mesh, &actor.member, reply.into_send(id, &answered), None)?)
        }
    };
    let conflicting = reply.as_ref().map(|reply| reply.client_message_id.clone());
    let (outcome, error) = (asked.outcome, asked.error.map(cut));
    let end = EndTurn { turn: id, agent, outcome, error, reply, now: mesh.clock.now() };
    let ended = mesh.mailbox.end_turn(end).await.map_err(|error| match (error, conflicting) {
        (EndTurnError::ReplyRefused(accepted), Some(id)) => match &accepted.verdict {
            Verdict::Conflict(conflict) => refuse(&id, accepted.row, conflict),
            Verdict::Insert | Verdict::Queued | Verdict::Inflight | Verdict::Duplicate(_) => {
                Refusal::plain(ErrorCode::Internal)
            }
        },
        (error, _) => not_ended(error),
    })?;
    mesh.bells.climbed.ring();
    mesh.bells.arrived.ring();
    if ended.reply.is_some() {
        mesh.bells.queued.ring();
        mesh.bells.moved.ring();
    }
    let reply = ended.reply.map(|(row, client_message_id)| TurnReplied { client_message_id, row });
    Ok(TurnEnded { turn_id: id, outcome, duplicate: ended.replayed, reply })
}

/// A turn of the acting member.
pub(crate) async fn show(actor: &Actor, turn: TurnId) -> Result<TurnAnswer, Refusal> {
    let found = actor.mesh.mailbox.turn(turn, actor.member.id).await.map_err(stored)?;
    answer(actor, found.ok_or_else(unknown)?)
}

/// Every turn of the acting member's copy of a message, in order.
pub(crate) async fn attempts(actor: &Actor, message: MessageId) -> Result<Vec<TurnAnswer>, Refusal> {
    let rows = actor.mesh.mailbox.inbox_by_id(message).await.map_err(stored)?;
    let Some(own) = rows.into_iter().find(|row| row.recipient == actor.member.id) else {
        return Ok(Vec::new());
    };
    let turns = actor.mesh.mailbox.turns_of(own.seq).await.map_err(stored)?;
    turns.into_iter().map(|turn| answer(actor, turn)).collect()
}

/// A turn as the door shows it.
pub(crate) fn answer(actor: &Actor, turn: Turn) -> Result<TurnAnswer, Refusal> {
    let (lease_until, ended_at) = match turn.state {
        TurnState::Open { lease_until } => (Some(lease_until), None),
        TurnState::Ended { at, .. } | TurnState::Interrupted { at } => (None, Some(at)),
    };
    let mut message = view::inbox_item(&actor.mesh, turn.message).ok_or_else(scrubbed)?;
    message.message.redelivered = turn.redelivered;
    Ok(TurnAnswer {
        turn_id: turn.id,
        message,
        attempt: turn.attempt,
        redelivered: turn.redelivered,
        lease_until,
        state: turn.state.word().to_owned(),
        holder: turn.holder,
        began_at: turn.began_at,
        ended_at,
        error: turn.error,
        reply: turn.reply,
    })
}

fn cut(mut error: String) -> String {
    let mut end = error.len().min(limits::TURN_ERROR_BYTES_MAX);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    error.truncate(end);
    error
}

fn refused(error: BeginTurnError) -> Refusal {
    match error {
        BeginTurnError::Open(turn) => {
            let mut refused = Refused::plain(ErrorCode::TurnOpen)
                .with("turn_id", turn.id.to_string())
                .with("message_id", turn.message.id.to_string())
                .with("attempt", turn.attempt);
            if let Some(holder) = turn.holder {
                refused = refused.with("holder", holder);
            }
            if let TurnState::Open { lease_until } = turn.state {
                refused = refused.with("lease_until", lease_until.to_string());
            }
            refused.into()
        }
        BeginTurnError::Over => Refusal::plain(ErrorCode::TurnOver),
        BeginTurnError::Unknown => Refusal::new(ErrorCode::NotFound, NO_MESSAGE),
        BeginTurnError::Storage(error) => stored(error),
    }
}

fn lost(error: TurnLostError) -> Refusal {
    match error {
        TurnLostError::Lost => Refusal::plain(ErrorCode::TurnLost),
        TurnLostError::Over => Refusal::plain(ErrorCode::TurnOver),
        TurnLostError::Unknown => unknown(),
        TurnLostError::Storage(error) => stored(error),
    }
}

fn not_ended(error: EndTurnError) -> Refusal {
    match error {
        EndTurnError::Lost => Refusal::plain(ErrorCode::TurnLost),
        EndTurnError::Over => Refusal::plain(ErrorCode::TurnOver),
        EndTurnError::Unknown => unknown(),
        EndTurnError::ReplyRefused(_) => Refusal::plain(ErrorCode::IdempotencyKeyReused),
        EndTurnError::Storage(error) => stored(error),
    }
}

fn unknown() -> Refusal {
    Refusal::new(ErrorCode::NotFound, "This member has no such turn.")
}

fn scrubbed() -> Refusal {
    Refusal::new(ErrorCode::NotFound, "The message's body is not kept any more.")
}

fn stored(error: sqlite::StorageError) -> Refusal {
    storage::refusal(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_at_a_whole_character() {
        let long = "ä".repeat(limits::TURN_ERROR_BYTES_MAX);
        assert_eq!(cut(long).len(), limits::TURN_ERROR_BYTES_MAX);
        assert_eq!(
            cut(format!("x{}", "ä".repeat(limits::TURN_ERROR_BYTES_MAX))).len(),
            limits::TURN_ERROR_BYTES_MAX - 1
        );
        assert_eq!(cut("short".to_owned()), "short");
    }
}
