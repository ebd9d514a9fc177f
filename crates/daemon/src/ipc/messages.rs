//! `GET /v1/messages/{id}`: where one message is, and a wait for it to get further.
//!
//! A direct message's rungs travel back to its sender's row. A topic's stay at the broker, so whoever waits for
//! more than `accepted` of a topic's message has the broker asked.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode, Uri};
use mailbox::{InboxRow, OutboxKey, OutboxRow};
use model::outbox::OutboxState;
use model::receipt::{Standing, standing};
use model::{DeliveryRung, ErrorCode, Rung};
use net::respond::{Refusal, json};
use net::serve::Connection;
use serde::Deserialize;
use wire::Refused;
use wire::ask::{Question, RecipientRung};
use wire::local::{ACT_AS_HEADER, MessageLife, OutboxItem};

use super::send::line;
use super::tails;
use super::waiting::{bounded, look_until};
use crate::ground::{Actor, Caller, Ground};
use crate::{questions, storage, view};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    mesh: Option<String>,
    rung: Option<String>,
    wait: Option<u64>,
}

/// What an id names here.
enum Found {
    Out(Box<Sent>),
    In(Box<MessageLife>),
}

/// A row of the outbox and, for a topic's message, its recipients' copies.
struct Sent {
    row: OutboxRow,
    copies: Option<Vec<DeliveryRung>>,
}

pub(super) async fn life(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    connection: Connection,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked: Asked = super::query(&uri)?;
    let rung: Rung = asked.rung.as_deref().map_or(Ok(Rung::Accepted), str::parse)?;
    let actor = ground.act(&caller, asked.mesh.as_deref(), line(&headers, ACT_AS_HEADER)?)?;
    let sees_all = matches!(caller, Caller::Operator);
    let ear = actor.mesh.bells.moved.listen();
    let look = || async {
        let found = find(&actor, &id, sees_all).await?;
        with_copies(&actor, found, rung).await
    };
    let wait = bounded(asked.wait);
    let found = look_until(&connection, ear, wait, |found| found.reached(rung), look).await?;
    let life = match found {
        Found::Out(sent) => {
            refuse_without_recipients(&sent, rung, wait)?;
            MessageLife::Out(shown(&actor, *sent))
        }
        Found::In(life) => *life,
    };
    Ok(json(StatusCode::OK, &life))
}

impl Found {
    /// Whether waiting longer could not show more: it got there, or somebody's copy ended before.
    fn reached(&self, rung: Rung) -> bool {
        let Found::Out(sent) = self else { return true };
        let reached = |standing: Standing| match standing {
            Standing::At(held) => held >= rung,
            Standing::Ended(_) => true,
        };
        match &sent.copies {
            None => reached(sent.row.standing()),
            Some(copies) => {
                let ended = copies.iter().any(|copy| matches!(copy.standing(), Standing::Ended(_)));
                copies.is_empty() || ended || reached(standing(copies))
            }
        }
    }
}

/// By outbox row, by the acting sender's own id, by the broker's message, or by the tail of one of them.
async fn find(actor: &Actor, id: &str, sees_all: bool) -> Result<Found, Refusal> {
    let mut rows: Vec<OutboxRow> = Vec::new();
    for key in keys(actor, id) {
        let row = actor.mesh.mailbox.outbox_row(key).await.map_err(|error| storage::refusal(&error))?;
        let visible = row.filter(|row| sees_all || row.sender == actor.member.id);
        rows.extend(visible.filter(|row| rows.iter().all(|known| known.row != row.row)));
    }
    if rows.is_empty() {
        if let Some(life) = received(actor, id).await? {
            return Ok(life);
        }
        rows = if tails::may_be(id) { tails::outbox(actor, id, sees_all).await? } else { Vec::new() };
    }
    match rows.len() {
        0 => received_by_tail(actor, id).await,
        1 => Ok(Found::Out(Box::new(Sent { row: rows.remove(0), copies: None }))),
        _ => {
            let candidates: Vec<String> = rows.iter().map(|row| row.row.to_string()).collect();
            Err(Refused::plain(ErrorCode::IdAmbiguous).with("candidates", candidates).into())
        }
    }
}

fn keys(actor: &Actor, id: &str) -> Vec<OutboxKey> {
    let client = |client_message_id| OutboxKey::Client { sender: actor.member.id, client_message_id };
    let row = id.parse().ok().map(OutboxKey::Row);
    row.into_iter()
        .chain(id.parse().ok().map(client))
        .chain(id.parse().ok().map(OutboxKey::Message))
        .collect()
}

async fn received(actor: &Actor, id: &str) -> Result<Option<Found>, Refusal> {
    let Ok(id) = id.parse() else { return Ok(None) };
    let rows = actor.mesh.mailbox.inbox_by_id(id).await.map_err(|error| storage::refusal(&error))?;
    Ok(rows.into_iter().find(|row| row.recipient == actor.member.id).and_then(|row| shown_mail(actor, row)))
}

async fn received_by_tail(actor: &Actor, id: &str) -> Result<Found, Refusal> {
    let unknown = || Refusal::new(ErrorCode::NotFound, "This node holds no such message.");
    let mut rows = if tails::may_be(id) { tails::inbox(actor, id).await? } else { Vec::new() };
    if rows.len() > 1 {
        let candidates: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
        return Err(Refused::plain(ErrorCode::IdAmbiguous).with("candidates", candidates).into());
    }
    rows.pop().and_then(|row| shown_mail(actor, row)).ok_or_else(unknown)
}

fn shown_mail(actor: &Actor, row: InboxRow) -> Option<Found> {
    view::inbox_item(&actor.mesh, row).map(|item| Found::In(Box::new(MessageLife::In(item))))
}

/// Asks the broker about the copies where only it knows them; while it is away the row alone speaks.
async fn with_copies(actor: &Actor, found: Found, rung: Rung) -> Result<Found, Refusal> {
    let Found::Out(mut sent) = found else { return Ok(found) };
    if let OutboxState::Done { receipt } = &sent.row.state
        && sent.row.to_asked.starts_with('#')
        && rung > Rung::Accepted
    {
        let question = Question::Rungs { id: receipt.broker_message_id };
        let copies: Result<Vec<RecipientRung>, Refusal> =
            questions::ask(&actor.mesh, sent.row.sender, question).await;
        sent.copies = copies.ok().map(|copies| copies.into_iter().map(|copy| copy.rung).collect());
    }
    Ok(Found::Out(sent))
}

/// Whoever waits for a rung that nobody can reach hears it at once.
fn refuse_without_recipients(sent: &Sent, rung: Rung, wait: Duration) -> Result<(), Refusal> {
    let nobody = sent.copies.as_ref().is_some_and(Vec::is_empty);
    if nobody && rung > Rung::Accepted && !wait.is_zero() {
        return Err(Refusal::plain(ErrorCode::NoRecipients));
    }
    Ok(())
}

/// The row, standing where its lowest copy stands.
fn shown(actor: &Actor, sent: Sent) -> OutboxItem {
    let mut item = view::outbox_item(&actor.mesh, sent.row);
    if let Some(copies) = sent.copies.filter(|copies| !copies.is_empty()) {
        item.receipt.rung = standing(&copies).to_string();
    }
    item
}
