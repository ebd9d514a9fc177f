//! The one way in: invite or challenge → exchange → ticket → upgrade. The names are the seed's camelCase.

use model::{NodeKey, NodeName, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::text;

/// Audience of a daemon's link.
pub const AUDIENCE_LINK: &str = "postrider-link";
/// The surface of `/v1/subscribe`.
pub const AUDIENCE_SUBSCRIBE: &str = "postrider-subscribe";
/// Audience when a caller names none.
pub const AUDIENCE_DEFAULT: &str = "ansible-yjs";
/// The WebSocket subprotocol the server selects.
pub const SUBPROTOCOL: &str = "postrider.v1";
/// A second offered subprotocol `ticket.<T>` carries the ticket.
pub const TICKET_PREFIX: &str = "ticket.";

/// `POST /v1/auth/challenge`
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChallengeRequest {
    /// Who asks.
    #[schema(value_type = String, max_length = 63, pattern = "^[a-z0-9][a-z0-9._-]*$")]
    #[serde(with = "text")]
    pub node_id: NodeName,
}

/// A nonce to sign.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Challenge {
    /// Sixty seconds, one use.
    pub challenge: String,
    /// Broker time.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub now: Timestamp,
}

/// `POST /v1/auth/exchange`
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExchangeRequest {
    /// The secret of a first join …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invite_token: Option<String>,
    /// … or the challenge of a return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge: Option<String>,
    /// The node's name.
    #[schema(value_type = String, max_length = 63, pattern = "^[a-z0-9][a-z0-9._-]*$")]
    #[serde(with = "text")]
    pub node_id: NodeName,
    /// The node's key.
    #[schema(value_type = String, pattern = "^[0-9A-Fa-f]{64}$")]
    #[serde(with = "text")]
    pub public_key: NodeKey,
    /// Fresh for every request; printable characters without spaces.
    #[schema(min_length = 1, max_length = 128, pattern = "^[!-~]+$")]
    pub nonce: String,
    /// Signature over `postrider-exchange|issuerKey|secret|nodeId|publicKey|aud|nonce`, in hex.
    pub node_proof: String,
    /// Which surface the ticket is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aud: Option<String>,
    /// The account's name, from which a first join makes its person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// Rooms of a pipes mesh; ignored elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_rooms: Option<Vec<String>>,
}

/// The answer, signed by the issuer.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExchangeAnswer {
    /// Single use, for one surface.
    pub ws_ticket: String,
    /// Its end.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub expires_at: Timestamp,
    /// Rooms the ticket opens; none in a broker mesh.
    pub rooms: Vec<String>,
    /// Names this exchange in logs.
    pub session_id: String,
    /// The mesh being joined.
    pub mesh: MeshRef,
    /// The node's person, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<MemberRef>,
    /// Broker time.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub now: Timestamp,
    /// Who signed.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub issuer_key: NodeKey,
    /// Over the canonical JSON of all other fields, in hex.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signature: String,
}

/// A mesh by id and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MeshRef {
    /// Its id.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub id: model::MeshId,
    /// Its name where it was made.
    pub slug: String,
}

/// A member by id, name and kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberRef {
    /// Its id.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub id: model::MemberId,
    /// Its name.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub name: model::MemberName,
    /// `person`, `agent` or `service`.
    pub kind: String,
}
