//! Who decides: the rules of `model`, and the habits of the rooms around them.

use std::time::Duration;

use model::admission::{Fence, Known, LookUp, StatusAnswer};
use model::ageing::ForgottenUpto;
use model::operator::{Asking, Doubt, Finality, Requeue, Untouchable, Word};
use model::outbox::{
    Answer, Claim, DedupeWindow, Found, Learnt, Move, OutboxState, Outcome, Patience, Redrive, Status,
    Verdict,
};
use model::{ErrorCode, Fingerprint, Timestamp, admission, operator, outbox};

/// One function per rule, as `model` has it.
#[derive(Clone, Copy)]
pub struct Rules {
    /// [`outbox::decide`]
    pub decide: fn(Option<&Found>, &Fingerprint) -> Verdict,
    /// [`outbox::claim`]
    pub claim: fn(Option<Timestamp>, Option<Timestamp>, Timestamp, Duration) -> Claim,
    /// [`outbox::settle`]
    pub settle: fn(Status, bool, Answer, Patience) -> Move,
    /// [`outbox::learn`]
    pub learn: fn(Status, StatusAnswer) -> Learnt,
    /// [`outbox::redrive`]
    pub redrive: fn(Timestamp, Option<Timestamp>, Timestamp, Duration) -> Redrive,
    /// [`admission::look_up`]
    pub look_up: fn(Option<&Known>, &Fingerprint) -> LookUp,
    /// [`admission::check_time`]
    pub check_time: CheckTime,
    /// [`admission::message_status`]
    pub message_status: fn(Option<&Known>, &Fingerprint, Timestamp, DedupeWindow, Timestamp) -> StatusAnswer,
    /// [`admission::fence`]
    pub fence: fn(StatusAnswer) -> Fence,
    /// [`operator::asking`]
    pub asking: fn(&OutboxState, Option<Timestamp>) -> Result<Asking, Untouchable>,
    /// [`operator::requeue`]
    pub requeue: fn(&OutboxState, Option<Timestamp>, Word, Doubt) -> Result<Requeue, Untouchable>,
    /// [`operator::abort`]
    pub abort: fn(&OutboxState, Option<Timestamp>) -> Result<Outcome, Untouchable>,
    /// [`operator::waits_for`]
    pub waits_for: fn(Outcome, Finality) -> bool,
    /// [`operator::retires_successor`]
    pub retires_successor: fn(Status, Option<Timestamp>, bool) -> bool,
    /// What is done around them.
    pub habits: Habits,
}

/// Whether a copy's time is over.
pub type CheckTime = fn(Timestamp, Option<Timestamp>, Option<Timestamp>, Duration) -> Result<(), ErrorCode>;

/// What the rooms do around the rules, each a promise of its own.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// The dedupe key names the sender.
    pub key_names_sender: bool,
    /// The dedupe row is written in the transaction that accepts.
    pub dedupe_in_transaction: bool,
    /// The look-up sees what was committed.
    pub look_up_is_fresh: bool,
    /// A message is charged once while the clock stands.
    pub charges_once: bool,
    /// The first attempt is written down before the first byte leaves.
    pub first_attempt_before_sending: bool,
    /// Which clock ages are counted by.
    pub clock: Clock,
    /// An answer is the row's only when it names the row's fingerprint.
    pub answers_name_words: bool,
    /// What was on the wire when the daemon died is pending when it starts.
    pub recovers: bool,
    /// Rows that ended without being known are asked about.
    pub asks_about_ended: bool,
    /// A hold the courier broke is noticed.
    pub hold_is_checked: bool,
    /// Rows a restored broker lost are driven again.
    pub redrives: bool,
}

/// See [`Habits::clock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The broker's, as the link told it.
    Broker,
    /// The daemon's own, six days ahead until its machine is restarted.
    Own,
}

impl Rules {
    /// Nothing is planted.
    pub const REAL: Rules = Rules {
        decide: outbox::decide,
        claim: outbox::claim,
        settle: outbox::settle,
        learn: outbox::learn,
        redrive: outbox::redrive,
        look_up: admission::look_up,
        check_time,
        message_status: admission::message_status,
        fence: admission::fence,
        asking: operator::asking,
        requeue: operator::requeue,
        abort: operator::abort,
        waits_for: operator::waits_for,
        retires_successor: operator::retires_successor,
        habits: Habits::KEPT,
    };
}

impl Habits {
    /// All of them.
    pub const KEPT: Habits = Habits {
        key_names_sender: true,
        dedupe_in_transaction: true,
        look_up_is_fresh: true,
        charges_once: true,
        first_attempt_before_sending: true,
        clock: Clock::Broker,
        answers_name_words: true,
        recovers: true,
        asks_about_ended: true,
        hold_is_checked: true,
        redrives: true,
    };
}

/// [`admission::check_time`] where the broker's clock is never in doubt: ids may be forgotten up to now.
fn check_time(
    now: Timestamp,
    send_deadline: Option<Timestamp>,
    deliver_by: Option<Timestamp>,
    max_age: Duration,
) -> Result<(), ErrorCode> {
    admission::check_time(now, &ForgottenUpto::at(now), send_deadline, deliver_by, max_age)
}
