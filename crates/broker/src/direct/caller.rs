//! Who calls: the member a token acts as.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use ledger::{Member, Scopes};
use model::ErrorCode;
use net::guard::bearer;
use net::respond::Refusal;
use net::serve::Connection;

use crate::broker::{Shared, storage_refused};
use crate::wayin::hash_of;

/// A member, proven by its API token. An extractor.
pub(crate) struct Caller {
    pub(crate) member: Member,
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

fn lacks(scope: &str) -> Refusal {
    Refusal::new(ErrorCode::Forbidden, format!("The token has no scope {scope}."))
}

impl FromRequestParts<Arc<Shared>> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refusal> {
        let token = bearer(&parts.headers).ok_or_else(|| Refusal::plain(ErrorCode::Unauthorized))?;
        let found =
            shared.ledger.resolve_token(hash_of(&token)).await.map_err(|error| storage_refused(&error))?;
        let token = found.ok_or_else(|| Refusal::plain(ErrorCode::Unauthorized))?;
        if let Some(connection) = parts.extensions.get::<Connection>() {
            connection.authenticated();
        }
        Ok(Caller { member: token.member, scopes: token.scopes })
    }
}
