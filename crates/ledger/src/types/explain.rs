//! The facts behind one id, for people who ask where a message is.

use model::admission::Known;
use model::{ClientMessageId, DeliveryRung, MessageId, Timestamp};

use super::mesh::Member;
use super::read::Place;

/// What somebody asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The broker's id.
    Message(MessageId),
    /// A sender's id; several senders may have used it.
    Client(ClientMessageId),
}

/// All the ledger holds about one (sender, id).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Who sent it.
    pub sender: Member,
    /// Under which id.
    pub client_message_id: ClientMessageId,
    /// The dedupe row; `None` once its window has passed.
    pub dedupe: Option<DedupeFacts>,
    /// The message, while it is kept.
    pub accepted: Option<AcceptedFacts>,
}

/// A dedupe row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DedupeFacts {
    /// What it says.
    pub known: Known,
    /// When it was written.
    pub first_seen_at: Timestamp,
    /// When it may be forgotten.
    pub expires_at: Option<Timestamp>,
}

/// A message row with its deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedFacts {
    /// Its id.
    pub id: MessageId,
    /// Its log, as the sender calls it.
    pub place: Place,
    /// Its place there.
    pub history_id: u64,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// After which nobody may get it.
    pub deliver_by: Option<Timestamp>,
    /// One per recipient.
    pub deliveries: Vec<DeliveryFacts>,
}

/// How far one recipient's copy came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryFacts {
    /// For whom.
    pub recipient: Member,
    /// How far.
    pub rung: DeliveryRung,
    /// What the sender's node has been told; `None` where senders are not told (topics).
    pub rung_told: Option<DeliveryRung>,
    /// In the recipient's inbox.
    pub delivered_at: Option<Timestamp>,
    /// Handed to the recipient.
    pub notified_at: Option<Timestamp>,
    /// A turn began.
    pub engaged_at: Option<Timestamp>,
    /// The turn ended.
    pub processed_at: Option<Timestamp>,
    /// It ended below delivery.
    pub ended_at: Option<Timestamp>,
    /// Why it did.
    pub ended_code: Option<String>,
    /// The recipient read it.
    pub read_at: Option<Timestamp>,
}

/// Rows that contradict each other: what one accept writes was not written whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Orphan {
    /// A dedupe row says the message is there, and it is not.
    BodyMissing(MessageId),
    /// An undelivered row belongs to no dedupe row, inside the window.
    DeliveryWithoutDedupe(MessageId),
    /// An undelivered row belongs to no message.
    DeliveryWithoutMessage {
        /// The message's number inside the store.
        message: i64,
    },
    /// An undelivered row that its recipient's mail does not lead to.
    DeliveryOutsideMail(MessageId),
    /// A message belongs to no dedupe row, inside the window.
    MessageWithoutDedupe(MessageId),
    /// The conversation or the place that a dedupe row answers with is not its message's.
    PlaceMismatch(MessageId),
    /// A direct message has no delivery for its recipient.
    DirectWithoutDelivery(MessageId),
    /// A mention belongs to no message.
    MentionWithoutMessage {
        /// The message's number inside the store.
        message: i64,
    },
}
