//! The broker's books: one mesh's members, conversations, accepted messages and deliveries.
//!
//! [`Ledger`] is the one contract; a store behind it is SQLite (one machine) or PostgreSQL (many brokers),
//! and `conformance` is the suite both pass.
//!
//! Invariants
//! - An `Ok` means committed and synced. A refusal leaves no row in any table.
//! - A dedupe row in state `accepted` exists exactly when the accept transaction committed, and is written
//!   with the message, its deliveries and its mentions or not at all.
//! - A key in state `stored` exists exactly when its hub write committed, and is written with it or not at all.
//! - Commit order is read order: a place in a log is taken inside the writing transaction, under that log's lock.
//! - The store owns time: SQLite is given a clock, PostgreSQL uses the database's.
//! - Every transaction of a link checks the link's epoch, so a replaced link can write nothing.
//! - Envelopes are bytes to this room; what a rule reads stands in a typed field beside them.
//! - A wake says that something was committed and nothing else; the woken side reads the tables.

mod ageing;
#[cfg(feature = "conformance")]
#[expect(
    missing_docs,
    clippy::unwrap_used,
    reason = "a fact's name is its documentation, a panic its refusal"
)]
pub mod conformance;
mod desk;
mod error;
mod hub;
mod ledger;
pub mod planted;
mod postgres;
mod regressed;
mod rules;
mod sqlite;
mod types;

pub use ageing::ClockLook;
pub use error::{
    HistoryError, LinkError, LinkRefused, ManageError, StorageError, WayInError, WayInRefused, WebhookError,
};
pub use ledger::Ledger;
pub use postgres::{POSTGRES_SCHEMA, PostgresError, PostgresLedger, PostgresOpenError};
pub use regressed::Regressed;
pub use sqlite::{SCHEMA as SQLITE_SCHEMA, SqliteLedger};
pub use types::accept::{Admission, LaneSubmission, Outcome, Refusal, Submission, Via};
pub use types::chat::{
    AskedQuestion, Audience, Emptied, Escalation, Followed, Follower, LogHead, NodeFacts, ReadState, Session,
};
pub use types::durable::DurabilityWarning;
pub use types::explain::{AcceptedFacts, DedupeFacts, DeliveryFacts, Explained, Orphan, Wanted};
pub use types::hub::{
    HubAnswer, HubApplied, HubEffect, HubKey, HubKeyStatus, HubKnown, HubOutcome, HubPage, HubRecord,
    HubRefusal, HubWrite,
};
pub use types::manage::{ApiToken, Forgotten, IdPlace, NewToken, Pruned, Registered, Scopes, TokenId};
pub use types::mesh::{ConnectionPolicy, IssuerSeed, Member, Mesh, MeshSetup, Policies, Role, TopicPolicy};
pub use types::read::{
    Awaiting, ConversationKind, ConversationName, ConversationRow, ConversationState, History, HistoryPage,
    HistoryRow, Log, MessagePage, MessageRow, Place, TopicRow,
};
pub use types::status::{Fence, StatusQuestion};
pub use types::wayin::{
    Entered, Exchange, Exchanged, InviteRow, Joined, KnownNode, Link, LinkMember, LinkOpened, LinkOpening,
    NewInvite, Secret, SecretHash, Witness,
};
pub use types::webhook::{
    NewWebhook, Push, PushClaim, PushFacts, PushOutcome, PushSettled, Webhook, WebhookState,
};
pub use types::window::{Ack, AckedRow, MailRow, Nack, ReceiptAck, ReceiptRow};
