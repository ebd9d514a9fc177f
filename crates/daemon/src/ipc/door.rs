//! Who may come in, and how each listener knows.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use model::ErrorCode;
use net::guard::{Hosts, Origins, Policy, Scheme, bearer};
use net::respond::Refusal;
use net::serve::Connection;

use crate::ground::{Caller, Ground};
use crate::storage;

/// Through which listener a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// The socket: only this account reaches it.
    Unix,
    /// Loopback TCP at this address: every account and every browser reaches it.
    Tcp(SocketAddr),
}

impl Transport {
    const fn word(self) -> &'static str {
        match self {
            Transport::Unix => "unix",
            Transport::Tcp(_) => "tcp",
        }
    }

    fn policy(self) -> Policy {
        let hosts = match self {
            Transport::Unix => Hosts::Ignored,
            Transport::Tcp(address) => Hosts::listed(address, Scheme::Http, []),
        };
        Policy::new(hosts, Origins::None)
    }
}

/// What stands before every route of one listener.
struct Gate {
    ground: Arc<Ground>,
    transport: Transport,
    policy: Policy,
}

/// `routes` behind the listener's guard, its authentication and its counters: one layer, because each is paid for
/// by every request.
pub(super) fn guarded(routes: Router, ground: Arc<Ground>, transport: Transport) -> Router {
    let gate = Gate { ground, transport, policy: transport.policy() };
    routes.layer(middleware::from_fn_with_state(Arc::new(gate), pass))
}

async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let Gate { ground, transport, policy } = &*gate;
    let began = ground.clock.monotonic();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let answer = policy.guard(request, |request| known_callers(ground, *transport, request, next)).await;
    let path = answer.extensions().get::<MatchedPath>().or(path.as_ref());
    // Without a route the address is the caller's own text, and no label.
    let endpoint = path.map_or("none", MatchedPath::as_str);
    let took = ground.clock.monotonic().saturating_sub(began);
    ground.ipc.answered(endpoint, answer.status().as_u16(), transport.word(), took);
    answer
}

async fn known_callers(ground: &Ground, transport: Transport, mut request: Request, next: Next) -> Response {
    match caller(ground, transport, request.headers()).await {
        Ok(caller) => {
            if let Some(connection) = request.extensions().get::<Connection>() {
                connection.authenticated();
            }
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

async fn caller(ground: &Ground, transport: Transport, headers: &HeaderMap) -> Result<Caller, Refusal> {
    let refused = || Refusal::plain(ErrorCode::Unauthorized);
    if !headers.contains_key(http::header::AUTHORIZATION) {
        return match transport {
            Transport::Unix => Ok(Caller::Operator),
            Transport::Tcp(_) => Err(refused()),
        };
    }
    // Whoever shows a token means to be judged by it, on the socket too.
    let token = bearer(headers).ok_or_else(refused)?;
    if ground.token.opens(&token, &*ground.clock) {
        return Ok(Caller::Operator);
    }
    let (hash, now) = (*token.token_hash().as_bytes(), ground.clock.now());
    for mesh in ground.open_meshes() {
        let found = mesh.mailbox.member_by_token(hash, now).await;
        if let Some(member) = found.map_err(|error| storage::refusal(&error))? {
            return Ok(Caller::Agent { mesh, member });
        }
    }
    Err(refused())
}
