//! The local door: one router, served on the home's socket and on loopback TCP with different guards.
//!
//! - On the socket the operating system vouches for the caller; on TCP the token does. Which one it is follows
//!   from the listener, never from the request.
//! - An agent's token acts as that agent alone, on either listener.
//! - Nothing here holds state: every answer is read from the store or asked of the broker.

mod agents;
mod door;
mod events;
mod explain;
mod inbox;
mod meshes;
mod messages;
mod outbox;
mod send;
mod state;
mod tails;
mod topics;
mod turns;
mod waiting;

use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get, post};
use http::Uri;
use model::ErrorCode;
use net::respond::Refusal;
use serde::de::DeserializeOwned;

use crate::ground::Ground;

pub(crate) use door::{Callers, Transport};

/// The whole local door for one listener, with `more` routes, behind its guard.
pub(crate) fn callers(ground: Arc<Ground>, transport: Transport, more: Router) -> Callers {
    let routes = Router::new()
        // Posts to it are answered before they get here; the route tells other methods so.
        .route(send::PATH, post(async || Refusal::plain(ErrorCode::Internal)))
        .route("/v1/topic/post", post(send::post_to_topic))
        .route("/v1/inbox", get(inbox::list))
        .route("/v1/inbox/seen", post(inbox::seen))
        .route("/v1/messages/{id}", get(messages::life))
        .route("/v1/explain/{id}", get(explain::about))
        .route("/v1/outbox", get(outbox::list))
        .route("/v1/outbox/{id}", get(outbox::inspect))
        .route("/v1/outbox/requeue", post(outbox::requeue))
        .route("/v1/outbox/abort", post(outbox::abort))
        .route("/v1/outbox/prune", post(outbox::prune))
        .route("/v1/topic/history", get(topics::history))
        .route("/v1/topic/subscribe", post(topics::subscribe))
        .route("/v1/topic/unsubscribe", post(topics::unsubscribe))
        .route("/v1/topic/list", get(topics::list))
        .route("/v1/peers", get(topics::peers))
        .route("/v1/ask", post(topics::ask))
        .route("/v1/events", get(events::stream))
        .route("/v1/agents", post(agents::register))
        .route("/v1/turns", get(turns::list).post(turns::begin))
        .route("/v1/turns/retry", post(turns::retry))
        .route("/v1/turns/{id}", get(turns::show))
        .route("/v1/turns/{id}/extend", post(turns::extend))
        .route("/v1/turns/{id}/interrupt", post(turns::interrupt))
        .route("/v1/turns/{id}/end", post(turns::end))
        .route("/v1/rotate-token", post(agents::rotate_token))
        .route("/v1/meshes", get(meshes::list).post(meshes::join))
        .route("/v1/reload", post(meshes::reload))
        .route("/v1/meshes/{mesh}", delete(meshes::leave))
        .route("/v1/meshes/{mesh}/resume", post(meshes::resume))
        .route("/v1/health", get(state::health))
        .route("/readyz", get(state::ready))
        .route("/v1/version", get(state::version))
        .route("/v1/metrics", get(state::metrics))
        .route("/v1/shutdown", post(state::shutdown))
        .with_state(ground.clone())
        .merge(more);
    Callers::new(net::guard::with_fallbacks(routes), ground, transport)
}

/// The query as `T`; whatever is unknown or has another form is named.
fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Refusal> {
    let parsed = axum::extract::Query::try_from_uri(uri);
    parsed
        .map(|axum::extract::Query(query)| query)
        .map_err(|error| Refusal::new(ErrorCode::InvalidRequest, error.body_text()))
}
