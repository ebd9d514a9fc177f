//! A person's browser: a one-time key for a session, and a session's tickets for sockets.

use model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::{MemberRef, MeshRef};
use crate::text;

/// `POST /v1/session`: the key of a sign-in link, taken from the address's fragment.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionRequest {
    /// Fifteen minutes, one use.
    pub key: String,
}

/// Who is signed in. The session itself is an HttpOnly cookie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionAnswer {
    /// As whom this browser reads and writes.
    pub member: MemberRef,
    /// `owner` or `member`.
    pub role: String,
    /// The mesh.
    pub mesh: MeshRef,
    /// When the session ends.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub expires_at: Timestamp,
    /// Broker time, for ages.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub now: Timestamp,
}

/// `POST /v1/tickets`: offered beside the subprotocol as `ticket.<T>`, for one socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TicketAnswer {
    /// Thirty seconds, one use.
    pub ticket: String,
    /// When it ends.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub expires_at: Timestamp,
}

/// A sign-in link's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignIn {
    /// Shown once.
    pub key: String,
    /// Where the page is, when the broker knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// When it ends.
    #[serde(with = "text")]
    pub expires_at: Timestamp,
}
