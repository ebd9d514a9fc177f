//! The hub: records, writes under a key, and what is known of a key.

use model::hub::{Change, Precondition, RecordId, RecordKind, Refusal};
use model::outbox::BrokerReceipt;
use model::{ClientMessageId, Fingerprint, MemberId, MemberName, MessageId, Timestamp};

/// A record as readers get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubRecord {
    /// What it is about.
    pub kind: RecordKind,
    /// Its id, one per kind.
    pub id: RecordId,
    /// Counts its changes.
    pub version: u64,
    /// Its fields, as JSON.
    pub body: Vec<u8>,
    /// Who made it.
    pub created_by: MemberName,
    /// When.
    pub created_at: Timestamp,
    /// Who changed it last.
    pub updated_by: MemberName,
    /// When.
    pub updated_at: Timestamp,
    /// The place of that change among all of its kind.
    pub seq: u64,
}

/// A page of the changes of one kind, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubPage {
    /// Each record once, at its last change.
    pub records: Vec<HubRecord>,
    /// The last change of the kind.
    pub head: u64,
    /// Whether there are more records after these.
    pub more: bool,
}

/// A write by a member whose credential was checked.
#[derive(Clone, Debug)]
pub struct HubWrite {
    /// Who.
    pub principal: MemberId,
    /// Under which key; none: the caller cannot repeat it.
    pub key: Option<HubKey>,
    /// What.
    pub effect: HubEffect,
    /// Says what was done, inside the transaction that does it: the answer is stored with the effect.
    pub render: fn(&HubApplied) -> HubAnswer,
}

/// The key of a write.
#[derive(Clone, Debug)]
pub struct HubKey {
    /// The key.
    pub key: ClientMessageId,
    /// The request's method, for people.
    pub method: String,
    /// The request's address, for people.
    pub path: String,
    /// What was asked.
    pub fingerprint: Fingerprint,
    /// When the request was first made, in store time, if its carrier says so.
    pub created_at: Option<Timestamp>,
}

/// What a write does.
#[derive(Clone, Debug)]
pub enum HubEffect {
    /// Changes one record.
    Record {
        /// Its kind.
        kind: RecordKind,
        /// Its id.
        id: RecordId,
        /// How.
        change: Change,
        /// If what?
        precondition: Precondition,
    },
    /// Changes records of one kind, in order, all or none.
    Batch {
        /// Their kind.
        kind: RecordKind,
        /// Each with its own precondition.
        changes: Vec<(RecordId, Change, Precondition)>,
    },
    /// Marks the caller's copy of a message as read.
    Read(MessageId),
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubApplied {
    /// There is a record where there was none.
    Made(HubRecord),
    /// A record changed.
    Changed(HubRecord),
    /// A record is gone.
    Deleted {
        /// Its kind.
        kind: RecordKind,
        /// Its id.
        id: RecordId,
        /// The version its deletion made.
        version: u64,
    },
    /// The records of a batch, in its order.
    Batch(Vec<HubRecord>),
    /// The caller's copy is read.
    Read {
        /// The message.
        id: MessageId,
        /// Since when.
        read_at: Timestamp,
    },
}

/// An answer, as it was given and as it is given again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubAnswer {
    /// The change it tells of, for the first answer alone: it is not stored.
    pub changed_at: Option<Timestamp>,
    /// HTTP's number for it.
    pub status: u16,
    /// The record's version as HTTP names it.
    pub etag: Option<String>,
    /// JSON.
    pub body: Vec<u8>,
}

/// The ledger's word on a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubOutcome {
    /// It is committed, by this copy.
    Applied(HubAnswer),
    /// It was committed by an earlier one.
    Replayed(HubAnswer),
    /// It is not, and nothing of it was stored.
    Refused(HubRefusal),
}

/// Why a write was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubRefusal {
    /// The key belongs to another request.
    KeyReused,
    /// The key is retired.
    KeyRetired,
    /// The copy is too old to tell it from an earlier one.
    KeyExpired,
    /// The principal was removed.
    Revoked,
    /// There is no such message for this caller.
    NoSuchMessage,
    /// The record.
    Record(Refusal),
    /// These records of a batch, each once.
    Batch(Vec<(RecordId, Refusal)>),
}

/// What is stored under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubKnown {
    /// An answer.
    Stored {
        /// Of its request.
        fingerprint: Fingerprint,
        /// As it was given.
        answer: HubAnswer,
        /// When it was given.
        created_at: Timestamp,
    },
    /// A message accepted under it.
    Message {
        /// Of the message.
        fingerprint: Fingerprint,
        /// Where it is.
        receipt: BrokerReceipt,
    },
    /// Nothing, for ever.
    Retired,
}

/// What a question about a key found, and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubKeyStatus {
    /// Its effect committed.
    Committed(HubKnown),
    /// Nothing happened under it and nothing will.
    Retired,
    /// Nothing happened under it yet.
    Absent,
    /// It is older than the memory.
    Unknown,
}

impl HubKnown {
    /// As the rules need it.
    pub fn known(&self) -> model::hub::KnownKey {
        use model::hub::KnownKey;
        match self {
            HubKnown::Stored { fingerprint, .. } => KnownKey::Stored { fingerprint: *fingerprint },
            HubKnown::Message { .. } => KnownKey::Message,
            HubKnown::Retired => KnownKey::Retired,
        }
    }
}
