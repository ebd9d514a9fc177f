//! The local door: a process on this host and its daemon.

mod explain;
mod operate;
mod turns;
mod typed;

use model::{ClientMessageId, ErrorCode, Kind, MemberName, Priority, RowId, Timestamp, To};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::error::Refused;
use crate::message::{BODY_VERSION, Message, MessageFields};
use crate::text;

pub use explain::{ExplainedCopy, ExplainedTurn, Explanation};
pub use operate::{
    AbortAnswer, AbortRequest, AgentAnswer, AgentRequest, JoinAnswer, JoinRequest, MeshList, MessageLife,
    OutboxInspection, OutboxPage, PruneAnswer, PruneRequest, PrunedPayloads, RequeueAnswer, RequeueRequest,
    RotateAnswer, SeenAnswer, SeenRequest, ShutdownAnswer, TopicPostRequest, Version,
};
pub use turns::{
    TurnAnswer, TurnEnd, TurnEnded, TurnExtend, TurnInterrupt, TurnPage, TurnReplied, TurnReply, TurnRequest,
    TurnRetry, lease,
};
pub use typed::destination;

/// The operator acts as another member of this home.
pub const ACT_AS_HEADER: &str = "postrider-as";
/// The idempotency key as a header; it wins over an absent one in the body and must equal a present one.
pub const IDEMPOTENCY_HEADER: &str = "idempotency-key";

/// `POST /v1/send`
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendRequest {
    /// `#topic`, `@name`, `@me` or a key.
    pub to: String,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 65536)]
    pub body: Option<String>,
    /// The text under its older name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 65536)]
    pub message: Option<String>,
    /// The caller's key; minted when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub client_message_id: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Anything structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Box<RawValue>>,
    /// Members named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 16)]
    pub mentions: Vec<String>,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "replyToId", alias = "reply_to_id")]
    #[schema(min_length = 1, max_length = 128)]
    pub reply_to: Option<String>,
    /// A conversation of the caller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub corr_id: Option<String>,
    /// now, next or low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Whether the conversation waits for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expects_input: Option<bool>,
    /// An instant after which it must not be delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliver_by: Option<String>,
    /// The same as seconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
    /// Automatic replies before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 64)]
    pub hops: Option<u8>,
    /// Which mesh, when several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
}

impl SendRequest {
    /// The message's fields; `id` is the caller's key or a minted one.
    pub fn into_fields(self, id: ClientMessageId) -> Result<MessageFields, Refused> {
        let body = match (self.body, self.message) {
            (Some(body), None) | (None, Some(body)) => body,
            (None, None) => {
                return Err(Refused::new(ErrorCode::InvalidRequest, "body is missing").with("field", "body"));
            }
            (Some(_), Some(_)) => {
                return Err(Refused::new(ErrorCode::InvalidRequest, "give body or message, not both")
                    .with("field", "body"));
            }
        };
        let mentions: Result<Vec<MemberName>, _> =
            self.mentions.iter().map(|name| name.strip_prefix('@').unwrap_or(name).parse()).collect();
        Ok(MessageFields {
            client_message_id: id,
            to: self.to.parse::<To>()?,
            kind: self.kind.map_or(Ok(Kind::default()), |word| word.parse())?,
            body,
            body_version: BODY_VERSION,
            meta: self.meta.map_or(Ok(None), |raw| canonical_meta(&raw))?,
            mentions: mentions?,
            reply_to: self.reply_to,
            corr_id: self.corr_id,
            priority: self.priority.map_or(Ok(Priority::default()), |word| word.parse())?,
            expects_input: self.expects_input.unwrap_or(false),
            deliver_by: self.deliver_by.map(|instant| instant.parse()).transpose()?,
            ttl: self.ttl,
            hops: self.hops.unwrap_or(0),
        })
    }

    /// The caller's key: the header, else the body; both must agree.
    pub fn key(&self, header: Option<&str>) -> Result<Option<ClientMessageId>, Refused> {
        match (header, self.client_message_id.as_deref()) {
            (Some(header), Some(body)) if header != body => {
                Err(Refused::new(ErrorCode::InvalidRequest, "Idempotency-Key and client_message_id differ")
                    .with("field", "client_message_id"))
            }
            (Some(key), _) | (None, Some(key)) => Ok(Some(key.parse()?)),
            (None, None) => Ok(None),
        }
    }
}

