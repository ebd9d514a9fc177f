//! What an operator, and a program at home here, ask of their daemon beside sending and reading.

use model::{ClientMessageId, MemberName, RowId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{InboxItem, OutboxCounts, OutboxItem, SendRequest};
use crate::text;

/// `POST /v1/topic/post`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicPostRequest {
    /// Which, with or without its `#`.
    pub topic: String,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The text under its older name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The caller's key; minted when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_message_id: Option<String>,
    /// Anything structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
    /// Members named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<String>,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// now, next or low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Which mesh, when several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
}

impl From<TopicPostRequest> for SendRequest {
    fn from(post: TopicPostRequest) -> Self {
        let topic = post.topic.strip_prefix('#').unwrap_or(&post.topic);
        Self {
            to: format!("#{topic}"),
            body: post.body,
            message: post.message,
            client_message_id: post.client_message_id,
            meta: post.meta,
            mentions: post.mentions,
            reply_to: post.reply_to,
            priority: post.priority,
            mesh: post.mesh,
            ..Self::default()
        }
    }
}

/// `POST /v1/inbox/seen`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenRequest {
    /// Messages.
    pub ids: Vec<String>,
    /// Which mesh, when several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
}

/// The answer to [`SeenRequest`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SeenAnswer {
    /// How many were not read before.
    pub marked_seen: usize,
}

/// `POST /v1/outbox/prune`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruneRequest {
    /// Whether payloads are freed; otherwise the answer says what would be.
    #[serde(default)]
    pub confirm: bool,
    /// done, dead or aborted; all three when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Which mesh, when several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
}

/// The answer to [`PruneRequest`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PruneAnswer {
    /// The mesh.
    pub mesh: String,
    /// Whether the payloads were freed; otherwise they would be.
    pub pruned: bool,
    /// Of rows that the broker accepted.
    pub done: PrunedPayloads,
    /// Of rows that were given up: without their words they can be retired, and not be replaced.
    pub dead: PrunedPayloads,
    /// Of rows that were retired.
    pub aborted: PrunedPayloads,
    /// All of them.
    pub total: PrunedPayloads,
    /// How much of the outbox's room is used now, in percent.
    pub disk_percent: u8,
    /// Bytes of the mailbox's file that are written to before it grows. A start gives them back to the disk when they are
    /// most of it.
    pub reusable_bytes: u64,
}

/// Payloads, and how many bytes they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedPayloads {
    /// Rows.
    pub rows: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

/// `GET /v1/outbox`
#[derive(Debug, Serialize, Deserialize)]
pub struct OutboxPage {
    /// Newest first.
    pub items: Vec<OutboxItem>,
    /// Rows per state, of all.
    pub counts: OutboxCounts,
}

/// `GET /v1/messages/{id}`: one message's life as this node knows it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "direction", rename_all = "snake_case")]
pub enum MessageLife {
    /// Sent from here.
    Out(OutboxItem),
    /// Received here.
    In(InboxItem),
}

/// `GET /v1/version`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Version {
    /// The daemon's version.
    pub daemon_version: String,
    /// The major of this door.
    pub ipc_api: String,
    /// What this door can do beside the core.
    pub ipc_features: Vec<String>,
    /// The mailbox's schema.
    pub schema_version: u32,
    /// Features agreed with a broker, per mesh whose link is or was open.
    pub broker_features_negotiated: Vec<String>,
}

/// The answer to `POST /v1/shutdown`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ShutdownAnswer {
    /// Always true: answers in flight still end, queued rows stay on disk.
    pub stopping: bool,
}

/// `POST /v1/meshes`
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// As `postrider invite` printed it.
    pub invite: String,
    /// The mesh's local alias; its own name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_as: Option<String>,
    /// This home's node there; the host's name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The home's person there; the account's name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// A plain address off this machine is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure_lan: Option<bool>,
    /// A file of certificates to believe beside the public ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

/// A mesh of this home, joined.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JoinAnswer {
    /// The local alias.
    pub mesh: String,
    /// The node.
    pub node: String,
    /// The person.
    #[serde(with = "text")]
    pub person: MemberName,
}

/// `GET /v1/meshes`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeshList {
    /// The one meant when none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_mesh: Option<String>,
    /// All of them, by alias.
    pub meshes: Vec<super::MeshHealth>,
}

