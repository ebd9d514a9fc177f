//! Over Streamable HTTP at `/mcp`, inside the guards of the door it is given to.
//!
//! - Whoever gives this router to a door has checked Host, Origin, credential and size before a request comes here.
//! - There are no sessions: each request stands alone, in the older revisions of the protocol too, so that a
//!   restarted daemon leaves no client behind.

use std::sync::Arc;

use axum::Router;
use model::limits;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::server::Server;

/// Where it answers.
pub const PATH: &str = "/mcp";

/// The routes. A door that closes lets what is under way end: every call is bounded.
pub fn router(server: Server) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_retry(None)
        .with_max_request_body_bytes(limits::REQUEST_BYTES_MAX)
        // The door knows its own names, whichever port it got; this crate does not.
        .disable_allowed_hosts()
        .enforce_origin_validation();
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    Router::new().route_service(PATH, service)
}
