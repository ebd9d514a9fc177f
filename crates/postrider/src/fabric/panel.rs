//! `/page/local/…`: the local door of the home that runs in this very process, for the browser of its person.
//!
//! - Only what the page needs is reachable, by name; everything else does not exist.
//! - Only the home's own person may ask: a browser signed in as anybody else is refused.
//! - The daemon is asked through its socket, like any other caller of this account.
//! - The relay's choices are there only when this process runs the relay.

use std::path::PathBuf;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::any;
use broker::Broker;
use http::{HeaderMap, Method, StatusCode};
use ledger::Member;
use model::ErrorCode;
use net::client::{Ask, Client, ClientError, Target};
use net::respond::{Refusal, read_body};
use relay::Relay;
use serde_json::Value;
use wire::Refused;
use wire::local::Health;

use super::OWN_MESH;

/// Where the page finds it.
const PREFIX: &str = "/page/local";

/// What the page may ask: the method, and the path up to an id.
const OPEN: &[(Method, &str)] = &[
    (Method::GET, "/v1/health"),
    (Method::GET, "/v1/metrics"),
    (Method::GET, "/v1/outbox"),
    (Method::GET, "/v1/outbox/"),
    (Method::POST, "/v1/outbox/requeue"),
    (Method::POST, "/v1/outbox/abort"),
    (Method::GET, "/v1/messages/"),
];

#[derive(Clone)]
struct Panel {
    broker: Broker,
    daemon: Client,
}

/// The routes, for the daemon behind `socket` and the relay of this process.
pub(super) fn routes(broker: Broker, socket: PathBuf, relay: Option<&Relay>) -> Router {
    let panel = Panel { broker, daemon: Client::new(Target::Unix(socket)) };
    let passed_on = Router::new().route(&format!("{PREFIX}/{{*path}}"), any(pass_on));
    let routes = passed_on.with_state(panel.clone());
    match relay {
        Some(relay) => routes.merge(relay::page_router(relay).layer(from_fn_with_state(panel, admit))),
        None => routes,
    }
}

/// Lets this home's person through to the relay.
async fn admit(State(panel): State<Panel>, request: Request, next: Next) -> Result<Response, Refusal> {
    let person = panel.broker.signed_in(request.method(), request.headers()).await?;
    panel.check_home_of(&person).await?;
    Ok(next.run(request).await)
}

async fn pass_on(State(panel): State<Panel>, request: Request) -> Result<Response, Refusal> {
    let person = panel.broker.signed_in(request.method(), request.headers()).await?;
    let uri = request.uri().clone();
    let path = uri.path().strip_prefix(PREFIX).unwrap_or_default();
    if !is_open(request.method(), path) {
        return Err(Refusal::plain(ErrorCode::NotFound));
    }
    panel.check_home_of(&person).await?;
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let mut ask = Ask::new(request.method().clone(), format!("{path}{query}"));
    if request.method() == Method::POST {
        ask = ask.json(&json_of(request.into_body()).await?);
    }
    match panel.daemon.ask(ask).await {
        Ok(answer) => Ok(said(answer.status, &answer.headers, answer.body.into())),
        Err(error) => Err(refused(&error)),
    }
}

impl Panel {
    /// The rows of a home are its person's business and nobody else's.
    async fn check_home_of(&self, member: &Member) -> Result<(), Refusal> {
        let health: Result<Health, ClientError> = self.daemon.get("/v1/health").await;
        let health = health.map_err(|error| unreachable(&error))?;
        let own = health.meshes.iter().find(|mesh| mesh.mesh == OWN_MESH);
        if own.is_some_and(|mesh| mesh.person == member.name.as_str()) {
            return Ok(());
        }
        Err(Refusal::new(ErrorCode::Forbidden, "These rows are the business of this home's person."))
    }
}

fn is_open(method: &Method, path: &str) -> bool {
    OPEN.iter().any(|(open, name)| {
        let named = match name.strip_suffix('/') {
            Some(folder) => {
                let id = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
                id.is_some_and(|id| !id.is_empty() && !id.contains('/'))
            }
            None => path == *name,
        };
        open == method && named
    })
}

async fn json_of(body: Body) -> Result<Value, Refusal> {
    let bytes = read_body(body).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Refusal::new(ErrorCode::InvalidRequest, format!("The body cannot be read: {error}."))
    })
}

fn said(status: StatusCode, headers: &HeaderMap, body: Body) -> Response {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    for name in [http::header::CONTENT_TYPE, http::header::CACHE_CONTROL] {
        if let Some(value) = headers.get(&name) {
            answer.headers_mut().insert(name, value.clone());
        }
    }
    answer
}

/// The daemon's own words.
fn refused(error: &ClientError) -> Refusal {
    match error {
        ClientError::Refused { status, body, .. } => {
            let code = wire::status::code_of(*status, Some(&body.error));
            Refused { code, message: body.message.clone(), more: body.more.clone() }.into()
        }
        other => unreachable(other),
    }
}

fn unreachable(error: &ClientError) -> Refusal {
    tracing::warn!(%error, "the home's daemon did not answer its own page");
    Refusal::plain(ErrorCode::DaemonNotRunning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_page_needs_is_open() {
        for (method, path) in [
            (Method::GET, "/v1/health"),
            (Method::GET, "/v1/outbox"),
            (Method::GET, "/v1/outbox/01M7E1RKJKKJ30VY8N1C7TQW2E"),
            (Method::POST, "/v1/outbox/requeue"),
            (Method::GET, "/v1/messages/x"),
        ] {
            assert!(is_open(&method, path), "{method} {path}");
        }
        for (method, path) in [
            (Method::POST, "/v1/send"),
            (Method::POST, "/v1/shutdown"),
            (Method::POST, "/v1/health"),
            (Method::POST, "/v1/ask"),
            (Method::POST, "/v1/agents"),
            (Method::GET, "/v1/outbox/"),
            (Method::GET, "/v1/outbox/a/b"),
            (Method::GET, "/v1/messages/"),
            (Method::DELETE, "/v1/outbox/a"),
            (Method::GET, "/v1/outboxes"),
        ] {
            assert!(!is_open(&method, path), "{method} {path}");
        }
    }
}
