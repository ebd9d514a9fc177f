//! Who calls: the member a token or a session acts as.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, Method};
use ledger::{Member, Scopes, SecretHash};
use model::ErrorCode;
use net::respond::Refusal;
use net::serve::Connection;

use crate::broker::Shared;

/// A member, proven by its API token or by its browser's session. An extractor.
pub(crate) struct Caller {
    pub(crate) member: Member,
    pub(crate) credential: SecretHash,
    scopes: Scopes,
}

impl Caller {
    /// This caller, if its token may send.
    pub(crate) fn may_send(self) -> Result<Self, Refusal> {
        if self.scopes.send { Ok(self) } else { Err(lacks("send")) }
    }

    /// This caller, if its token may read.
    pub(crate) fn may_read(self) -> Result<Self, Refusal> {
        if self.scopes.read { Ok(self) } else { Err(lacks("read")) }
    }

    /// This caller, if its token may use the hub.
    pub(crate) fn may_use_hub(self) -> Result<Self, Refusal> {
        if self.scopes.hub { Ok(self) } else { Err(lacks("hub")) }
    }

    /// Whether its token may send.
    pub(crate) fn check_send(&self) -> Result<(), Refusal> {
        if self.scopes.send { Ok(()) } else { Err(lacks("send")) }
    }

    /// Whether its token may read.
    pub(crate) fn check_read(&self) -> Result<(), Refusal> {
        if self.scopes.read { Ok(()) } else { Err(lacks("read")) }
    }

    /// This caller, if its token may ask about its own messages: whoever may send or read them.
    pub(crate) fn may_ask(self) -> Result<Self, Refusal> {
        if self.scopes.send || self.scopes.read { Ok(self) } else { Err(lacks("send")) }
    }
}

pub(crate) fn lacks(scope: &str) -> Refusal {
    Refusal::new(ErrorCode::Forbidden, format!("The token has no scope {scope}."))
}

impl FromRequestParts<Arc<Shared>> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refusal> {
        shared.caller(parts.extensions.get::<Connection>(), &parts.method, &parts.headers).await
    }
}

impl Shared {
    /// Who asks on `connection`, if that is known.
    pub(crate) async fn caller(
        &self,
        connection: Option<&Connection>,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Caller, Refusal> {
        let found = self.credential(method, headers).await?;
        connection.inspect(|connection| connection.authenticated());
        Ok(Caller { member: found.member, credential: found.hash, scopes: found.scopes })
    }
}
