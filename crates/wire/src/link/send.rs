//! A lane's messages, and the broker's word on each.

use model::{ConversationId, ErrorCode, Fingerprint, MemberId, MessageId, RowId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::error::ErrorBody;
use crate::text;

/// See [`super::ToBroker::Send`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Send {
    /// Correlates.
    pub n: u64,
    /// A member at home on this node.
    #[serde(with = "text")]
    pub sender: MemberId,
    /// [`SendItem`]s kept raw, so that a malformed one is refused by row and not with its frame.
    pub messages: Vec<Box<RawValue>>,
}

/// See [`super::ToNode::Sent`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Sent {
    /// Correlates.
    pub n: u64,
    /// One per message asked.
    pub results: Vec<SendResult>,
}

/// One message of a `send` frame.
#[derive(Debug, Serialize, Deserialize)]
pub struct SendItem {
    /// The outbox row: answers are matched by row and fingerprint.
    #[serde(with = "text")]
    pub row: RowId,
    /// What the sender's door froze.
    #[serde(with = "text")]
    pub request_fingerprint: Fingerprint,
    /// After which the broker refuses this copy.
    #[serde(with = "text")]
    pub send_deadline: Timestamp,
    /// The deadline in force, also when it was asked as a ttl.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub deliver_by: Option<Timestamp>,
    /// [`crate::MessageFields`], as they stand in the outbox.
    pub message: Box<RawValue>,
}

/// What is left of a [`SendItem`] that does not parse.
#[derive(Debug, Deserialize)]
pub struct SendItemRow {
    /// Which row to refuse.
    #[serde(with = "text")]
    pub row: RowId,
}

/// The broker's word on one row.
#[derive(Debug, Serialize, Deserialize)]
pub struct SendResult {
    /// Which.
    #[serde(with = "text")]
    pub row: RowId,
    /// What.
    #[serde(flatten)]
    pub outcome: SendOutcome,
}

/// See [`SendResult`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum SendOutcome {
    /// Committed, now (201) or before (200).
    Accepted(AcceptedRow),
    /// Refused.
    Refused {
        /// As HTTP would say it.
        status: u16,
        /// Why, and whatever belongs to it (`retry_after_ms`, `broker_fingerprint_prefix` …).
        #[serde(flatten)]
        error: ErrorBody,
    },
    /// A message before it was refused for now.
    NotTried,
}

/// Where an accepted message is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceptedRow {
    /// 201 or 200.
    pub status: u16,
    /// What was accepted: matched together with the row.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub request_fingerprint: Fingerprint,
    /// The broker's id.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub broker_message_id: MessageId,
    /// Its log.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub conversation: ConversationId,
    /// Its place there.
    pub history_id: u64,
    /// When it was committed.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// Whether an earlier copy did it.
    pub duplicate: bool,
    /// Whether the message row still exists.
    #[serde(default = "yes")]
    pub history_available: bool,
}

const fn yes() -> bool {
    true
}

/// The code a refused row means.
pub fn refusal_code(status: u16, error: &ErrorBody) -> ErrorCode {
    crate::status::code_of(status, Some(&error.error))
}
