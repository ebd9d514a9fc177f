//! Direct HTTP at the fabric door, for callers with an API token and for browsers that are signed in.
//!
//! - The ledger is asked at every request who calls and what it may do, so a revoked token and an ended session end at
//!   once.
//! - A message goes through the same accept as a link's; only its node and its send deadline are missing.
//! - A conversation that is not the caller's to read answers exactly as one that does not exist.

mod caller;
mod explain;
mod read;
mod send;

use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use model::ErrorCode;
use net::respond::Refusal;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::broker::Shared;

pub(crate) use caller::{Caller, lacks};
pub(crate) use send::{idempotency_key, post, posted_to, with_retry_after};

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(send::to_mesh))
        .routes(routes!(read::status))
        .routes(routes!(read::conversations))
        .routes(routes!(read::conversation))
        .routes(routes!(send::to_conversation))
        .routes(routes!(explain::explain))
}

/// The part of the address, or a refusal in our own shape.
pub(crate) fn part<T>(path: Result<Path<T>, PathRejection>) -> Result<T, Refusal> {
    path.map(|Path(part)| part).map_err(|_| Refusal::plain(ErrorCode::NotFound))
}

/// The query, or a refusal in our own shape.
pub(crate) fn query<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Refusal> {
    query
        .map(|Query(asked)| asked)
        .map_err(|rejection| Refusal::new(ErrorCode::InvalidRequest, rejection.body_text()))
}
