//! Handing messages to the ledger, and its word on each.

use model::outbox::BrokerReceipt;
use model::{ClientMessageId, Epoch, ErrorCode, Fingerprint, MemberId, MemberName, Timestamp, To};

use super::wayin::Link;

/// Who carries a request to the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// A node's link: it speaks for members at home there and for nobody else.
    Link(Link),
    /// The broker itself, which has checked the caller's credential.
    Broker,
}

/// One lane's next messages, evaluated in order.
#[derive(Clone, Debug)]
pub struct LaneSubmission {
    /// Through whom.
    pub via: Via,
    /// Whose messages.
    pub sender: MemberId,
    /// In lane order.
    pub messages: Vec<Submission>,
}

/// One message, already checked for shape, size and fingerprint.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The sender's idempotency key.
    pub client_message_id: ClientMessageId,
    /// What was asked.
    pub fingerprint: Fingerprint,
    /// Where it goes, as asked; names resolve in the transaction.
    pub to: To,
    /// Members named, in the given order.
    pub mentions: Vec<MemberName>,
    /// Whether the conversation now waits for an answer.
    pub expects_input: bool,
    /// After which a copy is refused.
    pub send_deadline: Option<Timestamp>,
    /// After which nobody may get it.
    pub deliver_by: Option<Timestamp>,
    /// The sender's fields; the ledger keeps the bytes as they are.
    pub envelope: Vec<u8>,
}

/// The ledger's word on one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is committed, now or before.
    Admitted {
        /// Where.
        receipt: BrokerReceipt,
        /// By which copy.
        admission: Admission,
    },
    /// It is not, and nothing of it was stored.
    Refused(Refusal),
    /// A message before it was refused for now; this one was not looked at.
    NotTried,
}

/// Which copy of a message was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// This one.
    New {
        /// The generation of its log, where the transaction that wrote it is known to have read it.
        generation: Option<Epoch>,
    },
    /// An earlier one.
    Duplicate {
        /// Whether the message row still exists.
        history_available: bool,
    },
}

impl Admission {
    /// Whether this copy was committed, and no earlier one.
    pub const fn is_new(self) -> bool {
        matches!(self, Admission::New { .. })
    }
}

/// Why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code; its class says whether the lane goes on.
    pub code: ErrorCode,
    /// What was accepted under the id instead, for `idempotency_key_reused`.
    pub held: Option<Fingerprint>,
    /// What the code is about: a name, a topic.
    pub detail: Option<String>,
}

impl Refusal {
    /// `code` and nothing else.
    pub const fn plain(code: ErrorCode) -> Self {
        Self { code, held: None, detail: None }
    }

    /// `code` about `detail`.
    pub fn about(code: ErrorCode, detail: impl ToString) -> Self {
        Self { code, held: None, detail: Some(detail.to_string()) }
    }
}
