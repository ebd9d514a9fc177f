//! Whether the process lives, whether it can serve, and its figures.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use model::ErrorCode;
use net::respond::{self, Refusal};
use serde::Serialize;

use crate::broker::Shared;

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/healthz", get(alive)).route("/readyz", get(ready)).route("/metrics", get(figures))
}

/// The process answers; nothing else is looked at, or a slow store would get it restarted.
async fn alive() -> Response {
    respond::json(StatusCode::OK, &Health { status: "ok" })
}

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

async fn figures(State(shared): State<Arc<Shared>>) -> Response {
    let mut text = shared.metrics.render();
    shared.limiter_counters.render(&mut text);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
