//! Webhooks: members whose deliveries are pushed to an address.

use std::time::Duration;

use model::webhook::WebhookSecret;
use model::{DeliveryRung, LeaseToken, MemberId, MemberName, MessageId, Timestamp, TopicName};

use super::mesh::Member;
use super::window::MailRow;

/// A webhook to make.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    /// Its member: new, or a service the broker hosts and that has none yet.
    pub name: MemberName,
    /// Where it goes; already checked.
    pub url: String,
    /// With what its calls are signed.
    pub secret: WebhookSecret,
    /// Topics delivered to it from now on.
    pub topics: Vec<TopicName>,
}

/// A webhook as its owner sees it: without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Whose deliveries it gets.
    pub member: Member,
    /// Where it goes.
    pub url: String,
    /// Topics delivered to it.
    pub topics: Vec<TopicName>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when the secret before the last rotation signs too.
    pub old_secret_until: Option<Timestamp>,
    /// Whether it is called.
    pub state: WebhookState,
    /// Rows not delivered yet.
    pub waiting: u64,
    /// Rows given up.
    pub parked: u64,
}

/// Whether a webhook is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookState {
    /// It is.
    Enabled,
    /// It is not; what is for it waits.
    Disabled {
        /// Since when.
        at: Timestamp,
        /// Why.
        reason: String,
    },
}

/// The right to make one call, until it lapses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushClaim {
    /// The message.
    pub id: MessageId,
    /// For whom.
    pub recipient: MemberId,
    /// Which claim: a lapsed one may record nothing but success.
    pub token: LeaseToken,
    /// Calls so far, this one included.
    pub attempts: u32,
}

/// A call to make now.
#[derive(Clone, Debug)]
pub struct Push {
    /// The right to make it.
    pub claim: PushClaim,
    /// What to push.
    pub row: MailRow,
    /// Where.
    pub url: String,
    /// With what it is signed: the new secret, and during a rotation the old one after it.
    pub secrets: Vec<WebhookSecret>,
    /// Store time of the claim.
    pub now: Timestamp,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    /// The endpoint has it.
    Delivered,
    /// Not yet.
    Again {
        /// When it is due.
        after: Duration,
        /// What the endpoint answered, in a word.
        answer: String,
    },
    /// It was tried often enough.
    GaveUp,
    /// The endpoint wants no calls at all.
    Disabled {
        /// Why.
        reason: String,
    },
}

/// What the ledger made of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushSettled {
    /// It is recorded.
    Recorded,
    /// The claim had lapsed and somebody else has the row: nothing was recorded.
    ClaimLost,
}

/// How far the push of one message to one webhook came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushFacts {
    /// The webhook's member.
    pub name: MemberName,
    /// How far.
    pub rung: DeliveryRung,
    /// Calls so far, while it waits.
    pub attempts: u32,
    /// When it is tried again, once it was tried.
    pub next_attempt_at: Option<Timestamp>,
    /// What the endpoint answered last, in a word.
    pub last_answer: Option<String>,
}
