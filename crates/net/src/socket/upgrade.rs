//! The server's side of an upgrade. Until [`Upgrade::accept`] the answer may still be a refusal.

use std::future::Future;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper::upgrade::OnUpgrade;
use model::ErrorCode;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use wire::auth::{SUBPROTOCOL, TICKET_PREFIX};

use super::{Bounds, Socket};
use crate::Secret;
use crate::respond::Refusal;
use crate::serve::Connection;

/// A request to become a WebSocket. An extractor.
pub struct Upgrade {
    on_upgrade: OnUpgrade,
    accept_key: HeaderValue,
    ticket: Option<Secret>,
    connection: Connection,
    bounds: Bounds,
}

impl Upgrade {
    /// The ticket offered beside the subprotocol; without one the caller is not who it should be.
    pub fn ticket(&self) -> Result<Secret, Refusal> {
        self.ticket.clone().ok_or_else(|| Refusal::plain(ErrorCode::InvalidTicket))
    }

    /// The connection it came on; its `stopping` tells the socket's work when to end.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The same with other bounds.
    pub fn with_bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// Answers 101 and runs `run` with the open socket, as part of the connection. Only for callers that proved
    /// who they are: the connection counts as authenticated from here on.
    pub fn accept<F, R>(self, run: F) -> Response
    where
        F: FnOnce(Socket) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let Self { on_upgrade, accept_key, connection, bounds, .. } = self;
        connection.authenticated();
        let writing_on = connection.clone();
        connection.spawn(async move {
            let upgraded = match on_upgrade.await {
                Ok(upgraded) => upgraded,
                Err(error) => return tracing::debug!(%error, "a caller left before its upgrade"),
            };
            let (socket, writing) = Socket::over(upgraded, Role::Server, bounds).await;
            writing_on.spawn(writing);
            run(socket).await;
        });
        switching(accept_key)
    }
}

fn switching(accept_key: HeaderValue) -> Response {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept_key);
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    answer
}

impl<S: Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let connection = Connection::from_request_parts(parts, state).await?;
        let headers = &parts.headers;
        let asks = parts.method == Method::GET
            && names(headers, &CONNECTION, "upgrade")
            && names(headers, &UPGRADE, "websocket")
            && names(headers, &SEC_WEBSOCKET_VERSION, "13");
        let accept_key = headers.get(SEC_WEBSOCKET_KEY).and_then(accept_key);
        let on_upgrade = parts.extensions.remove::<OnUpgrade>();
        let (true, Some(accept_key), Some(on_upgrade)) = (asks, accept_key, on_upgrade) else {
            return Err(refused("This address speaks WebSocket, version 13."));
        };
        if !names(headers, &SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
            return Err(refused("The upgrade must offer the subprotocol postrider.v1."));
        }
        let ticket = listed(headers, &SEC_WEBSOCKET_PROTOCOL)
            .find_map(|offer| offer.strip_prefix(TICKET_PREFIX))
            .map(|ticket| Secret::from(ticket.to_owned()));
        Ok(Self { on_upgrade, accept_key, ticket, connection, bounds: Bounds::default() })
    }
}

fn refused(message: &str) -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, message)
}

fn accept_key(key: &HeaderValue) -> Option<HeaderValue> {
    // Sixteen bytes, as the protocol wants; a wrong key is no WebSocket client.
    let nonce = STANDARD.decode(key.as_bytes()).ok().filter(|nonce| nonce.len() == 16);
    nonce.and_then(|_| HeaderValue::try_from(derive_accept_key(key.as_bytes())).ok())
}

fn listed<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

fn names(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    listed(headers, name).any(|value| value.eq_ignore_ascii_case(wanted))
}
