//! Who may come in, and how each listener knows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use hyper::body::Incoming;
use model::ErrorCode;
use net::guard::{Hosts, Origins, Policy, Scheme, bearer, caught};
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
    let admit = async |mut request: Request| match gate.admit(connection.as_ref(), request.headers()).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    let answer = gate.policy.guard(connection.as_ref().map(Connection::caller), request, admit).await;
    // Without a route the address is the caller's own text, and no label.
    gate.count(path.as_ref().map_or("none", MatchedPath::as_str), &answer, began);
    answer
}

impl Gate {
    async fn take_send(&self, connection: &Connection, request: http::Request<Incoming>) -> Response {
        let began = self.ground.clock.monotonic();
        let sent = async {
            self.policy.check(Some(connection.caller()), &request)?;
            let caller = self.admit(Some(connection), request.headers()).await?;
            send::send(&self.ground, &self.policy, caller, request).await
        };
        let answer = caught(sent.map(|sent| sent.unwrap_or_else(IntoResponse::into_response))).await;
        self.count(send::PATH, &answer, began);
        answer
    }

    /// Who asks, if that is known.
    async fn admit(&self, connection: Option<&Connection>, headers: &HeaderMap) -> Result<Caller, Refusal> {
        let caller = match (self.transport, headers.contains_key(AUTHORIZATION)) {
            (Transport::Unix, false) => Caller::Operator,
            (Transport::Tcp(_), false) => return Err(Refusal::plain(ErrorCode::Unauthorized)),
            // Whoever shows a token means to be judged by it, on the socket too.
            (_, true) => Box::pin(bearer_of(&self.ground, headers)).await?,
        };
        connection.inspect(|connection| connection.authenticated());
        Ok(caller)
    }

    fn count(&self, endpoint: &str, answer: &Response, began: Duration) {
        let took = self.ground.clock.monotonic().saturating_sub(began);
        self.ground.ipc.answered(endpoint, answer.status().as_u16(), self.transport.word(), took);
    }
}

async fn bearer_of(ground: &Ground, headers: &HeaderMap) -> Result<Caller, Refusal> {
    let refused = || Refusal::plain(ErrorCode::Unauthorized);
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
