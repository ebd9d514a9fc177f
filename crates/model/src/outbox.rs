//! The life of an outbox row, as pure rules.
//!
//! - A row is never freed: its id stays used in every state.
//! - `first_attempt_at` is fixed by the claim, before the first byte, in broker time.
//! - A positive answer is truth from any state; a negative one counts only for the holder of the lease.
//! - A refusal alone does not prove that nothing was accepted: an older copy may still commit. Such a
//!   row's outcome is `unknown` until the broker has been asked.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::admission::StatusAnswer;
use crate::clock::Timestamp;
use crate::envelope::words;
use crate::error::{Class, ErrorCode, Malformed};
use crate::fingerprint::Fingerprint;
use crate::id::{ConversationId, LeaseToken, MessageId, RowId};
use crate::limits;
use crate::receipt::Ended;

/// A row's state with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxState {
    /// Waits for its turn.
    Pending,
    /// On the wire under this lease.
    Inflight {
        /// Whoever holds it may record a refusal.
        lease: LeaseToken,
    },
    /// The broker committed it.
    Done {
        /// Where.
        receipt: BrokerReceipt,
    },
    /// We gave up.
    Dead {
        /// Why.
        reason: DeadReason,
        /// What is known of the broker's side.
        outcome: Outcome,
        /// The last answer, in words.
        last_error: Option<String>,
    },
    /// A person or a policy retired it.
    Aborted {
        /// Who.
        by: AbortedBy,
        /// What is known of the broker's side.
        outcome: Outcome,
        /// The row that took its place.
        successor: Option<RowId>,
    },
}

/// The stored number of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// See [`OutboxState::Pending`].
    Pending = 0,
    /// See [`OutboxState::Inflight`].
    Inflight = 1,
    /// See [`OutboxState::Done`].
    Done = 2,
    /// See [`OutboxState::Dead`].
    Dead = 3,
    /// See [`OutboxState::Aborted`].
    Aborted = 4,
}

/// Where the broker put a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerReceipt {
    /// The broker's id for it.
    pub broker_message_id: MessageId,
    /// Its log.
    pub conversation: ConversationId,
    /// Its place there.
    pub history_id: u64,
    /// When the broker committed it.
    pub accepted_at: Timestamp,
}

/// Why we gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeadReason {
    /// Refused for good.
    Rejected,
    /// Over a bound.
    TooLarge,
    /// The broker knows the id for another message.
    FpConflict,
    /// Too old to be deduplicated safely.
    MaxAge,
    /// Its own deadline passed.
    DeliverBy,
    /// The destination stayed unknown.
    DestinationGone,
    /// The sender was removed.
    Revoked,
    /// The broker failed on it over and over.
    Poison,
}

/// What is known of the broker's side of a row that ended here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It never left this host.
    NotSent,
    /// It may have been accepted.
    Unknown,
    /// The broker said no and retired the id.
    NotAccepted,
    /// The broker has it.
    Accepted,
}

/// Who retired a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AbortedBy {
    /// A person.
    Operator,
    /// The caller's session.
    Session,
    /// A rule.
    Policy,
}

words! { Status "status" "pending, inflight, done, dead or aborted" {
    Pending "pending" Inflight "inflight" Done "done" Dead "dead" Aborted "aborted"
} }
words! { DeadReason "dead_reason" "a dead reason" {
    Rejected "rejected" TooLarge "too_large" FpConflict "fp_conflict" MaxAge "max_age" DeliverBy "deliver_by"
    DestinationGone "destination_gone" Revoked "revoked" Poison "poison"
} }
words! { Outcome "outcome" "not_sent, unknown, not_accepted or accepted" {
    NotSent "not_sent" Unknown "unknown" NotAccepted "not_accepted" Accepted "accepted"
} }
words! { AbortedBy "aborted_by" "operator, session or policy" {
    Operator "operator" Session "session" Policy "policy"
} }

impl Status {
    /// The stored number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The status stored as `code`.
    pub fn from_code(code: i64) -> Option<Status> {
        Status::ALL.iter().copied().find(|status| i64::from(status.code()) == code)
    }
}

impl OutboxState {
    /// The state's name.
    pub const fn status(&self) -> Status {
        match self {
            OutboxState::Pending => Status::Pending,
            OutboxState::Inflight { .. } => Status::Inflight,
            OutboxState::Done { .. } => Status::Done,
            OutboxState::Dead { .. } => Status::Dead,
            OutboxState::Aborted { .. } => Status::Aborted,
        }
    }
}

/// What a send finds under its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What the id was used for.
    pub fingerprint: Fingerprint,
    /// How far it came.
    pub state: OutboxState,
}

/// The door's answer to a send. No verdict changes an existing row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The id is new: store it.
    Insert,
    /// The same message waits.
    Queued,
    /// The same message is on the wire.
    Inflight,
    /// The same message was accepted.
    Duplicate(BrokerReceipt),
    /// The id is used up.
    Conflict(Conflict),
}

