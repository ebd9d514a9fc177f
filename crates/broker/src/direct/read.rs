//! Reading: what became of an id, and conversations.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::StatusCode;
use ledger::{Log, StatusQuestion};
use model::admission::{self, Known, KnownState};
use model::{ClientMessageId, ConversationId, ErrorCode, limits};
use net::respond::{self, Refusal};
use wire::ask::StatusAnswer;
use wire::direct::{ConversationList, ListQuery, PageQuery, StatusQuery};
use wire::log::{Page, PageRequest};

use super::caller::Caller;
use super::{part, query};
use crate::ask::{conversation_row, page, status_answer};
use crate::broker::{Shared, storage_refused};
use crate::chat::page_after;
use crate::openapi::Refusals;

/// What became of one of the caller's own ids. Asking changes nothing.
#[utoipa::path(
    get,
    path = "/v1/meshes/{mesh}/messages/{client_message_id}",
    tag = "messages",
    params(("mesh" = String, Path, description = "The mesh's id or slug"),
        ("client_message_id" = String, Path, description = "The caller's key"), StatusQuery),
    responses((status = 200, body = StatusAnswer), Refusals),
    security(("token" = ["send"]), ("token" = ["read"]))
)]
pub(super) async fn status(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    path: Result<Path<(String, String)>, PathRejection>,
    asked: Result<Query<StatusQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let caller = caller.may_ask()?;
    let (mesh, id) = part(path)?;
    shared.check_mesh(&mesh)?;
    let (id, asked): (ClientMessageId, StatusQuery) = (id.parse()?, query(asked)?);
    let storage = |error| storage_refused(&error);
    let known = shared.ledger.known(caller.member.id, &id).await.map_err(storage)?;
    let now = shared.ledger.now().await.map_err(storage)?;
    let window = shared.ledger.mesh().await.map_err(storage)?.policies.dedupe;
    let question = StatusQuestion {
        sender: caller.member.id,
        client_message_id: id,
        // Without a fingerprint any message under the id is the one asked for.
        fingerprint: asked.request_fingerprint.unwrap_or_else(|| held(known.as_ref())),
        first_attempt_at: asked.first_attempt_at.unwrap_or(now),
    };
    let answer = admission::message_status(
        known.as_ref(),
        &question.fingerprint,
        question.first_attempt_at,
        window,
        now,
    );
    let mut answer = status_answer(answer, question.fingerprint);
    if let (
        StatusAnswer::Accepted(row),
        Some(Known { state: KnownState::Accepted { history_available, .. }, .. }),
    ) = (&mut answer, known)
    {
        row.history_available = history_available;
    }
    Ok(respond::json(StatusCode::OK, &answer))
}

fn held(known: Option<&Known>) -> model::Fingerprint {
    known.map_or(model::Fingerprint::from_bytes([0; 32]), |known| known.fingerprint)
}

/// The caller's conversations, last active first.
#[utoipa::path(
    get,
    path = "/v1/conversations",
    tag = "conversations",
    params(ListQuery),
    responses((status = 200, body = ConversationList), Refusals),
    security(("token" = ["read"]))
)]
pub(super) async fn conversations(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    asked: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let caller = caller.may_read()?;
    let limit = query(asked)?.limit.unwrap_or(limits::PAGE_ROWS_DEFAULT).clamp(1, limits::PAGE_ROWS_MAX);
    let rows = shared
        .ledger
        .conversations(caller.member.id, limit)
        .await
        .map_err(|error| storage_refused(&error))?;
    let conversations = rows.iter().map(conversation_row).collect();
    Ok(respond::json(StatusCode::OK, &ConversationList { conversations }))
}

/// A page of a conversation, newest last; an unknown one is empty. With `after`, what follows a place.
#[utoipa::path(
    get,
    path = "/v1/conversations/{id}",
    tag = "conversations",
    params(("id" = String, Path, description = "The conversation"), PageQuery),
    responses((status = 200, body = Page), Refusals),
    security(("token" = ["read"]))
)]
pub(super) async fn conversation(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
    asked: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let caller = caller.may_read()?;
    let PageQuery { limit, before, after, wait } = query(asked)?;
    let id = part(id)?.parse();
    if let Some(after) = after {
        if before.is_some() {
            return Err(Refusal::new(ErrorCode::InvalidRequest, "Give before or after, not both."));
        }
        let id = id.unwrap_or(ConversationId::from_bytes([0; 16]));
        let limit = limit.unwrap_or(limits::PAGE_ROWS_DEFAULT).clamp(1, limits::PAGE_ROWS_MAX);
        let wait = Duration::from_secs(wait.unwrap_or(0));
        let page = page_after(&shared, caller.member.id, id, &after, limit, wait).await?;
        return Ok(respond::json(StatusCode::OK, &page));
    }
    let found = match id {
        Ok(id) => {
            page(&shared, &Log::Conversation(id), caller.member.id, PageRequest { before, limit }).await?
        }
        Err(_) => None,
    };
    // Absent and unreadable look alike: an empty log.
    let empty =
        || Page { messages: Vec::new(), cursor: String::new(), before: String::new(), has_more: false };
    Ok(respond::json(StatusCode::OK, &found.unwrap_or_else(empty)))
}
