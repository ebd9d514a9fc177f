//! Where is it, and why, over HTTP.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use net::respond::{self, Refusal};
use wire::ask::BrokerExplained;

use super::caller::Caller;
use super::part;
use crate::broker::{Shared, storage_refused};
use crate::explain as facts;
use crate::openapi::Refusals;

/// Everything the broker knows about a message's or a caller's id.
#[utoipa::path(
    get,
    path = "/v1/explain/{id}",
    tag = "messages",
    params(("id" = String, Path, description = "Either kind of id")),
    responses((status = 200, body = BrokerExplained), Refusals),
    security(("token" = ["send"]), ("token" = ["read"]))
)]
pub(super) async fn explain(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let caller = caller.may_ask()?;
    let explained = facts::explain(&shared, &caller.member, &part(id)?, None).await;
    Ok(respond::json(StatusCode::OK, &explained.map_err(|error| storage_refused(&error))?))
}
