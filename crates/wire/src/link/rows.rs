//! Mail, and how far it came: rows for one recipient each.

use model::{ClientMessageId, DeliveryRung, MemberId, MessageId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::text;

/// A message for one recipient at home here.
#[derive(Debug, Serialize, Deserialize)]
pub struct MailRow {
    /// For whom.
    #[serde(with = "text")]
    pub recipient: MemberId,
    /// Who sent it.
    #[serde(with = "text")]
    pub sender_id: MemberId,
    /// The deadline in force, also when it was asked as a ttl.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub deliver_by: Option<Timestamp>,
    /// When the recipient read it, as far as the broker was told: an inbox that was lost learns it back.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    /// How far it came before, when it is sent again because the inbox went back to an older copy.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub again: Option<DeliveryRung>,
    /// The message.
    pub message: Message,
}

/// A delivery by message and recipient; row numbers come back after a restore, these do not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckRef {
    /// The message.
    #[serde(with = "text")]
    pub id: MessageId,
    /// For whom.
    #[serde(with = "text")]
    pub recipient: MemberId,
    /// How far.
    #[serde(with = "text")]
    pub rung: DeliveryRung,
}

/// A rung reached at a recipient's node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ack {
    /// Which delivery, how far.
    #[serde(flatten)]
    pub row: AckRef,
    /// When, by the node's clock.
    #[serde(with = "text")]
    pub at: Timestamp,
    /// When the recipient read it, if it did.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    /// Its place in the node's inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
}

/// A rung the broker has committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acked {
    /// Which delivery, how far.
    #[serde(flatten)]
    pub row: AckRef,
    /// Whether the ack also said that it was read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read: bool,
}

/// A row that cannot be stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Nack {
    /// The message.
    #[serde(with = "text")]
    pub id: MessageId,
    /// For whom.
    #[serde(with = "text")]
    pub recipient: MemberId,
    /// Why.
    pub code: String,
}

/// A rung of a message that a member at home here sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReceiptRow {
    /// Which delivery, how far.
    #[serde(flatten)]
    pub row: AckRef,
    /// Who sent it.
    #[serde(with = "text")]
    pub sender: MemberId,
    /// Under which id.
    #[serde(with = "text")]
    pub client_message_id: ClientMessageId,
    /// When.
    #[serde(with = "text")]
    pub at: Timestamp,
    /// Why it ended, when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_code: Option<String>,
}
