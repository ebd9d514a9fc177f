//! `/v1/outbox`: what was handed over, newest first, and what a person does about it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode, Uri};
use mailbox::OutboxFilter;
use model::outbox::Status;
use model::{ErrorCode, limits};
use net::respond::{Json, Refusal, json};
use net::run_to_end;
use serde::Deserialize;
use wire::local::{ACT_AS_HEADER, AbortRequest, OutboxPage, PruneRequest, RequeueRequest};

use super::send::line;
use crate::ground::{Caller, Ground};
use crate::{operator, prune, storage, view};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    mesh: Option<String>,
    status: Option<String>,
    before: Option<u64>,
    limit: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfMesh {
    mesh: Option<String>,
}

/// `GET /v1/outbox`
pub(super) async fn list(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked: Asked = super::query(&uri)?;
    let status: Option<Status> = asked.status.as_deref().map(str::parse).transpose()?;
    let limit = asked.limit.unwrap_or(limits::PAGE_ROWS_DEFAULT);
    if !(1..=limits::PAGE_ROWS_MAX).contains(&limit) {
        let message = format!("limit must be 1 to {}", limits::PAGE_ROWS_MAX);
        return Err(Refusal::new(ErrorCode::InvalidRequest, message));
    }
    let acting_as = line(&headers, ACT_AS_HEADER)?;
    // The operator looks after everybody's rows; an agent, or an operator as somebody, sees that one's.
    let (mesh, sender) = match (&caller, acting_as) {
        (Caller::Operator, None) => (ground.mesh(asked.mesh.as_deref())?, None),
        (Caller::Operator | Caller::Agent { .. }, _) => {
            let actor = ground.act(&caller, asked.mesh.as_deref(), acting_as)?;
            (actor.mesh, Some(actor.member.id))
        }
    };
    let filter = OutboxFilter { status, sender, before_seq: asked.before, limit };
    let rows = mesh.mailbox.outbox_list(filter).await.map_err(|error| storage::refusal(&error))?;
    let counts = mesh.mailbox.outbox_counts().await.map_err(|error| storage::refusal(&error))?;
    let items = rows.into_iter().map(|row| view::outbox_item(&mesh, row)).collect();
    Ok(json(StatusCode::OK, &OutboxPage { items, counts: view::outbox_counts(&counts) }))
}

/// `GET /v1/outbox/{id}`
pub(super) async fn inspect(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    caller.must_be_operator()?;
    let asked: OfMesh = super::query(&uri)?;
    let mesh = ground.mesh(asked.mesh.as_deref())?;
    Ok(json(StatusCode::OK, &operator::inspect(&mesh, id.parse()?).await?))
}

/// `POST /v1/outbox/requeue`
pub(super) async fn requeue(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Json(request): Json<RequeueRequest>,
) -> Result<Response, Refusal> {
    caller.must_be_operator()?;
    let mesh = ground.mesh(request.mesh.as_deref())?;
    Ok(json(StatusCode::OK, &run_to_end(async move { operator::requeue(&mesh, request).await }).await?))
}

/// `POST /v1/outbox/abort`
pub(super) async fn abort(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Json(request): Json<AbortRequest>,
) -> Result<Response, Refusal> {
    caller.must_be_operator()?;
    let (mesh, row) = (ground.mesh(request.mesh.as_deref())?, request.id.parse()?);
    Ok(json(StatusCode::OK, &run_to_end(async move { operator::abort(&mesh, row).await }).await?))
}

/// `POST /v1/outbox/prune`
pub(super) async fn prune(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Json(request): Json<PruneRequest>,
) -> Result<Response, Refusal> {
    caller.must_be_operator()?;
    Ok(json(StatusCode::OK, &prune::prune(&ground, request).await?))
}
