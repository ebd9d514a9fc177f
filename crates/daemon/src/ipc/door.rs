//! Who may come in, and how each listener knows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method};
use hyper::body::Incoming;
use model::ErrorCode;
use net::guard::{Hosts, Origins, Policy, Scheme, bearer};
use net::respond::Refusal;
use net::serve::{Answers, Connection};

use super::send;
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

/// What stands before everything behind one listener: its guard, its authentication and its counters. One layer,
/// because each is paid for by every request.
struct Gate {
    ground: Arc<Ground>,
    transport: Transport,
    policy: Policy,
}

/// Whoever answers at one listener. Sends do not go through the routes, whose futures every message would pay for.
#[derive(Clone)]
pub(crate) struct Callers {
    gate: Arc<Gate>,
    routes: Router,
}

impl Callers {
    pub(super) fn new(routes: Router, ground: Arc<Ground>, transport: Transport) -> Self {
        let gate = Arc::new(Gate { ground, transport, policy: transport.policy() });
        Self { routes: routes.layer(middleware::from_fn_with_state(gate.clone(), pass)), gate }
    }
}

impl Answers for Callers {
    async fn answer(&self, connection: &Connection, request: http::Request<Incoming>) -> Response {
        if request.method() == Method::POST && request.uri().path() == send::PATH {
            // Boxed: what moves with a request shall be small.
            return Box::pin(self.gate.take_send(connection, request)).await;
        }
        self.routes.answer(connection, request).await
    }
}

async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let began = gate.ground.clock.monotonic();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let connection = request.extensions().get::<Connection>().cloned();
    let run = async |mut request: Request, caller| {
        request.extensions_mut().insert(caller);
        Ok(next.run(request).await)
    };
    let admit = |request| gate.admit(connection.as_ref(), request, run);
    let answer = gate.policy.guard(connection.as_ref().map(Connection::caller), request, admit).await;
    // Without a route the address is the caller's own text, and no label.
    gate.count(path.as_ref().map_or("none", MatchedPath::as_str), &answer, began);
    answer
}

impl Gate {
    async fn take_send(&self, connection: &Connection, request: http::Request<Incoming>) -> Response {
        let began = self.ground.clock.monotonic();
        let take = async |request, caller| send::send(&self.ground, &caller, request).await;
        let admit = |request| self.admit(Some(connection), request, take);
        let answer = self.policy.guard(Some(connection.caller()), request, admit).await;
        self.count(send::PATH, &answer, began);
        answer
    }

    /// Lets `then` see the request of a caller that is known.
    async fn admit(
        &self,
        connection: Option<&Connection>,
        request: Request,
        then: impl AsyncFnOnce(Request, Caller) -> Result<Response, Refusal>,
    ) -> Response {
        let admitted = match caller(&self.ground, self.transport, request.headers()).await {
            Ok(caller) => {
                connection.inspect(|connection| connection.authenticated());
                then(request, caller).await
            }
            Err(refusal) => Err(refusal),
        };
        admitted.unwrap_or_else(IntoResponse::into_response)
    }

    fn count(&self, endpoint: &str, answer: &Response, began: Duration) {
        let took = self.ground.clock.monotonic().saturating_sub(began);
        self.ground.ipc.answered(endpoint, answer.status().as_u16(), self.transport.word(), took);
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
