//! A node's durable side in one mesh: the outbox its callers fill and its courier empties, the inbox its
//! link fills, the turns its agents take, and the receipts that travel back. One SQLite file, one writer, so that one fact is one
//! transaction.
//!
//! Invariants
//! - An id once stored is never free again: rows are never deleted, only their bodies after a while.
//! - Every answer of a door that writes is given after its commit was synced.
//! - Whether an id is accepted, a row claimed, buried or done is decided by the pure rules of `model`
//!   inside the writing job; statements name the state they expect and count rows.
//! - A lane has at most one frame on the wire, and its rows leave in the order they were accepted.
//! - `first_attempt_at` is stored before the first byte leaves, in broker time.
//! - A row is recorded once per (sender, id, recipient); rungs only rise.
//! - An agent has one open turn; a message's attempts are counted for ever, and its end and reply are one
//!   transaction.
//! - This room knows no network: payloads and envelopes are bytes, time and randomness are arguments.
//!
//! Absent on purpose: wakes (whoever writes tells whoever waits), retries of storage errors (the caller's
//! caller repeats with the same id), and any judgement about what a body says.

mod ageing;
mod column;
mod inbox;
mod member;
mod meta;
mod open;
mod outbox;
pub mod planted;
mod prune;
pub mod relay;
mod restored;
mod salvage;
mod scrub;
mod shrink;
mod sorting;
mod sql;
mod turn;
mod went_back;

pub use inbox::{
    AckRow, Arrival, Arrived, Confirmed, InboxCount, InboxPlace, InboxQuery, InboxRow, InboxShow, Recorded,
};
pub use member::{Member, PutMemberError, SetTokenError, TokenHash};
pub use meta::{Fact, InboxEpoch, Meta};
pub use open::{Mailbox, OpenError, SCHEMA};
pub use outbox::{
    Accepted, Asking, ClaimRequest, Claimed, Doubt, Held, LaneFrame, LaneKey, Learned, Leased, NewRow,
    OperatorError, OutboxCounts, OutboxFilter, OutboxKey, OutboxRow, Receipt, Requeue, Requeued, RowAnswer,
    RowStatus, Rungs, Settled, Settlement, Unsettled, Witness, Word,
};
pub use prune::{EndedRows, PayloadCount};
pub use restored::InboxRestored;
pub use salvage::{Condition, LossCount, Salvaged, condition};
pub use shrink::{ShrinkBounds, ShrinkError, ShrunkFile, shrink};
pub use turn::{
    BeginTurn, BeginTurnError, Begun, EndTurn, EndTurnError, EndedTurn, RetryTurnError, Turn, TurnAsked,
    TurnLostError,
};
pub use went_back::{InboxWentBack, LedgerWentBack, WentBack};
