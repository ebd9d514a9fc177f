//! Decisions and workplans.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use model::hub::{Change, RecordKind};
use net::respond::Refusal;
use serde_json::json;
use wire::hub::{
    DecisionPatch, DecisionStatus, NewDecision, NewWorkplan, Record, Resolution, ResolutionText,
    WorkplanPatch,
};

use super::call::Call;
use super::records::record_id;
use super::work::stored;
use crate::direct::part;
use crate::openapi::Refusals;

/// Asks for a decision.
#[utoipa::path(
    post, path = "/hub/decisions/", tag = "hub", request_body = NewDecision,
    params(("idempotency-key" = Option<String>, Header, description = "Makes the write happen once")),
    responses((status = 201, body = Record), Refusals), security(("token" = ["hub"]))
)]
pub(super) async fn create_decision(call: Call) -> Result<Response, Refusal> {
    let (new, _) = call.fields::<NewDecision>()?;
    let mut fields = stored(&new);
    fields.insert("status".to_owned(), json!(DecisionStatus::Open));
    call.create(RecordKind::Decision, new.id.clone(), fields).await
}

/// Changes what the body names.
#[utoipa::path(
    patch, path = "/hub/decisions/{id}", tag = "hub", request_body = DecisionPatch,
    params(("id" = String, Path, description = "The decision"),
        ("idempotency-key" = Option<String>, Header, description = "Makes the write happen once"),
        ("if-match" = Option<String>, Header, description = "The version the caller saw")),
    responses((status = 200, body = Record), Refusals), security(("token" = ["hub"]))
)]
pub(super) async fn patch_decision(
    id: Result<Path<String>, PathRejection>,
    call: Call,
) -> Result<Response, Refusal> {
    let (_, patch) = call.fields::<DecisionPatch>()?;
    call.change(RecordKind::Decision, record_id(&part(id)?)?, Change::Patch(patch)).await
}

/// Decides; once.
#[utoipa::path(
    post, path = "/hub/decisions/{id}/resolve", tag = "hub", request_body = ResolutionText,
    params(("id" = String, Path, description = "The decision"),
        ("idempotency-key" = Option<String>, Header, description = "Makes the write happen once"),
        ("if-match" = Option<String>, Header, description = "The version the caller saw")),
    responses((status = 200, body = Record), Refusals), security(("token" = ["hub"]))
)]
pub(super) async fn resolve_decision(
    id: Result<Path<String>, PathRejection>,
    call: Call,
) -> Result<Response, Refusal> {
    let (text, _) = call.fields::<ResolutionText>()?;
    let resolution = Resolution {
        status: DecisionStatus::Resolved,
        resolution: text.resolution,
        rationale: text.rationale,
        resolved_by: call.member.name.to_string(),
    };
    call.change(RecordKind::Decision, record_id(&part(id)?)?, Change::Resolve(stored(&resolution))).await
}

/// Makes a workplan.
#[utoipa::path(
    post, path = "/hub/workplans/", tag = "hub", request_body = NewWorkplan,
    params(("idempotency-key" = Option<String>, Header, description = "Makes the write happen once")),
    responses((status = 201, body = Record), Refusals), security(("token" = ["hub"]))
)]
pub(super) async fn create_workplan(call: Call) -> Result<Response, Refusal> {
    let (new, _) = call.fields::<NewWorkplan>()?;
    call.create(RecordKind::Workplan, new.id.clone(), stored(&new)).await
}

/// Changes what the body names; `/hub/workstreams/{id}` is the same door.
#[utoipa::path(
    patch, path = "/hub/workplans/{id}", tag = "hub", request_body = WorkplanPatch,
    params(("id" = String, Path, description = "The workplan"),
        ("idempotency-key" = Option<String>, Header, description = "Makes the write happen once"),
        ("if-match" = Option<String>, Header, description = "The version the caller saw")),
    responses((status = 200, body = Record), Refusals), security(("token" = ["hub"]))
)]
pub(super) async fn patch_workplan(
    id: Result<Path<String>, PathRejection>,
    call: Call,
) -> Result<Response, Refusal> {
    let (_, patch) = call.fields::<WorkplanPatch>()?;
    call.change(RecordKind::Workplan, record_id(&part(id)?)?, Change::Patch(patch)).await
}
