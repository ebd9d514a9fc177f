//! Broken variants of single rules.

use std::time::Duration;

use model::admission::{self, Fence, Known, KnownState, LookUp, StatusAnswer};
use model::ageing::ForgottenUpto;
use model::operator::{self, Asking, Doubt, Finality, Requeue, Untouchable, Word};
use model::outbox::{
    self, Answer, Claim, DedupeWindow, Found, Move, OutboxState, Outcome, Patience, Redrive, Status, Verdict,
};
use model::{ErrorCode, Fingerprint, Timestamp};

/// An aborted row's id may be used again.
pub(super) fn decide_frees_aborted(found: Option<&Found>, incoming: &Fingerprint) -> Verdict {
    let aborted = found.is_some_and(|found| found.state.status() == Status::Aborted);
    outbox::decide(found.filter(|_| !aborted), incoming)
}

/// The door looks at the id alone.
pub(super) fn decide_by_id(found: Option<&Found>, _: &Fingerprint) -> Verdict {
    let held = found.map_or(Fingerprint::from_bytes([0; 32]), |found| found.fingerprint);
    outbox::decide(found, &held)
}

/// Whoever gives up for age says that nothing was sent.
pub(super) fn claim_forgets_attempts(
    first: Option<Timestamp>,
    deliver_by: Option<Timestamp>,
    now: Timestamp,
    max_age: Duration,
) -> Claim {
    match outbox::claim(first, deliver_by, now, max_age) {
        Claim::GiveUp(reason, _) => Claim::GiveUp(reason, Outcome::NotSent),
        go @ Claim::Go { .. } => go,
    }
}

/// A refusal counts as proof that nothing was accepted.
pub(super) fn settle_believes_refusals(
    status: Status,
    holds_lease: bool,
    answer: Answer,
    patience: Patience,
) -> Move {
    match outbox::settle(status, holds_lease, answer, patience) {
        Move::Bury(reason, _) => Move::Bury(reason, Outcome::NotAccepted),
        other => other,
    }
}

/// A retired id counts as proof that this row was not accepted.
pub(super) fn settle_believes_retired(
    status: Status,
    holds_lease: bool,
    answer: Answer,
    patience: Patience,
) -> Move {
    match (outbox::settle(status, holds_lease, answer, patience), answer) {
        (Move::Bury(reason, _), Answer::Refused(ErrorCode::IdRetired)) => {
            Move::Bury(reason, Outcome::NotAccepted)
        }
        (other, _) => other,
    }
}

/// A spent budget is taken for a refusal for good.
pub(super) fn settle_buries_rate_limited(
    status: Status,
    holds_lease: bool,
    answer: Answer,
    patience: Patience,
) -> Move {
    let answer = match answer {
        Answer::Refused(ErrorCode::RateLimited) => Answer::Refused(ErrorCode::InvalidRequest),
        other => other,
    };
    outbox::settle(status, holds_lease, answer, patience)
}

/// Whoever brings a refusal may record it.
pub(super) fn settle_without_lease(status: Status, _: bool, answer: Answer, patience: Patience) -> Move {
    outbox::settle(status, true, answer, patience)
}

/// A row driven again is as new.
pub(super) fn redrive_as_new(
    accepted_at: Timestamp,
    deliver_by: Option<Timestamp>,
    now: Timestamp,
    max_age: Duration,
) -> Redrive {
    match outbox::redrive(accepted_at, deliver_by, now, max_age) {
        Redrive::Again { .. } => Redrive::Again { first_attempt_at: now },
        Redrive::Leave => Redrive::Leave,
    }
}

/// The books are read by id alone.
pub(super) fn look_up_by_id(known: Option<&Known>, incoming: &Fingerprint) -> LookUp {
    let known = known.map(|known| Known { fingerprint: *incoming, ..*known });
    admission::look_up(known.as_ref(), incoming)
}

/// A copy's deadline is not looked at.
pub(super) fn check_time_without_send_deadline(
    now: Timestamp,
    _: Option<Timestamp>,
    deliver_by: Option<Timestamp>,
    max_age: Duration,
) -> Result<(), ErrorCode> {
    admission::check_time(now, &ForgottenUpto::at(now), None, deliver_by, max_age)
}

