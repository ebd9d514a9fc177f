//! Where is it, and why: what the broker knows, and what it asks of nodes.

use model::{
    ClientMessageId, ConversationId, DeliveryRung, MemberId, MemberName, MessageId, NodeName, Timestamp,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::MemberRef;
use crate::text;

/// What a broker may ask a node. Bodies stay where they are.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum NodeQuestion {
    /// What the node holds about a message: a list of [`NodeRecord`].
    Explain {
        /// Under which id it was sent.
        #[serde(with = "text")]
        client_message_id: ClientMessageId,
        /// By whom; without it, by anybody at home there.
        #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
        sender: Option<MemberId>,
        /// What the broker calls it, once it does.
        #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
        broker_message_id: Option<MessageId>,
    },
}

/// One record of a node about a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "held", rename_all = "snake_case")]
pub enum NodeRecord {
    /// A row of its outbox.
    Outbox {
        /// Who sends it.
        #[schema(value_type = String)]
        #[serde(with = "text")]
        sender: MemberName,
        /// pending, inflight, done, dead or aborted.
        status: String,
        /// When it was handed over.
        #[schema(value_type = String)]
        #[serde(with = "text")]
        enqueued_at: Timestamp,
        /// Tries so far.
        attempts: u32,
        /// The last answer, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_error: Option<String>,
    },
    /// A row of its inbox.
    Inbox {
        /// For whom.
        #[schema(value_type = String)]
        #[serde(with = "text")]
        recipient: MemberName,
        /// When it came.
        #[schema(value_type = String)]
        #[serde(with = "text")]
        received_at: Timestamp,
        /// How far it got here.
        #[schema(value_type = String)]
        #[serde(with = "text")]
        rung: DeliveryRung,
        /// What its turns have come to: open, interrupted, over or given_up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<String>,
    },
}

/// What the broker knows about an id.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BrokerExplained {
    /// Who says so.
    pub observer: String,
    /// `accepted`, `retired`, `forgotten` or `never_seen`; with several records, of the first.
    pub verdict: String,
    /// One per sender that used the id, as far as the asker may know.
    pub records: Vec<ExplainedRecord>,
    /// What the nodes involved answered, or that they did not.
    pub homes: Vec<ExplainedHome>,
    /// Broker time of this answer.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub now: Timestamp,
}

/// One sender's use of an id.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainedRecord {
    /// Who sent it.
    pub sender: MemberRef,
    /// Under which id.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub client_message_id: ClientMessageId,
    /// `accepted`, `retired` or `forgotten`.
    pub state: String,
    /// The rung all recipients reached, or how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<String>,
    /// The first eight bytes of what was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint_prefix: Option<String>,
    /// The broker's id.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub broker_message_id: Option<MessageId>,
    /// Its log.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// The log as the sender calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_name: Option<String>,
    /// Its place there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_id: Option<u64>,
    /// When it was accepted.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
    /// After which nobody may get it.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub deliver_by: Option<Timestamp>,
    /// Until when the id is remembered.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub remembered_until: Option<Timestamp>,
    /// Whether the message row still exists.
    pub history_available: bool,
    /// One per recipient.
    pub recipients: Vec<ExplainedRecipient>,
    /// One per webhook it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<ExplainedWebhook>,
}

/// One recipient's copy, with the instant of every rung.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainedRecipient {
    /// Who.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub name: MemberName,
    /// Its node, or nothing when the broker hosts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// How far.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub rung: DeliveryRung,
    /// In the inbox.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
    /// Handed over.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub notified_at: Option<Timestamp>,
    /// A turn began.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub engaged_at: Option<Timestamp>,
    /// The turn ended.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub processed_at: Option<Timestamp>,
    /// It ended below delivery.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_code: Option<String>,
    /// Read.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
}

/// One webhook's copy.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainedWebhook {
    /// The webhook's member.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub name: MemberName,
    /// `waiting`, `delivered` or `parked`.
    pub state: String,
    /// Tries of a row that waits.
    pub attempts: u32,
    /// The last answer to it, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_answer: Option<String>,
}

/// A node's part.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainedHome {
    /// Which node.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub node: NodeName,
    /// What it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<NodeRecord>,
    /// Whether it could not be asked, or did not answer in time.
    pub unreachable: bool,
}