/// The caller's own text is checked, before any parser could merge equal keys or round large integers.
fn canonical_meta(raw: &RawValue) -> Result<Option<serde_json::Value>, Refused> {
    let meta = model::Meta::parse(raw.get())?;
    Ok(meta.map(|meta| serde_json::from_str(meta.as_str()).expect("canonical JSON is JSON")))
}

/// What is durably true, who saw it, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// A rung or how it ended.
    pub rung: String,
    /// The observer: a node's name, or `broker`.
    pub by: String,
    /// When.
    #[serde(with = "text")]
    pub at: Timestamp,
}

/// The 2xx answer of a send.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendAnswer {
    /// The id in force, minted or given.
    #[serde(with = "text")]
    pub client_message_id: ClientMessageId,
    /// The outbox row.
    #[serde(with = "text")]
    pub row: RowId,
    /// `queued`, `inflight` or `done`.
    pub status: String,
    /// Whether this very message had been accepted before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub duplicate: bool,
    /// The broker's id, once accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_message_id: Option<String>,
    /// Its log, once accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Its place there, once accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_id: Option<u64>,
    /// What is true now.
    pub receipt: Receipt,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A row of the inbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InboxItem {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// For whom.
    #[serde(with = "text")]
    pub recipient: MemberName,
    /// Place in this inbox.
    pub inbox_seq: u64,
    /// When this node stored it.
    #[serde(with = "text")]
    pub received_at: Timestamp,
    /// How far it came.
    pub rung: String,
    /// Whether it was read.
    pub seen: bool,
}

/// `GET /v1/inbox`
#[derive(Debug, Serialize, Deserialize)]
pub struct InboxPage {
    /// Oldest first.
    pub items: Vec<InboxItem>,
    /// Rows not yet read, of all.
    pub unread: u64,
    /// All rows.
    pub total: u64,
    /// Events go on after this page from here: the `Last-Event-ID` of `GET /v1/events`.
    #[serde(default)]
    pub cursor: String,
}

/// A row of the outbox, or one message's life as this node knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutboxItem {
    /// The row.
    #[serde(with = "text")]
    pub id: RowId,
    /// The caller's id.
    #[serde(with = "text")]
    pub client_message_id: ClientMessageId,
    /// Who sent it.
    #[serde(with = "text")]
    pub sender: MemberName,
    /// Where to, as asked.
    pub to: String,
    /// pending, inflight, done, dead or aborted.
    pub status: String,
    /// What is true now.
    pub receipt: Receipt,
    /// Every rung reached, in order.
    pub rungs: Vec<Receipt>,
    /// Tries so far.
    pub attempts: u32,
    /// When it was handed over.
    #[serde(with = "text")]
    pub enqueued_at: Timestamp,
    /// When it is tried next.
    #[serde(with = "text::option", default)]
    pub next_attempt_at: Option<Timestamp>,
    /// The last answer.
    #[serde(default)]
    pub last_error: Option<String>,
    /// Why it was given up.
    #[serde(default)]
    pub dead_reason: Option<String>,
    /// What is known of the broker's side of an ended row.
    #[serde(default)]
    pub outcome: Option<String>,
    /// The broker's id.
    #[serde(default)]
    pub broker_message_id: Option<String>,
    /// Its log.
    #[serde(default)]
    pub conversation: Option<String>,
    /// Its place there.
    #[serde(default)]
    pub history_id: Option<u64>,
    /// The row that took its place.
    #[serde(default)]
    pub superseded_by: Option<String>,
    /// Who retired it: operator, session or policy.
    #[serde(default)]
    pub aborted_by: Option<String>,
    /// When it was retired.
    #[serde(with = "text::option", default)]
    pub aborted_at: Option<Timestamp>,
    /// When the broker's acceptance became known after the row had ended here.
    #[serde(with = "text::option", default)]
    pub late_ack_at: Option<Timestamp>,
}

