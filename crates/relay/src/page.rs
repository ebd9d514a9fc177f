//! The same choices on the page, where the process runs the relay. The page's own door guards who may ask.

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::operator;
use crate::relay::Relay;

/// To be merged behind the guards of the page.
pub fn router(relay: &Relay) -> Router {
    Router::new()
        .route("/page/local/relay/status", get(operator::status))
        .route("/page/local/relay/envelopes", get(operator::list))
        .route("/page/local/relay/envelopes/{id}", get(operator::inspect))
        .route("/page/local/relay/envelopes/{id}/resolve", post(operator::resolve))
        .with_state(Arc::clone(&relay.shared))
}
