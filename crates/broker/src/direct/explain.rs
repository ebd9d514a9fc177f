//! `GET /v1/explain/{id}`: where is it, and why.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use net::respond::{self, Refusal};

use super::caller::Caller;
use super::part;
use crate::broker::{Shared, storage_refused};
use crate::explain as facts;

pub(super) async fn explain(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let caller = caller.may_ask()?;
    let explained = facts::explain(&shared, &caller.member, &part(id)?).await;
    Ok(respond::json(StatusCode::OK, &explained.map_err(|error| storage_refused(&error))?))
}
