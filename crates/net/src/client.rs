//! HTTP and WebSocket towards a door.
//!
//! - Everything ends: dialling, answers and their size have bounds.
//! - A refusal comes back as the door said it, also instead of an upgrade.
//! - Plain and TLS, Unix and TCP differ in [`dial`] alone.

mod answer;
mod dial;
mod pass;
mod segment;
mod target;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use model::limits;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use wire::auth::{SUBPROTOCOL, TICKET_PREFIX};

use crate::Secret;
use crate::socket::{self, Socket};
use crate::tls::Trust;
use dial::Dial;

pub use answer::{Answer, ClientError};
pub use pass::Pass;
pub use segment::segment;
pub use target::Target;

/// Speaks to one door; keeps its connections alive between requests. Clones share them.
#[derive(Clone)]
pub struct Client {
    target: Arc<Target>,
    http: legacy::Client<Dial, Full<Bytes>>,
    authorization: Option<HeaderValue>,
    timeout: Duration,
    answer_bytes_max: usize,
}

/// A request in the making.
pub struct Ask {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Bytes,
    timeout: Option<Duration>,
}

impl Ask {
    /// `method` at `path`, which begins with a slash and may have a query.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), headers: HeaderMap::new(), body: Bytes::new(), timeout: None }
    }

    /// With a header. A value that no header can carry is left out and the door will say what is missing.
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// With a JSON body.
    pub fn json(mut self, body: &impl Serialize) -> Self {
        self.body = serde_json::to_vec(body).expect("requests are made of maps with text keys").into();
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self
    }

    /// With a time of its own, for long polls.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl Client {
    /// A client of the door at `target`; behind TLS it must have a certificate of a public authority.
    pub fn new(target: Target) -> Self {
        Self::dialling(target, None)
    }

    /// A client that believes whom `trust` does.
    pub fn trusting(target: Target, trust: Trust) -> Self {
        Self::dialling(target, Some(trust))
    }

    fn dialling(target: Target, trust: Option<Trust>) -> Self {
        let target = Arc::new(target);
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            // Well before the door would close it, or a request could meet the close on its way.
            .pool_idle_timeout(limits::IDLE_TIMEOUT / 2)
            .build(Dial::new(target.clone(), trust));
        Self {
            target,
            http,
            authorization: None,
            timeout: limits::ANSWER_TIMEOUT,
            answer_bytes_max: limits::ANSWER_BYTES_MAX,
        }
    }

    /// The same, with a bearer token on every request. A token that no header can carry is no token.
    pub fn with_bearer(mut self, token: &Secret) -> Self {
        let line = HeaderValue::from_str(&format!("Bearer {}", token.reveal())).ok();
        self.authorization = line.map(|mut line| {
            line.set_sensitive(true);
            line
        });
        self
    }

    /// The same, with another time for answers.
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The same, reading no more than `answer_bytes_max` of an answer.
    pub fn with_answer_bytes_max(self, answer_bytes_max: usize) -> Self {
        Self { answer_bytes_max, ..self }
    }

    /// `GET path`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask(Ask::new(Method::GET, path)).await?.json()
    }

    /// `POST path` with a JSON body.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.ask(Ask::new(Method::POST, path).json(body)).await?.json()
    }

    /// `DELETE path`.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask(Ask::new(Method::DELETE, path)).await?.json()
    }

    /// Any request; an answer outside 2xx is a [`ClientError::Refused`].
    pub async fn ask(&self, ask: Ask) -> Result<Answer, ClientError> {
        let bound = ask.timeout.unwrap_or(self.timeout);
        let whole = async { Answer::read(self.start(ask).await?, self.answer_bytes_max).await };
        timeout(bound, whole).await.map_err(|_| ClientError::Timeout)?
    }

    /// Opens a WebSocket at `path` with `ticket`; a refusal before 101 comes back as the door said it.
    pub async fn upgrade(
        &self,
        path: &str,
        ticket: &Secret,
        bounds: socket::Bounds,
    ) -> Result<Socket, ClientError> {
        self.switch(path, &format!("{SUBPROTOCOL}, {TICKET_PREFIX}{}", ticket.reveal()), bounds).await
    }

    /// Opens a WebSocket at `path` as the bearer of this client's token.
    pub async fn upgrade_as_bearer(&self, path: &str, bounds: socket::Bounds) -> Result<Socket, ClientError> {
        self.switch(path, SUBPROTOCOL, bounds).await
    }

    async fn switch(&self, path: &str, offer: &str, bounds: socket::Bounds) -> Result<Socket, ClientError> {
        let key = generate_key();
        let ask = Ask::new(Method::GET, path)
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key)
            .header(SEC_WEBSOCKET_PROTOCOL, offer);
        let opened = async {
            let answer = self.start(ask).await?;
            if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
                let refusal = Answer::read(answer, self.answer_bytes_max).await.err();
                return Err(refusal.unwrap_or(ClientError::NoUpgrade));
            }
            if !is_switched(answer.headers(), &key) {
                return Err(ClientError::NoUpgrade);
            }
            hyper::upgrade::on(answer).await.map_err(|error| ClientError::Broken(error.to_string()))
        };
        let upgraded = timeout(self.timeout, opened).await.map_err(|_| ClientError::Timeout)??;
        let (socket, writing) = Socket::over(upgraded, Role::Client, bounds).await;
        // Ends with the socket: when either half is dropped or the connection breaks.
        tokio::spawn(writing);
        Ok(socket)
    }

    async fn start(&self, ask: Ask) -> Result<http::Response<Incoming>, ClientError> {
        let mut request = Request::new(Full::new(ask.body));
        *request.method_mut() = ask.method;
        *request.uri_mut() = self.target.uri(&ask.path)?;
        *request.headers_mut() = ask.headers;
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        self.http.request(request).await.map_err(|error| ClientError::of(&self.target, &error))
    }
}

fn is_switched(headers: &HeaderMap, key: &str) -> bool {
    let is = |name: &HeaderName, wanted: &str| headers.get(name).is_some_and(|value| value == wanted);
    is(&SEC_WEBSOCKET_ACCEPT, &derive_accept_key(key.as_bytes())) && is(&SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL)
}
