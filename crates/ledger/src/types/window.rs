//! The two windows of a link: mail towards a node, receipts back to senders.
//!
//! A delivery is named by message and recipient, never by a row number: those come back after a restore.

use model::{ClientMessageId, Cursor, DeliveryRung, MemberId, MemberName, MessageId, Timestamp};

use super::read::Place;

/// An undelivered message for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailRow {
    /// The message.
    pub id: MessageId,
    /// For whom.
    pub recipient: MemberId,
    /// Who sent it.
    pub sender: MemberId,
    /// The sender's name.
    pub sender_name: MemberName,
    /// The sender's idempotency key.
    pub client_message_id: ClientMessageId,
    /// Its log, as the recipient calls it.
    pub place: Place,
    /// Its place there.
    pub history_id: u64,
    /// The same place as a cursor.
    pub cursor: Cursor,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// The sender's fields.
    pub envelope: Vec<u8>,
    /// After which it must not be handed on.
    pub deliver_by: Option<Timestamp>,
    /// When the recipient read it, as far as the ledger was told.
    pub read_at: Option<Timestamp>,
    /// Whether an inbox that was lost since may have held it.
    pub redelivered: bool,
    /// How far it came before the inbox went back, when it is sent again because of that.
    pub again: Option<DeliveryRung>,
}

/// A rung reached at a recipient's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The message.
    pub id: MessageId,
    /// For whom.
    pub recipient: MemberId,
    /// How far.
    pub rung: DeliveryRung,
    /// When, in broker time as the node knows it.
    pub at: Timestamp,
    /// When the recipient read it.
    pub read_at: Option<Timestamp>,
    /// Its place in the recipient's inbox. `None`: the node does not say.
    pub place: Option<u64>,
}

/// What the ledger holds after an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckedRow {
    /// The message.
    pub id: MessageId,
    /// For whom.
    pub recipient: MemberId,
    /// The rung the ack named; the ledger holds it or a higher one.
    pub rung: DeliveryRung,
}

/// A row the recipient's node cannot store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nack {
    /// The message.
    pub id: MessageId,
    /// For whom.
    pub recipient: MemberId,
    /// Why, in the node's word.
    pub code: String,
}

/// A rung the sender has not been told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptRow {
    /// The message.
    pub id: MessageId,
    /// Who sent it.
    pub sender: MemberId,
    /// Under which id.
    pub client_message_id: ClientMessageId,
    /// For whom it is.
    pub recipient: MemberId,
    /// How far it came.
    pub rung: DeliveryRung,
    /// When it got there.
    pub at: Timestamp,
    /// Why it ended, when it did.
    pub ended_code: Option<String>,
}

/// A receipt the sender's node has committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiptAck {
    /// The message.
    pub id: MessageId,
    /// For whom it is.
    pub recipient: MemberId,
    /// The rung told.
    pub rung: DeliveryRung,
}
