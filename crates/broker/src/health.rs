//! Whether the process lives, whether it can serve, and its figures.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use model::ErrorCode;
use net::respond::{self, Refusal};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::broker::Shared;
use crate::openapi::Refusals;

/// The process's own word.
#[derive(Serialize, ToSchema)]
struct Health {
    /// `ok` or `ready`.
    status: &'static str,
}

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(alive)).routes(routes!(ready)).routes(routes!(figures))
}

#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = Health)))]
/// The process answers; nothing else is looked at, or a slow store would get it restarted.
async fn alive() -> Response {
    respond::json(StatusCode::OK, &Health { status: "ok" })
}

#[utoipa::path(get, path = "/readyz", tag = "health", responses((status = 200, body = Health), Refusals))]
/// The ledger answers and nobody asked to stop: a load balancer may send work here.
async fn ready(State(shared): State<Arc<Shared>>) -> Result<Response, Refusal> {
    let answers = shared.ledger.now().await;
    shared.metrics.db_healthy.set(i64::from(answers.is_ok()));
    match answers {
        Ok(_) if !shared.stop.is_cancelled() => {
            Ok(respond::json(StatusCode::OK, &Health { status: "ready" }))
        }
        Ok(_) => Err(Refusal::plain(ErrorCode::Unavailable)),
        Err(error) => {
            tracing::warn!(%error, "not ready: the ledger does not answer");
            Err(Refusal::plain(ErrorCode::Unavailable))
        }
    }
}

/// The figures, as Prometheus reads them.
#[utoipa::path(get, path = "/metrics", tag = "health", responses((status = 200, body = String, content_type = "text/plain")))]
async fn figures(State(shared): State<Arc<Shared>>) -> Response {
    let mut text = shared.metrics.render();
    shared.limiter_counters.render(&mut text);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
