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
    /// The epoch that the inbox had before its file was restored from a backup: what it holds of that one it still holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_epoch_before: Option<String>,
    /// Members at home here, so that a restored ledger gets them back.
    #[serde(default)]
    pub members: Vec<MemberRef>,
    /// Newest accepted rows, so that a restored ledger is noticed.
    #[serde(default)]
    pub done: Vec<DoneWitness>,
    /// The node's version, for people.
    #[serde(default)]
    pub version: String,
    /// The highest place of the inbox, so that an inbox that went back to an older copy is noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
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
    /// When the broker accepted it.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
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
    /// The last time that this node's inbox was found older than it had been.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_went_back: Option<InboxWentBack>,
    /// The last time that the broker's ledger was found older than it had been.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger_went_back: Option<LedgerWentBack>,
}

/// An inbox held less than it had told before: an older copy of its file was put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxWentBack {
    /// When the broker noticed it; names this occurrence.
    #[serde(with = "text")]
    pub noticed_at: Timestamp,
    /// The highest place told before.
    pub from: u64,
    /// The highest place it had then.
    pub to: u64,
    /// Deliveries that this link sends again.
    pub left: u64,
}

/// A ledger lacked what it had held before: an older copy was put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerWentBack {
    /// When the broker noticed it; names this occurrence.
    #[serde(with = "text")]
    pub noticed_at: Timestamp,
    /// The newest instant that the older copy holds.
    #[serde(with = "text")]
    pub ends_at: Timestamp,
    /// Up to when messages were accepted that the copy lacks.
    #[serde(with = "text")]
    pub upto: Timestamp,
    /// The node, or the file, that knew more.
    pub noticed_by: String,
}

/// A feature's parameters.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Feature {
    /// Name → value; `version` is always there.
    pub params: BTreeMap<String, serde_json::Value>,
}
