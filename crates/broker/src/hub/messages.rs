//! Messages through the hub: a broker's accept whose id is the key, and what its recipient read.

use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::StatusCode;
use ledger::{Admission, LinkError, MessageRow, Via};
use model::hub::is_too_old;
use model::outbox::BrokerReceipt;
use model::{ClientMessageId, ErrorCode, Timestamp, limits};
use net::respond::{self, Refusal};
use serde_json::Value;
use wire::direct::AcceptAnswer;
use wire::hub::{ListedMessage, MessageList, MessagesQuery, WasRead};
use wire::local::SendRequest;

use super::answer::mark_replayed;
use super::call::Call;
use crate::accept::{Item, Sender, Times, Word};
use crate::broker::{Shared, storage_refused};
use crate::direct::{Caller, part, query, with_retry_after};
use crate::message;
use crate::openapi::Refusals;

/// Hands over a message. A copy under the same key gets the first answer.
#[utoipa::path(
    post, path = "/hub/messages/", tag = "hub", request_body = SendRequest,
    params(("idempotency-key" = Option<String>, Header, description = "The client_message_id")),
    responses((status = 201, body = AcceptAnswer), Refusals), security(("token" = ["hub", "send"]))
)]
pub(super) async fn send(State(shared): State<Arc<Shared>>, call: Call) -> Result<Response, Refusal> {
    call.caller.check_send()?;
    let (request, _) = call.fields::<SendRequest>()?;
    if let Some(named) = &request.mesh {
        shared.check_mesh(named)?;
    }
    let now = shared.ledger.now().await.map_err(|error| storage_refused(&error))?;
    let id = match request.key(crate::direct::idempotency_key(&call.headers)?)? {
        Some(key) => key,
        None => call.id().await?,
    };
    refuse_old_copy(&shared, &call, &id, now).await?;
    let item = Item::check(request.into_fields(id.clone())?, None, Times::of_caller(now))?;
    let sender = Sender { id: call.member.id, name: &call.member.name };
    let words = shared.accept_lane(Via::Broker, sender, vec![Ok(item)]).await;
    let mut words = words.map_err(|error| match error {
        LinkError::Refused(refused) => Refusal::plain(refused.code()),
        LinkError::Storage(error) => storage_refused(&error),
    })?;
    answer(&shared, &id, words.pop().expect("one word for one message"))
}

/// A copy past the hub's memory is refused unless its message is known.
async fn refuse_old_copy(
    shared: &Shared,
    call: &Call,
    id: &ClientMessageId,
    now: Timestamp,
) -> Result<(), Refusal> {
    let (created_at, forgotten) = (call.created_at()?, shared.ledger.forgotten_upto(now));
    let is_forgotten = created_at.is_some_and(|created_at| forgotten.includes_id(created_at));
    if !is_forgotten && !is_too_old(created_at, forgotten.borne_out) {
        return Ok(());
    }
    let known = shared.ledger.known(call.member.id, id).await.map_err(|error| storage_refused(&error))?;
    match known {
        Some(_) => Ok(()),
        None => Err(Refusal::plain(ErrorCode::IdempotencyKeyExpired)),
    }
}

/// The answer to a message, the same for every copy of it.
pub(super) fn accepted(id: &ClientMessageId, receipt: BrokerReceipt) -> AcceptAnswer {
    AcceptAnswer {
        broker_message_id: receipt.broker_message_id,
        client_message_id: id.clone(),
        conversation: receipt.conversation,
        history_id: receipt.history_id,
        created_at: receipt.accepted_at,
        duplicate: false,
        history_available: None,
        first_seen_at: None,
    }
}

fn answer(shared: &Shared, id: &ClientMessageId, word: Word) -> Result<Response, Refusal> {
    match word {
        Word::Accepted { receipt, admission, .. } => {
            let mut response = respond::json(StatusCode::CREATED, &accepted(id, receipt));
            match admission {
                Admission::New { .. } => shared.metrics.hub_writes.add_one(),
                Admission::Duplicate { .. } => {
                    shared.metrics.hub_replayed.add_one();
                    mark_replayed(&mut response);
                }
            }
            Ok(response)
        }
        Word::Refused(refused) => {
            let refusal = match refused.code {
                ErrorCode::IdRetired => Refusal::plain(ErrorCode::IdempotencyKeyRetired),
                _ => with_retry_after(refused),
            };
            shared.metrics.hub_refused.of(refusal.refused().code).add_one();
            Err(refusal)
        }
        Word::NotTried => Err(Refusal::plain(ErrorCode::Unavailable)),
    }
}

/// Messages of every conversation the caller may read, newest first.
#[utoipa::path(
    get, path = "/hub/messages/", tag = "hub", params(MessagesQuery),
    operation_id = "hub_messages_list",
    responses((status = 200, body = MessageList), Refusals), security(("token" = ["hub", "read"]))
)]
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    asked: Result<Query<MessagesQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let caller = caller.may_use_hub()?;
    caller.check_read()?;
    let MessagesQuery { limit, before } = query(asked)?;
    let limit = limit.unwrap_or(limits::PAGE_ROWS_DEFAULT).clamp(1, limits::PAGE_ROWS_MAX);
    let before = before.filter(|before| !before.is_empty()).map(|before| place(&before)).transpose()?;
    let page = shared.ledger.messages(caller.member.id, before, limit).await;
    let page = page.map_err(|error| storage_refused(&error))?;
    let (mut messages, mut bytes, mut before) = (Vec::new(), 0, page.before);
    for listed in &page.rows {
        bytes += listed.row.envelope.len();
        if bytes > limits::FRAME_BYTES_MAX
            && let Some(last) = messages.len().checked_sub(1)
        {
            before = Some(page.rows[last].number);
            break;
        }
        messages.push(shown(listed)?);
    }
    let (has_more, before) = (before.is_some(), before.map(cursor).unwrap_or_default());
    Ok(respond::json(StatusCode::OK, &MessageList { messages, before, has_more }))
}

fn shown(listed: &MessageRow) -> Result<ListedMessage, Refusal> {
    let message = message::of_history(&listed.row, &listed.place).map_err(|error| {
        tracing::error!(%error, "a stored envelope cannot be read");
        Refusal::plain(ErrorCode::Internal)
    })?;
    Ok(ListedMessage { message, read_at: listed.read_at })
}

fn cursor(number: u64) -> String {
    format!("messages:{number}")
}

fn place(cursor: &str) -> Result<u64, Refusal> {
    let number = cursor.strip_prefix("messages:").and_then(|number| number.parse().ok());
    number.ok_or_else(|| Refusal::plain(ErrorCode::InvalidCursor))
}

/// Marks the caller's copy of a message as read. The first instant stands.
#[utoipa::path(
    patch, path = "/hub/messages/{id}/read", tag = "hub",
    params(("id" = String, Path, description = "The message"),
        ("idempotency-key" = Option<String>, Header, description = "Makes the write happen once")),
    responses((status = 200, body = WasRead), Refusals), security(("token" = ["hub", "read"]))
)]
pub(super) async fn read(id: Result<Path<String>, PathRejection>, call: Call) -> Result<Response, Refusal> {
    call.caller.check_read()?;
    let said = call.read_flag()?;
    if said.is_some_and(|said| said != Value::Bool(true)) {
        return Err(Refusal::new(
            ErrorCode::InvalidRequest,
            "A message can be marked as read, not as unread.",
        ));
    }
    let id = part(id)?.parse().map_err(|_| Refusal::plain(ErrorCode::NotFound))?;
    call.read_message(id).await
}
