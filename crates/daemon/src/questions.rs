//! What is asked over a link: a member's questions, and the courier's own about rows whose end is not known.

use futures_util::future::join_all;
use mailbox::{Learned, RowStatus, Unsettled};
use model::admission::StatusAnswer;
use model::outbox::BrokerReceipt;
use model::{ErrorCode, MemberId, limits};
use net::respond::Refusal;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};
use wire::Refused;
use wire::ask::{Question, StatusAnswer as ToldStatus};

use crate::link::{AskError, LinkEnd, Live};
use crate::mesh::{LinkState, Mesh};

/// Questions on the wire at once: enough to hide the way there and back, few enough to leave room for mail.
const ASKED_AT_ONCE_MAX: usize = 64;

/// Puts a member's question. Without a link it waits a moment for one: a daemon that just started is about to
/// have it.
pub(crate) async fn ask<T: DeserializeOwned>(
    mesh: &Mesh,
    asker: MemberId,
    question: Question,
) -> Result<T, Refusal> {
    let due = Instant::now() + limits::ASK_TIMEOUT;
    let live = open_link(mesh, due).await?;
    let left = due.saturating_duration_since(Instant::now());
    live.ask(asker, question, left).await.map_err(|error| error.refused().into())
}

/// The open link, awaited until `due`.
pub(crate) async fn open_link(mesh: &Mesh, due: Instant) -> Result<std::sync::Arc<Live>, Refusal> {
    if let LinkState::Parked { reason, .. } = mesh.link().state {
        return Err(Refused::plain(ErrorCode::MeshParked).with("reason", reason).into());
    }
    let mut watch = mesh.watch_live();
    let found = timeout_at(due, watch.wait_for(Option::is_some)).await;
    let live = found.ok().and_then(Result::ok).and_then(|live| live.clone());
    live.ok_or_else(|| Refusal::plain(ErrorCode::BrokerUnreachable))
}

/// Drives what a restored broker lost again, under the same ids.
pub(crate) async fn redrive(mesh: &Mesh, live: &Live) -> Result<(), LinkEnd> {
    let broker_now = live.broker_now(&*mesh.clock);
    let rows = mesh.mailbox.redrive(broker_now, mesh.terms().max_age()).await?;
    tracing::warn!(mesh = mesh.slug, rows, "the broker lost accepted messages; they are sent again");
    mesh.bells.moved.ring();
    Ok(())
}

/// Asks, with a fence, about every row that ended while the broker may have it. An answer is for ever; what
/// cannot be asked now is asked on the next link.
pub(crate) async fn ask_about_ended(mesh: &Mesh, live: &Live) -> Result<(), LinkEnd> {
    let mut after = 0;
    loop {
        let rows = mesh.mailbox.unsettled(after, ASKED_AT_ONCE_MAX).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.seq;
        let words: Vec<RowStatus> =
            join_all(rows.iter().map(|row| status_of(live, row))).await.into_iter().flatten().collect();
        if words.is_empty() {
            return Ok(());
        }
        let learned = mesh.mailbox.learn(words, mesh.clock.now()).await?;
        tell_learned(mesh, &learned);
    }
}

/// Asks about rows as they end, until the link is over. Asks before it waits: a row may have ended before anybody
/// listened.
pub(crate) async fn keep_asking(mesh: &Mesh, live: &Live) -> LinkEnd {
    let mut ended = mesh.bells.ended.listen();
    loop {
        ended.reset();
        if let Err(end) = ask_about_ended(mesh, live).await {
            return end;
        }
        ended.wait(limits::LINK_SILENCE_MAX).await;
    }
}

async fn status_of(live: &Live, row: &Unsettled) -> Option<RowStatus> {
    let answer = message_status(live, row).await;
    match answer {
        Ok(answer) => Some(RowStatus { seq: row.seq, fingerprint: row.fingerprint, answer }),
        Err(AskError::Unreachable) => None,
        Err(error @ (AskError::Refused { .. } | AskError::Senseless)) => {
            tracing::warn!(row = %row.row, ?error, "the broker does not say what became of a row");
            None
        }
    }
}

/// The broker's word on one row; an absent id is retired by the question.
pub(crate) async fn message_status(live: &Live, row: &Unsettled) -> Result<StatusAnswer, AskError> {
    let question = Question::MessageStatus {
        sender: row.sender,
        client_message_id: row.client_message_id.clone(),
        request_fingerprint: row.fingerprint,
        first_attempt_at: row.first_attempt_at,
        fence: true,
    };
    let told: ToldStatus = live.ask(row.sender, question, limits::ASK_TIMEOUT).await?;
    Ok(match told {
        ToldStatus::Accepted(accepted) if accepted.request_fingerprint == row.fingerprint => {
            StatusAnswer::Accepted(BrokerReceipt {
                broker_message_id: accepted.broker_message_id,
                conversation: accepted.conversation,
                history_id: accepted.history_id,
                accepted_at: accepted.created_at,
            })
        }
        ToldStatus::Accepted(_) | ToldStatus::AcceptedOtherFingerprint => {
            StatusAnswer::AcceptedOtherFingerprint
        }
        ToldStatus::Retired => StatusAnswer::Retired,
        ToldStatus::Absent => StatusAnswer::Absent,
        ToldStatus::Unknown => StatusAnswer::Unknown,
    })
}

fn tell_learned(mesh: &Mesh, learned: &Learned) {
    mesh.moved(learned.accepted.iter().chain(&learned.not_accepted).chain(&learned.unknown_for_good));
    // A successor waits until its predecessor's end is known.
    mesh.bells.queued.ring();
}
