//! Whether the process lives, whether it can serve, and its figures.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use model::ErrorCode;
use net::respond::{self, Refusal};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::health::BrokerHealth;

use crate::broker::Shared;
use crate::openapi::Refusals;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(alive)).routes(routes!(ready)).routes(routes!(figures))
}

#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = BrokerHealth)))]
/// The process answers; nothing else is looked at, or a slow store would get it restarted. Problems found before are
/// named, and change nothing.
async fn alive(State(shared): State<Arc<Shared>>) -> Response {
    respond::json(StatusCode::OK, &health(&shared, "ok"))
}

fn health(shared: &Shared, status: &str) -> BrokerHealth {
    BrokerHealth { status: status.to_owned(), problems: shared.problems.all() }
}

#[utoipa::path(get, path = "/readyz", tag = "health", responses((status = 200, body = BrokerHealth), Refusals))]
/// The ledger answers, no store of the process has stopped and nobody asked to stop: a load balancer may send work here.
async fn ready(State(shared): State<Arc<Shared>>) -> Result<Response, Refusal> {
    if let Some(stopped) = shared.stores.stopped().first() {
        shared.metrics.db_healthy.set(0);
        // Whoever asks need not be known here: no path, and no words of the disk.
        let problem =
            format!("The {} has stopped after a storage error; the process ends by itself.", stopped.name);
        return Err(Refusal::new(ErrorCode::StorageStopped, problem));
    }
    let answers = shared.ledger.now().await;
    shared.metrics.db_healthy.set(i64::from(answers.is_ok()));
    match answers {
        Ok(_) if !shared.stop.is_cancelled() => Ok(respond::json(StatusCode::OK, &health(&shared, "ready"))),
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