/// `POST /v1/agents`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRequest {
    /// The address.
    pub name: String,
    /// Which mesh, when several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
}

/// The answer to [`AgentRequest`]: the only time the token is shown.
#[derive(Clone, Serialize, Deserialize)]
pub struct AgentAnswer {
    /// The member.
    #[serde(with = "text")]
    pub id: model::MemberId,
    /// Its name.
    #[serde(with = "text")]
    pub name: MemberName,
    /// The local alias of its mesh.
    pub mesh: String,
    /// Acts as this agent alone.
    pub token: String,
    /// Whether an earlier token of it ends shortly.
    #[serde(default)]
    pub replaced: bool,
}

/// `GET /v1/outbox/{id}`: one row with everything about it.
#[derive(Debug, Serialize, Deserialize)]
pub struct OutboxInspection {
    /// The row.
    #[serde(flatten)]
    pub item: OutboxItem,
    /// What was asked, in 64 hexadecimal characters.
    pub request_fingerprint: String,
    /// Its own deadline, in broker time.
    #[serde(with = "text::option", default)]
    pub deliver_by: Option<Timestamp>,
    /// When it first went on the wire, in broker time.
    #[serde(with = "text::option", default)]
    pub first_attempt_at: Option<Timestamp>,
    /// The message's fields, until they are scrubbed.
    #[serde(default)]
    pub message: Option<crate::MessageFields>,
    /// The rows it replaced and those that took its place, oldest first, itself included.
    pub chain: Vec<OutboxItem>,
}

/// `POST /v1/outbox/requeue`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequeueRequest {
    /// The row to give another try.
    pub id: String,
    /// The new id; minted when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_client_message_id: Option<String>,
    /// Other words instead of the row's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_body: Option<String>,
    /// Go on although nobody can say whether the broker has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_duplicate: Option<bool>,
    /// Which mesh, when several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
}

/// The answer to [`RequeueRequest`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequeueAnswer {
    /// The row that is over.
    #[serde(with = "text")]
    pub aborted_row_id: RowId,
    /// The row that took its place.
    #[serde(with = "text")]
    pub new_row_id: RowId,
    /// Its id.
    #[serde(with = "text")]
    pub new_client_message_id: ClientMessageId,
    /// What is known of the broker's side of the old row.
    pub outcome: String,
}

/// `POST /v1/outbox/abort`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AbortRequest {
    /// The row to retire.
    pub id: String,
    /// Which mesh, when several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
}

/// The answer to [`AbortRequest`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AbortAnswer {
    /// The row.
    #[serde(with = "text")]
    pub aborted_row_id: RowId,
    /// What is known of the broker's side of it.
    pub outcome: String,
}

/// The answer to `POST /v1/rotate-token`; the new token stands in its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RotateAnswer {
    /// Until when the old one is still taken.
    #[serde(with = "text")]
    pub old_valid_until: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_post_is_a_send_to_that_topic_however_it_is_spelled() {
        for topic in ["alerts", "#alerts"] {
            let post: TopicPostRequest =
                serde_json::from_str(&format!(r#"{{"topic":"{topic}","message":"hi","mentions":["ci"]}}"#))
                    .unwrap();
            let send = SendRequest::from(post);
            assert_eq!((send.to.as_str(), send.message.as_deref()), ("#alerts", Some("hi")));
            assert_eq!(send.mentions, ["ci"]);
        }
        assert!(serde_json::from_str::<TopicPostRequest>(r#"{"topic":"a","body":"x","to":"@me"}"#).is_err());
    }

    #[test]
    fn a_life_says_its_direction_beside_its_own_fields() {
        let life = r#"{"direction":"out","id":"01M7GH3C2R6V0D9QK1TJX4N8YE","client_message_id":"a","sender":"jane",
            "to":"@ci","status":"pending","receipt":{"rung":"queued","by":"mbp","at":"2027-01-01T00:00:00Z"},"rungs":[],
            "attempts":0,"enqueued_at":"2027-01-01T00:00:00Z"}"#;
        let back: MessageLife = serde_json::from_str(life).unwrap();
        let text = serde_json::to_string(&back).unwrap();
        assert!(text.starts_with(r#"{"direction":"out","id":"01M7"#), "{text}");
    }
}
