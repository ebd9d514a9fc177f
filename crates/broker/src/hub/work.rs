//! Progress, token events, tasks.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use ledger::HubEffect;
use model::hub::{Change, Precondition, RecordKind};
use model::{ErrorCode, limits};
use net::respond::Refusal;
use serde::Serialize;
use serde_json::{Map, Value, json};
use wire::hub::{NewProgress, NewTask, NewTokenEvent, Record, StatusSync, TaskPatch};

use super::call::Call;
use super::records::record_id;
use crate::direct::part;
use crate::openapi::Refusals;

/// The fields to store: those of the type, without the id the record has anyway.
pub(super) fn stored(new: &impl Serialize) -> Map<String, Value> {
    let mut fields = match serde_json::to_value(new) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    };
    fields.remove("id");
    fields
}

/// Notes what was done.
#[utoipa::path(
    post, path = "/hub/progress/", tag = "hub", request_body = NewProgress,
    params(("idempotency-key" = Option<String>, Header, description = "Makes the write happen once")),
    responses((status = 201, body = Record), Refusals), security(("token" = ["hub"]))
)]
pub(super) async fn create_progress(call: Call) -> Result<Response, Refusal> {
    let (new, _) = call.fields::<NewProgress>()?;
    call.create(RecordKind::Progress, new.id.clone(), stored(&new)).await
}

/// Notes what a session used up.
#[utoipa::path(
    post, path = "/hub/token-events/", tag = "hub", request_body = NewTokenEvent,
    params(("idempotency-key" = Option<String>, Header, description = "Makes the write happen once")),
    responses((status = 201, body = Record), Refusals), security(("token" = ["hub"]))
)]
pub(super) async fn create_token_event(call: Call) -> Result<Response, Refusal> {
    let (new, _) = call.fields::<NewTokenEvent>()?;
    call.create(RecordKind::TokenEvent, new.source_id.clone(), stored(&new)).await
}

/// The same by the source's id: the last word counts.
#[utoipa::path(
    post, path = "/hub/token-events/upsert", tag = "hub", request_body = NewTokenEvent,
    params(("idempotency-key" = Option<String>, Header, description = "Makes the write happen once")),
    responses((status = 201, body = Record), (status = 200, body = Record), Refusals),
    security(("token" = ["hub"]))
)]
pub(super) async fn upsert_token_event(call: Call) -> Result<Response, Refusal> {
    let (new, _) = call.fields::<NewTokenEvent>()?;
    let Some(id) = &new.source_id else {
        return Err(wire::Refused::new(ErrorCode::InvalidRequest, "An upsert needs the source_id.")
            .with("field", "source_id")
            .into());
    };
    let id = id.parse()?;
    call.change(RecordKind::TokenEvent, id, Change::Replace(stored(&new))).await
}

/// Makes a task.
#[utoipa::path(
    post, path = "/hub/tasks/", tag = "hub", request_body = NewTask,
    params(("idempotency-key" = Option<String>, Header, description = "Makes the write happen once")),
    responses((status = 201, body = Record), Refusals), security(("token" = ["hub"]))
)]
pub(super) async fn create_task(call: Call) -> Result<Response, Refusal> {
    let (new, _) = call.fields::<NewTask>()?;
    call.create(RecordKind::Task, new.id.clone(), stored(&new)).await
}

/// Changes what the body names; `If-Match` or `If-Unmodified-Since` say what the caller had seen.
#[utoipa::path(
    patch, path = "/hub/tasks/{id}", tag = "hub", request_body = TaskPatch,
    params(("id" = String, Path, description = "The task"),
        ("idempotency-key" = Option<String>, Header, description = "Makes the write happen once"),
        ("if-match" = Option<String>, Header, description = "The version the caller saw")),
    responses((status = 200, body = Record), Refusals), security(("token" = ["hub"]))
)]
pub(super) async fn patch_task(
    id: Result<Path<String>, PathRejection>,
    call: Call,
) -> Result<Response, Refusal> {
    let (_, patch) = call.fields::<TaskPatch>()?;
    call.change(RecordKind::Task, record_id(&part(id)?)?, Change::Patch(patch)).await
}

/// Sets the status of many tasks in order, all or none; a 409 names those that stood in the way.
#[utoipa::path(
    post, path = "/hub/tasks/bulk-status-sync", tag = "hub", request_body = StatusSync,
    params(("idempotency-key" = Option<String>, Header, description = "Makes the write happen once"),
        ("if-unmodified-since" = Option<String>, Header, description = "Since when nobody may have changed them")),
    responses((status = 200), Refusals), security(("token" = ["hub"]))
)]
pub(super) async fn sync_statuses(call: Call) -> Result<Response, Refusal> {
    let (sync, _) = call.fields::<StatusSync>()?;
    if sync.tasks.is_empty() || sync.tasks.len() > limits::HUB_SYNC_TASKS_MAX {
        let sentence = format!("A sync names 1 to {} tasks.", limits::HUB_SYNC_TASKS_MAX);
        return Err(wire::Refused::new(ErrorCode::InvalidRequest, sentence).with("field", "tasks").into());
    }
    let since = match call.precondition()? {
        since @ (Precondition::None | Precondition::UnchangedSince(_)) => since,
        Precondition::Versions(_) | Precondition::Present | Precondition::Absent => {
            return Err(Refusal::new(ErrorCode::InvalidRequest, "A sync names versions in its tasks."));
        }
    };
    let mut changes = Vec::with_capacity(sync.tasks.len());
    for task in &sync.tasks {
        let mut patch = Map::new();
        patch.insert("status".to_owned(), json!(task.status));
        let precondition =
            task.version.map_or_else(|| since.clone(), |version| Precondition::Versions(vec![version]));
        changes.push((task.id.parse()?, Change::Patch(patch), precondition));
    }
    call.write(HubEffect::Batch { kind: RecordKind::Task, changes }).await
}
