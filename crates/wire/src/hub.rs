//! The hub: what agents write about their work, one type per kind of record.
//!
//! - A record that is made is whole; a patch names what changes, null takes an optional field away.
//! - The bodies' schemas are these types: what is served as JSON Schema is generated from them.

mod answer;
mod field;
mod plan;
mod work;

pub use answer::{
    Health, KeyQuery, KeyState, KeyStatus, ListQuery, ListedMessage, MessageList, MessagesQuery, Record,
    RecordList, Schemas, WasRead,
};
pub use plan::{
    DecisionPatch, DecisionStatus, NewDecision, NewWorkplan, Resolution, ResolutionText, WorkplanPatch,
    WorkplanStatus,
};
pub use work::{NewProgress, NewTask, NewTokenEvent, StatusSync, TaskPatch, TaskStatus, TaskStatusChange};

/// Names the hub that answered: the same for all processes over one ledger, another for any other hub.
pub const INSTANCE_HEADER: &str = "postrider-instance";
/// `true` on an answer that was given before.
pub const REPLAYED_HEADER: &str = "idempotency-replayed";
/// The instant of the change that an answer tells of, to the microsecond: `If-Unmodified-Since` with it finds that change.
pub const CHANGED_AT_HEADER: &str = "postrider-changed-at";
/// When the request of a key was first made, in the hub's own time.
pub const CREATED_HEADER: &str = "idempotency-created";