/// `GET /v1/health`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Health {
    /// The daemon's version.
    pub daemon_version: String,
    /// The home's node in each mesh.
    pub meshes: Vec<MeshHealth>,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// The page's address, where this process serves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The roles this process runs.
    #[serde(default)]
    pub roles: Vec<String>,
    /// What needs a person, in sentences; empty when all is well.
    #[serde(default)]
    pub problems: Vec<String>,
    /// Stores of this process that take no write until it starts anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped_stores: Vec<StoppedStore>,
}

/// `GET /readyz`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// `ready`; a process that is not answers 503 with the reason.
    pub status: String,
}

/// A store that takes no write until its process starts anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoppedStore {
    /// Its name, such as `mailbox of mesh home`.
    pub store: String,
    /// Its file.
    pub file: String,
    /// The storage error that stopped it.
    pub cause: String,
}

impl StoppedStore {
    /// The sentence about it in [`Health::problems`].
    pub fn problem(&self) -> String {
        format!(
            "the {} has stopped after a storage error ({}); the process ends by itself",
            self.store, self.cause
        )
    }
}

/// One mesh as its daemon sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeshHealth {
    /// The local alias.
    pub mesh: String,
    /// The node.
    pub node: String,
    /// The person.
    pub person: String,
    /// Whether the link is open.
    pub connected: bool,
    /// `live`, `away` or `parked`, with the reason.
    pub link: String,
    /// Since when.
    #[serde(with = "text")]
    pub link_since: Timestamp,
    /// Why it is away or parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Rows per state.
    pub outbox: OutboxCounts,
    /// When the oldest waiting row was handed over.
    #[serde(with = "text::option", default)]
    pub oldest_queued_at: Option<Timestamp>,
    /// Rows not yet read.
    pub inbox_unread: u64,
    /// All rows.
    pub inbox_total: u64,
    /// What happened that a person should know, while it is recent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Something that happened to a mesh's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// What, as one word that scripts match: `inbox_restored`, `inbox_went_back` or `ledger_went_back`.
    pub check: String,
    /// What, in a sentence.
    pub message: String,
    /// What it means; a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
}

/// Rows of an outbox by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxCounts {
    /// Waiting.
    pub pending: u64,
    /// On the wire.
    pub inflight: u64,
    /// Accepted.
    pub done: u64,
    /// Given up.
    pub dead: u64,
    /// Retired.
    pub aborted: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(json: &str) -> SendRequest {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_header_and_the_body_must_name_one_key() {
        let with = request(r#"{"to":"@me","body":"x","client_message_id":"a"}"#);
        let without = request(r#"{"to":"@me","body":"x"}"#);
        assert_eq!(with.key(None).unwrap().unwrap().as_str(), "a");
        assert_eq!(with.key(Some("a")).unwrap().unwrap().as_str(), "a");
        assert_eq!(without.key(Some("b")).unwrap().unwrap().as_str(), "b");
        assert_eq!(without.key(None).unwrap(), None);
        assert_eq!(with.key(Some("b")).unwrap_err().code, ErrorCode::InvalidRequest);
        assert_eq!(without.key(Some("")).unwrap_err().code, ErrorCode::InvalidRequest);
    }

    #[test]
    fn the_older_name_of_the_body_is_taken_and_unknown_fields_are_refused() {
        let fields = request(r#"{"to":"@me","message":"x","mentions":["@ci"],"replyToId":"r"}"#);
        let fields = fields.into_fields("a".parse().unwrap()).unwrap();
        assert_eq!((fields.body.as_str(), fields.reply_to.as_deref()), ("x", Some("r")));
        assert_eq!(fields.mentions[0].as_str(), "ci");
        assert!(serde_json::from_str::<SendRequest>(r#"{"to":"@me","body":"x","bogus":1}"#).is_err());
        for bad in
            [r#"{"to":"@me"}"#, r#"{"to":"@me","body":"x","message":"y"}"#, r#"{"to":"nowhere","body":"x"}"#]
        {
            assert!(request(bad).into_fields("a".parse().unwrap()).is_err(), "{bad}");
        }
    }
}
