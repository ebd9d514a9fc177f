//! What members do to conversations beside writing: states, read marks, emptying; and who there is.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use ledger::{ConversationKind, ConversationRow, Role};
use model::{ConversationId, ErrorCode, limits};
use net::respond::{self, Json, Refusal};
use wire::ask::ConversationRow as Row;
use wire::direct::{ConversationChange, MemberList, NodeRow, ReadAnswer, ReadRequest, ResetAnswer};

use super::poll::refused;
use crate::ask::{conversation_row, managed, member_row};
use crate::audit::{Decision, Event};
use crate::broker::{Shared, storage_refused};
use crate::direct::{Caller, part};
use crate::openapi::Refusals;

/// Pauses, closes or opens a conversation. Of a topic its mesh's owner may, of a direct one its two.
#[utoipa::path(
    patch,
    path = "/v1/conversations/{id}",
    tag = "conversations",
    params(("id" = String, Path, description = "The conversation")),
    request_body = ConversationChange,
    responses((status = 200, body = Row), Refusals),
    security(("token" = ["send"]), ("cookie" = []))
)]
pub(super) async fn change(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
    Json(change): Json<ConversationChange>,
) -> Result<Response, Refusal> {
    let caller = caller.may_send()?;
    let state = change.state.parse()?;
    let found = conversation(&shared, &caller, id).await?;
    may_decide(&caller, &found)?;
    let id = found.place.conversation;
    let set = shared.ledger.set_conversation_state(id, state).await;
    set.map_err(|error| Refusal::from(managed(error)))?;
    let row = ConversationRow { state, ..found };
    Ok(respond::json(StatusCode::OK, &conversation_row(&row)))
}

/// Everything up to a place was read by the caller.
#[utoipa::path(
    post,
    path = "/v1/conversations/{id}/read",
    tag = "conversations",
    params(("id" = String, Path, description = "The conversation")),
    request_body = ReadRequest,
    responses((status = 200, body = ReadAnswer), Refusals),
    security(("token" = ["read"]), ("cookie" = []))
)]
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
    Json(request): Json<ReadRequest>,
) -> Result<Response, Refusal> {
    let caller = caller.may_read()?;
    let id: ConversationId = part(id)?.parse().map_err(|_| absent())?;
    let upto = request.cursor.parse().map_err(|_| Refusal::plain(ErrorCode::InvalidCursor))?;
    let marked = shared.ledger.mark_read(caller.member.id, id, upto).await;
    let state = marked.map_err(|error| refused(&error))?.ok_or_else(absent)?;
    Ok(respond::json(StatusCode::OK, &ReadAnswer { read: state.read, unread: state.unread }))
}

/// Removes a conversation's messages, for good; its followers are told `reset`. The mesh's owner may.
#[utoipa::path(
    delete,
    path = "/v1/conversations/{id}/messages",
    tag = "conversations",
    params(("id" = String, Path, description = "The conversation")),
    responses((status = 200, body = ResetAnswer), Refusals),
    security(("token" = ["send"]), ("cookie" = []))
)]
pub(super) async fn empty(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let caller = caller.may_send()?;
    let found = conversation(&shared, &caller, id).await?;
    if caller.member.role != Role::Owner {
        return Err(Refusal::new(ErrorCode::Forbidden, "Only the mesh's owner may empty a conversation."));
    }
    let id = found.place.conversation;
    let emptied = shared.ledger.empty_conversation(id).await.map_err(|error| storage_refused(&error))?;
    let emptied = emptied.ok_or_else(absent)?;
    shared.rooms.ring(id);
    let what = Decision::ConversationEmptied { conversation: id, messages: emptied.removed };
    Event::Decided { by: &caller.member.name, what }.record();
    let answer = ResetAnswer { generation: emptied.epoch, removed: emptied.removed };
    Ok(respond::json(StatusCode::OK, &answer))
}

/// The mesh's members and nodes.
#[utoipa::path(
    get,
    path = "/v1/members",
    tag = "members",
    responses((status = 200, body = MemberList), Refusals),
    security(("token" = ["read"]), ("cookie" = []))
)]
pub(super) async fn members(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<Response, Refusal> {
    caller.may_read()?;
    let storage = |error| storage_refused(&error);
    let members = shared.ledger.members(None, limits::PAGE_ROWS_MAX).await.map_err(storage)?;
    let nodes = shared.ledger.nodes(limits::PAGE_ROWS_MAX).await.map_err(storage)?;
    let members = members.iter().filter(|member| member.removed_at.is_none()).map(member_row).collect();
    let nodes = nodes.into_iter().map(|node| NodeRow {
        linked: shared.links.is_live(&node.name),
        node: node.name.to_string(),
        last_seen_at: node.last_seen_at,
        held: node.held,
    });
    Ok(respond::json(StatusCode::OK, &MemberList { members, nodes: nodes.collect() }))
}

async fn conversation(
    shared: &Shared,
    caller: &Caller,
    id: Result<Path<String>, PathRejection>,
) -> Result<ConversationRow, Refusal> {
    let id = part(id)?.parse().map_err(|_| absent())?;
    let found = shared.ledger.conversation(id, caller.member.id).await;
    found.map_err(|error| storage_refused(&error))?.ok_or_else(absent)
}

fn may_decide(caller: &Caller, conversation: &ConversationRow) -> Result<(), Refusal> {
    match (conversation.kind, caller.member.role) {
        (ConversationKind::Dm, _) | (ConversationKind::Topic, Role::Owner) => Ok(()),
        (ConversationKind::Topic, Role::Member) => {
            Err(Refusal::new(ErrorCode::Forbidden, "Only the mesh's owner may do this to a topic."))
        }
    }
}

fn absent() -> Refusal {
    Refusal::plain(ErrorCode::ConversationNotFound)
}