/// A message's own deadline is not looked at.
pub(super) fn check_time_without_deliver_by(
    now: Timestamp,
    send_deadline: Option<Timestamp>,
    _: Option<Timestamp>,
    max_age: Duration,
) -> Result<(), ErrorCode> {
    admission::check_time(now, &ForgottenUpto::at(now), send_deadline, None, max_age)
}

/// A question about an id is answered whatever the words were.
pub(super) fn status_by_id(
    known: Option<&Known>,
    asked: &Fingerprint,
    first: Timestamp,
    window: DedupeWindow,
    now: Timestamp,
) -> StatusAnswer {
    let known = known.map(|known| Known { fingerprint: *asked, ..*known });
    admission::message_status(known.as_ref(), asked, first, window, now)
}

/// What the broker forgot never was.
pub(super) fn status_without_window(
    known: Option<&Known>,
    asked: &Fingerprint,
    first: Timestamp,
    _: DedupeWindow,
    now: Timestamp,
) -> StatusAnswer {
    admission::message_status(known, asked, first, DedupeWindow::Permanent, now)
}

/// A retired id is not told apart from one nobody knows, so it is asked about again and again.
pub(super) fn look_up_forgets_retired(known: Option<&Known>, incoming: &Fingerprint) -> LookUp {
    let known = known.filter(|known| known.state != KnownState::Retired);
    admission::look_up(known, incoming)
}

/// A question leaves no trace.
pub(super) fn fence_nothing(_: StatusAnswer) -> Fence {
    Fence::Nothing
}

/// A question retires what nobody knows, and trusts the rest to be there for long.
pub(super) fn fence_absent_only(answer: StatusAnswer) -> Fence {
    match admission::fence(answer) {
        Fence::Keep => Fence::Nothing,
        fence @ (Fence::Retire | Fence::Nothing) => fence,
    }
}

/// Nobody needs to be asked.
pub(super) fn asking_nobody(state: &OutboxState, _: Option<Timestamp>) -> Result<Asking, Untouchable> {
    operator::asking(state, None)
}

/// See [`asking_nobody`].
pub(super) fn requeue_asking_nobody(
    state: &OutboxState,
    first: Option<Timestamp>,
    _: Word,
    _: Doubt,
) -> Result<Requeue, Untouchable> {
    operator::requeue(state, first, Word::Silence, Doubt::Force)
}

/// A row on the wire is a row like others.
pub(super) fn asking_on_the_wire(
    state: &OutboxState,
    first: Option<Timestamp>,
) -> Result<Asking, Untouchable> {
    operator::asking(off_the_wire(state), first)
}

/// See [`asking_on_the_wire`].
pub(super) fn requeue_on_the_wire(
    state: &OutboxState,
    first: Option<Timestamp>,
    word: Word,
    doubt: Doubt,
) -> Result<Requeue, Untouchable> {
    operator::requeue(off_the_wire(state), first, word, doubt)
}

fn off_the_wire(state: &OutboxState) -> &OutboxState {
    match state {
        OutboxState::Inflight { .. } => &OutboxState::Pending,
        OutboxState::Pending
        | OutboxState::Done { .. }
        | OutboxState::Dead { .. }
        | OutboxState::Aborted { .. } => state,
    }
}

/// A broker that may have forgotten is taken for one that never knew.
pub(super) fn requeue_without_force(
    state: &OutboxState,
    first: Option<Timestamp>,
    word: Word,
    _: Doubt,
) -> Result<Requeue, Untouchable> {
    operator::requeue(state, first, word, Doubt::Force)
}

/// Silence is taken for a no.
pub(super) fn requeue_on_silence(
    state: &OutboxState,
    first: Option<Timestamp>,
    word: Word,
    doubt: Doubt,
) -> Result<Requeue, Untouchable> {
    let word = match word {
        Word::Silence => Word::Told(StatusAnswer::Absent),
        told @ Word::Told(_) => told,
    };
    operator::requeue(state, first, word, doubt)
}

/// An aborted row counts as never sent.
pub(super) fn abort_forgets_attempts(
    state: &OutboxState,
    _: Option<Timestamp>,
) -> Result<Outcome, Untouchable> {
    operator::abort(state, None)
}

/// A successor leaves at once.
pub(super) fn waits_for_nobody(_: Outcome, _: Finality) -> bool {
    false
}

/// A successor is never retired.
pub(super) fn retires_nobody(_: Status, _: Option<Timestamp>, _: bool) -> bool {
    false
}