/// Why an id cannot be used for this message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The state of the row that holds the id.
    pub status: Status,
    /// Whether it was the same message.
    pub matched: bool,
    /// What the row was asked.
    pub fingerprint: Fingerprint,
    /// The broker's id, when it was accepted.
    pub broker_message_id: Option<MessageId>,
    /// The last answer, for a row given up.
    pub reason: Option<String>,
}

impl Conflict {
    /// The id that `found` holds cannot be used for a message with this fingerprint too.
    pub fn between(found: &Found, incoming: &Fingerprint) -> Self {
        let matched = found.fingerprint == *incoming;
        let (broker_message_id, reason) = match &found.state {
            OutboxState::Done { receipt } => (Some(receipt.broker_message_id), None),
            OutboxState::Dead { last_error, .. } if matched => {
                (None, Some(last_error.clone().unwrap_or_else(|| "unknown".into())))
            }
            OutboxState::Pending
            | OutboxState::Inflight { .. }
            | OutboxState::Dead { .. }
            | OutboxState::Aborted { .. } => (None, None),
        };
        let (status, fingerprint) = (found.state.status(), found.fingerprint);
        Self { status, matched, fingerprint, broker_message_id, reason }
    }

    /// The text clients match: `outbox_<status>_fingerprint_<match|mismatch>`.
    pub fn text(&self) -> String {
        format!("outbox_{}_fingerprint_{}", self.status, if self.matched { "match" } else { "mismatch" })
    }
}

/// The accept table.
pub fn decide(found: Option<&Found>, incoming: &Fingerprint) -> Verdict {
    let Some(found) = found else { return Verdict::Insert };
    let matched = found.fingerprint == *incoming;
    match &found.state {
        OutboxState::Pending if matched => Verdict::Queued,
        OutboxState::Inflight { .. } if matched => Verdict::Inflight,
        OutboxState::Done { receipt } if matched => Verdict::Duplicate(*receipt),
        OutboxState::Pending
        | OutboxState::Inflight { .. }
        | OutboxState::Done { .. }
        | OutboxState::Dead { .. }
        | OutboxState::Aborted { .. } => Verdict::Conflict(Conflict::between(found, incoming)),
    }
}

/// Whether a due row goes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Yes; both instants are in broker time.
    Go {
        /// Fixed by the first claim.
        first_attempt_at: Timestamp,
        /// After which the broker refuses a copy.
        send_deadline: Timestamp,
    },
    /// No: its time is over.
    GiveUp(DeadReason, Outcome),
}

/// What is known of the broker's side of a pending row that dies here without being asked about.
pub const fn outcome_of_dead(first_attempt_at: Option<Timestamp>) -> Outcome {
    if first_attempt_at.is_some() { Outcome::Unknown } else { Outcome::NotSent }
}

/// Decides a claim. `now` is broker time: without a link there is none, and no row ends for its age.
pub fn claim(
    first_attempt_at: Option<Timestamp>,
    deliver_by: Option<Timestamp>,
    now: Timestamp,
    max_age: Duration,
) -> Claim {
    let outcome = outcome_of_dead(first_attempt_at);
    let first_attempt_at = first_attempt_at.unwrap_or(now);
    let send_deadline = first_attempt_at + max_age;
    if deliver_by.is_some_and(|deliver_by| now >= deliver_by) {
        Claim::GiveUp(DeadReason::DeliverBy, outcome)
    } else if now >= send_deadline {
        Claim::GiveUp(DeadReason::MaxAge, outcome)
    } else {
        Claim::Go { first_attempt_at, send_deadline }
    }
}

/// What came back for a row on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Accepted now or before.
    Accepted(BrokerReceipt),
    /// Refused with a code.
    Refused(ErrorCode),
    /// A message before it in its frame was refused, so it was not looked at.
    NotTried,
    /// Nothing came: timeout or a lost link.
    Lost,
}

/// What a row's history says about giving up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Patience {
    /// Tries so far, this one included.
    pub attempts: u32,
    /// Time since the first try.
    pub tried_for: Duration,
    /// Time since the lane's first unknown-destination answer, when the last one was such.
    pub gone_for: Option<Duration>,
}

/// What an answer does to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// To done.
    Done(BrokerReceipt),
    /// Stays aborted; the acceptance is noted.
    LateAck(BrokerReceipt),
    /// To dead.
    Bury(DeadReason, Outcome),
    /// To pending, later; the lane backs off.
    Retry,
    /// To pending, and the try is not counted.
    Release,
    /// Nothing: the row moved on, or was never this answer's.
    Nothing,
}

/// Applies `answer` to a row in `status`; `holds_lease` says whether the answer belongs to its present claim.
pub fn settle(status: Status, holds_lease: bool, answer: Answer, patience: Patience) -> Move {
    if let Answer::Accepted(receipt) = answer {
        return match status {
            Status::Pending | Status::Inflight | Status::Dead => Move::Done(receipt),
            Status::Aborted => Move::LateAck(receipt),
            Status::Done => Move::Nothing,
        };
    }
    if status != Status::Inflight || !holds_lease {
        return Move::Nothing;
    }
    match answer {
        Answer::Accepted(receipt) => Move::Done(receipt),
        Answer::NotTried => Move::Release,
        Answer::Lost => Move::Retry,
        Answer::Refused(code) => refused(code, patience),
    }
}

