//! Handing over a message without a daemon. The answer is the broker's own: durable when it says so.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, Method, Request, StatusCode};
use ledger::{Admission, LinkError, Member, Via};
use model::{ClientMessageId, ErrorCode};
use net::respond::{self, Json, Refusal};
use sqlite::fault;
use wire::Refused;
use wire::direct::{AcceptAnswer, PostRequest};
use wire::local::{IDEMPOTENCY_HEADER, SendRequest};

use super::caller::Caller;
use super::part;
use crate::accept::{Item, Sender, Times, Word};
use crate::broker::{Shared, storage_refused};
use crate::openapi::Refusals;

/// A planted bug: a handler that breaks on some requests.
const PANIC_ON_QUESTION: &str = "broker.panic_on_question";

/// Hands over a message; 201 means durable, 200 that an earlier copy is.
#[utoipa::path(
    post,
    path = "/v1/meshes/{mesh}/messages",
    tag = "messages",
    params(("mesh" = String, Path, description = "The mesh's id or slug"),
        ("idempotency-key" = Option<String>, Header, description = "The client_message_id")),
    request_body = SendRequest,
    responses((status = 201, body = AcceptAnswer), (status = 200, body = AcceptAnswer), Refusals),
    security(("token" = ["send"]))
)]
pub(super) async fn to_mesh(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    mesh: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    Json(request): Json<SendRequest>,
) -> Result<Response, Refusal> {
    post(&shared, caller, &part(mesh)?, &headers, request).await
}

/// The mesh a message is posted to, where its name is written plainly. Such posts are answered before the routes.
pub(crate) fn posted_to<B>(request: &Request<B>) -> Option<&str> {
    let path = request.uri().path();
    let mesh = path.strip_prefix("/v1/meshes/")?.strip_suffix("/messages")?;
    let plain = !mesh.is_empty() && !mesh.contains(['/', '%']);
    (plain && request.method() == Method::POST).then_some(mesh)
}

/// Answers a post of `caller`.
pub(crate) async fn post(
    shared: &Arc<Shared>,
    caller: Caller,
    mesh: &str,
    headers: &HeaderMap,
    request: SendRequest,
) -> Result<Response, Refusal> {
    let caller = caller.may_send()?;
    shared.check_mesh(mesh)?;
    if let Some(named) = &request.mesh {
        shared.check_mesh(named)?;
    }
    accept(shared, &caller.member, request, headers).await
}

/// The same into a conversation the caller knows by id.
#[utoipa::path(
    post,
    path = "/v1/conversations/{id}/messages",
    tag = "conversations",
    params(("id" = String, Path, description = "The conversation"),
        ("idempotency-key" = Option<String>, Header, description = "The client_message_id")),
    request_body = PostRequest,
    responses((status = 201, body = AcceptAnswer), (status = 200, body = AcceptAnswer), Refusals),
    security(("token" = ["send"]))
)]
pub(super) async fn to_conversation(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    Json(request): Json<PostRequest>,
) -> Result<Response, Refusal> {
    let caller = caller.may_send()?;
    let absent = || Refusal::plain(ErrorCode::ConversationNotFound);
    let id = part(id)?.parse().map_err(|_| absent())?;
    let found =
        shared.ledger.conversation(id, caller.member.id).await.map_err(|error| storage_refused(&error))?;
    let to = found.ok_or_else(absent)?.place.name.to_string();
    accept(&shared, &caller.member, request.towards(to), &headers).await
}

impl Shared {
    /// A ledger holds one mesh; its id or its slug names it.
    pub(crate) fn check_mesh(&self, named: &str) -> Result<(), Refusal> {
        if named == self.mesh.slug || named == self.mesh.id.to_string() {
            Ok(())
        } else {
            Err(Refusal::new(ErrorCode::NotFound, "This broker serves another mesh."))
        }
    }
}

async fn accept(
    shared: &Arc<Shared>,
    sender: &Member,
    request: SendRequest,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    assert!(!(request.expects_input == Some(true) && fault::bug(PANIC_ON_QUESTION)), "a planted panic");
    let now = shared.ledger.now().await.map_err(|error| storage_refused(&error))?;
    let key = request.key(idempotency_key(headers)?)?;
    let id = key.unwrap_or_else(|| ClientMessageId::mint(now, shared.entropy.as_ref()));
    let item = Item::check(request.into_fields(id.clone())?, None, Times::of_caller(now))?;
    let words =
        shared.accept_lane(Via::Broker, Sender { id: sender.id, name: &sender.name }, vec![Ok(item)]).await;
    let mut words = words.map_err(|error| match error {
        LinkError::Refused(refused) => Refusal::plain(refused.code()),
        LinkError::Storage(error) => storage_refused(&error),
    })?;
    answer(id, words.pop().expect("one word for one message"))
}

/// The caller's key, if there is one line of it.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let malformed =
        || Refusal::new(ErrorCode::InvalidRequest, "Idempotency-Key must be one line of plain text.");
    let mut lines = headers.get_all(IDEMPOTENCY_HEADER).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(line), None) => line.to_str().map(Some).map_err(|_| malformed()),
        (Some(_), Some(_)) => Err(malformed()),
    }
}

fn answer(id: ClientMessageId, word: Word) -> Result<Response, Refusal> {
    match word {
        Word::Accepted { receipt, admission, .. } => {
            let (status, duplicate, history_available) = match admission {
                Admission::New { .. } => (StatusCode::CREATED, false, None),
                Admission::Duplicate { history_available } => (StatusCode::OK, true, Some(history_available)),
            };
            let body = AcceptAnswer {
                broker_message_id: receipt.broker_message_id,
                client_message_id: id,
                conversation: receipt.conversation,
                history_id: receipt.history_id,
                created_at: receipt.accepted_at,
                duplicate,
                history_available,
                first_seen_at: duplicate.then_some(receipt.accepted_at),
            };
            Ok(respond::json(status, &body))
        }
        Word::Refused(refused) => Err(with_retry_after(refused)),
        Word::NotTried => Err(Refusal::plain(ErrorCode::Unavailable)),
    }
}

/// A refusal that says when to come back.
pub(crate) fn with_retry_after(refused: Refused) -> Refusal {
    let wait_ms = refused.more.get("retry_after_ms").and_then(serde_json::Value::as_u64);
    let refusal = Refusal::from(refused);
    match wait_ms {
        Some(wait_ms) => refusal.retry_after(Duration::from_millis(wait_ms)),
        None => refusal,
    }
}
