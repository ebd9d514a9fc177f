//! The first frame each way: what each side needs, offers and holds.

use std::collections::BTreeMap;

use model::{ClientMessageId, MemberId, MessageId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::auth::{MemberRef, MeshRef};
use crate::text;

/// Dedupe by the caller's id: required of every broker.
pub const FEATURE_DEDUPE: &str = "client_message_id_dedupe";
/// What happens to a second connection of one node: required of every broker.
pub const FEATURE_CONNECTIONS: &str = "concurrent_connection_policy";
/// The largest body.
pub const FEATURE_PAYLOAD: &str = "max_payload";

/// What a node wants and holds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NegotiationRequest {
    /// Features without which this node does not work.
    pub require: Vec<String>,
    /// Features it would use.
    #[serde(default)]
    pub optional: Vec<String>,
    /// The inbox's epoch: a new one tells the broker that earlier deliveries may be seen again.
    pub inbox_epoch: String,
    /// Members at home here, so that a restored ledger gets them back.
    #[serde(default)]
    pub members: Vec<MemberRef>,
    /// Newest accepted rows, so that a restored ledger is noticed.
    #[serde(default)]
    pub done: Vec<DoneWitness>,
    /// The node's version, for people.
    #[serde(default)]
    pub version: String,
}

/// A row the node knows to be accepted.
#[derive(Debug, Serialize, Deserialize)]
pub struct DoneWitness {
    /// Who sent it.
    #[serde(with = "text")]
    pub sender: MemberId,
    /// Under which id.
    #[serde(with = "text")]
    pub client_message_id: ClientMessageId,
    /// What the broker called it.
    #[serde(with = "text")]
    pub broker_message_id: MessageId,
}

/// What the broker offers.
#[derive(Debug, Serialize, Deserialize)]
pub struct NegotiationResponse {
    /// Feature → parameters.
    pub supported: BTreeMap<String, Feature>,
    /// Required features it lacks; the broker closes with 4010 after this frame.
    #[serde(default)]
    pub missing_required: Vec<String>,
    /// Broker time.
    #[serde(with = "text")]
    pub now: Timestamp,
    /// This connection's epoch; an older one is fenced.
    pub link_epoch: u64,
    /// The mesh.
    pub mesh: MeshRef,
    /// Whether the broker lost rows this node knows to be accepted.
    #[serde(default)]
    pub restored: bool,
    /// Members at home on this node as the broker knows them: a first join learns its person here.
    #[serde(default)]
    pub members: Vec<MemberRef>,
    /// The broker's version, for people.
    #[serde(default)]
    pub version: String,
}

/// A feature's parameters.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Feature {
    /// Name → value; `version` is always there.
    pub params: BTreeMap<String, serde_json::Value>,
}