fn refused(code: ErrorCode, patience: Patience) -> Move {
    match code.class() {
        // Also when the id is retired: an outbox that lost its file may meet the fence of its former life, which is
        // forgotten before a copy of its own. The question that follows a death keeps the fence.
        Class::Permanent => Move::Bury(dead_reason(code), Outcome::Unknown),
        Class::Conditional
            if patience.gone_for.is_some_and(|gone| gone >= limits::DESTINATION_GONE_AFTER) =>
        {
            Move::Bury(DeadReason::DestinationGone, Outcome::Unknown)
        }
        Class::Conditional => Move::Retry,
        Class::Transient if is_poison(code, patience) => Move::Bury(DeadReason::Poison, Outcome::Unknown),
        Class::Transient => Move::Retry,
    }
}

fn is_poison(code: ErrorCode, patience: Patience) -> bool {
    code == ErrorCode::Internal
        && patience.attempts >= limits::POISON_ATTEMPTS_MIN
        && patience.tried_for >= limits::POISON_AGE_MIN
}

/// The reason a permanent refusal gives a row.
pub fn dead_reason(code: ErrorCode) -> DeadReason {
    match code {
        ErrorCode::TooLarge => DeadReason::TooLarge,
        ErrorCode::IdempotencyKeyReused => DeadReason::FpConflict,
        ErrorCode::SendDeadlinePassed => DeadReason::MaxAge,
        ErrorCode::DeliverByPassed => DeadReason::DeliverBy,
        ErrorCode::Revoked => DeadReason::Revoked,
        _ => DeadReason::Rejected,
    }
}

/// What asking the broker about a row that ended `unknown` does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learnt {
    /// To done.
    Done(BrokerReceipt),
    /// Stays aborted; the acceptance is noted.
    LateAck(BrokerReceipt),
    /// The outcome is now known.
    NotAccepted,
    /// The window has passed: `unknown` is final.
    Final,
    /// The row moved on meanwhile.
    Nothing,
}

/// Applies the broker's word on a dead or aborted row. The question fenced the id, so `absent` is for ever.
pub fn learn(status: Status, answer: StatusAnswer) -> Learnt {
    match (status, answer) {
        (Status::Dead, StatusAnswer::Accepted(receipt)) => Learnt::Done(receipt),
        (Status::Aborted, StatusAnswer::Accepted(receipt)) => Learnt::LateAck(receipt),
        (
            Status::Dead | Status::Aborted,
            StatusAnswer::AcceptedOtherFingerprint | StatusAnswer::Retired | StatusAnswer::Absent,
        ) => Learnt::NotAccepted,
        (Status::Dead | Status::Aborted, StatusAnswer::Unknown) => Learnt::Final,
        (Status::Pending | Status::Inflight | Status::Done, _) => Learnt::Nothing,
    }
}

/// Whether an accepted row goes again when its broker came back from an older backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redrive {
    /// Yes, back to pending.
    Again {
        /// The one time it is set anew, in broker time.
        first_attempt_at: Timestamp,
    },
    /// No: it stays done.
    Leave,
}

/// Decides whether an accepted row is driven again, all in broker time. The backup may have kept it, and then its
/// id is known for a window from `accepted_at` on: its age counts from there, not from now, or its last copy could
/// arrive after it was forgotten and be accepted twice.
pub fn redrive(
    accepted_at: Timestamp,
    deliver_by: Option<Timestamp>,
    now: Timestamp,
    max_age: Duration,
) -> Redrive {
    match claim(Some(accepted_at), deliver_by, now, max_age) {
        Claim::Go { first_attempt_at, .. } => Redrive::Again { first_attempt_at },
        Claim::GiveUp(..) => Redrive::Leave,
    }
}

/// How the broker remembers ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DedupeWindow {
    /// For so many days.
    Days(u32),
    /// For ever.
    Permanent,
}

/// The oldest an attempted row may get, so that its last copy arrives while the broker still knows it.
pub fn max_age(window: DedupeWindow) -> Duration {
    let hours = match window {
        DedupeWindow::Permanent => limits::PERMANENT_MAX_AGE_HOURS,
        DedupeWindow::Days(days) => {
            let hours = days * 24;
            // A tenth of the window, rounded up, and never less than a day.
            hours.saturating_sub(hours.div_ceil(10).max(24))
        }
    };
    Duration::from_secs(u64::from(hours) * 3600)
}

/// The receipt's word for a row given up.
pub const fn ended(reason: DeadReason) -> Ended {
    match reason {
        DeadReason::Rejected | DeadReason::TooLarge => Ended::Rejected,
        DeadReason::FpConflict => Ended::Conflict,
        DeadReason::MaxAge | DeadReason::DeliverBy => Ended::Expired,
        DeadReason::DestinationGone | DeadReason::Revoked | DeadReason::Poison => Ended::Dead,
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
