//! The broker's accept as verdicts: what the dedupe row says (B0), whether the time is right, and what
//! a question about an id is answered.
//!
//! - A dedupe row in state `accepted` exists exactly when the accept transaction committed.
//! - A retired id can never be accepted; retiring and accepting meet in one row, so one of them wins.

use std::time::Duration;

use crate::ageing::ForgottenUpto;
use crate::clock::Timestamp;
use crate::error::ErrorCode;
use crate::fingerprint::Fingerprint;
use crate::outbox::{BrokerReceipt, DedupeWindow};

/// What the dedupe table holds under (mesh, sender, id).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What was asked, or what was asked about when the id was retired.
    pub fingerprint: Fingerprint,
    /// What became of it.
    pub state: KnownState,
}

/// The state of a dedupe row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownState {
    /// The accept transaction committed.
    Accepted {
        /// Where.
        receipt: BrokerReceipt,
        /// Whether the message row still exists.
        history_available: bool,
    },
    /// A question fenced the id before any copy was accepted.
    Retired,
}

/// B0: the answer that needs no budget and no transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookUp {
    /// Nobody knows the id: go on.
    Absent,
    /// This very message was accepted.
    Duplicate {
        /// Where.
        receipt: BrokerReceipt,
        /// Whether the message row still exists.
        history_available: bool,
    },
    /// Another message was accepted under the id.
    Mismatch {
        /// What that one was.
        held: Fingerprint,
    },
    /// The id is retired.
    Retired,
}

/// Reads the dedupe row.
pub fn look_up(known: Option<&Known>, incoming: &Fingerprint) -> LookUp {
    match known {
        None => LookUp::Absent,
        Some(Known { state: KnownState::Retired, .. }) => LookUp::Retired,
        Some(Known { fingerprint, state: KnownState::Accepted { receipt, history_available } }) => {
            if fingerprint == incoming {
                LookUp::Duplicate { receipt: *receipt, history_available: *history_available }
            } else {
                LookUp::Mismatch { held: *fingerprint }
            }
        }
    }
}

/// Refuses a copy whose time is over. `send_deadline` is what the sender's node promised; it cannot
/// reach past the broker's own bound. It protects ids that may be forgotten, so it is judged by those: a
/// clock that stands ahead for a while refuses no copy whose id is surely known.
pub fn check_time(
    now: Timestamp,
    forgotten: &ForgottenUpto,
    send_deadline: Option<Timestamp>,
    deliver_by: Option<Timestamp>,
    max_age: Duration,
) -> Result<(), ErrorCode> {
    let send_deadline = send_deadline.map(|deadline| deadline.min(now + max_age));
    if send_deadline.is_some_and(|deadline| forgotten.may_include_copy(deadline, max_age)) {
        Err(ErrorCode::SendDeadlinePassed)
    } else if deliver_by.is_some_and(|deliver_by| now >= deliver_by) {
        Err(ErrorCode::DeliverByPassed)
    } else {
        Ok(())
    }
}

/// The answer to `message_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusAnswer {
    /// This very message was accepted.
    Accepted(BrokerReceipt),
    /// Another message was accepted under the id, so this one never was.
    AcceptedOtherFingerprint,
    /// The id was retired before.
    Retired,
    /// No copy was accepted; with a fence none ever will be.
    Absent,
    /// The window may have passed since the first attempt: nobody can tell.
    Unknown,
}

/// Answers `message_status` from the dedupe row. An id first tried a whole window ago may have been
/// accepted and forgotten.
pub fn message_status(
    known: Option<&Known>,
    asked: &Fingerprint,
    first_attempt_at: Timestamp,
    window: DedupeWindow,
    now: Timestamp,
) -> StatusAnswer {
    match look_up(known, asked) {
        LookUp::Duplicate { receipt, .. } => StatusAnswer::Accepted(receipt),
        LookUp::Mismatch { .. } => StatusAnswer::AcceptedOtherFingerprint,
        LookUp::Retired => StatusAnswer::Retired,
        LookUp::Absent => match window {
            DedupeWindow::Days(days) if now >= first_attempt_at + days_long(days) => StatusAnswer::Unknown,
            DedupeWindow::Days(_) | DedupeWindow::Permanent => StatusAnswer::Absent,
        },
    }
}

/// What a question with a fence does to the dedupe row, so that a no stays true for as long as a copy of the
/// row it was asked for may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// The id is retired: its row is new and lives for a window from now.
    Retire,
    /// The id is taken, but by something that may be forgotten first: its row lives for a window from now too.
    Keep,
    /// Nothing: no promise is made.
    Nothing,
}

/// Decides the fence of an answer.
pub const fn fence(answer: StatusAnswer) -> Fence {
    match answer {
        StatusAnswer::Absent => Fence::Retire,
        StatusAnswer::Retired | StatusAnswer::AcceptedOtherFingerprint => Fence::Keep,
        StatusAnswer::Accepted(_) | StatusAnswer::Unknown => Fence::Nothing,
    }
}

/// So many days.
pub const fn days_long(days: u32) -> Duration {
    Duration::from_secs(days as u64 * 24 * 3600)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ConversationId, MessageId};

    fn accepted(byte: u8) -> Known {
        let receipt = BrokerReceipt {
            broker_message_id: MessageId::from_bytes([byte; 16]),
            conversation: ConversationId::from_bytes([8; 16]),
            history_id: 1,
            accepted_at: Timestamp::from_micros(5),
        };
        Known {
            fingerprint: Fingerprint::from_bytes([byte; 32]),
            state: KnownState::Accepted { receipt, history_available: true },
        }
    }

    fn receipt_of(known: &Known) -> BrokerReceipt {
        match known.state {
            KnownState::Accepted { receipt, .. } => receipt,
            KnownState::Retired => panic!("the row is accepted"),
        }
    }

    #[test]
    fn the_dedupe_row_decides_in_every_cell() {
        let (one, two) = (Fingerprint::from_bytes([1; 32]), Fingerprint::from_bytes([2; 32]));
        let known = accepted(1);
        let retired = Known { fingerprint: one, state: KnownState::Retired };
        let duplicate = LookUp::Duplicate { receipt: receipt_of(&known), history_available: true };
        for (row, incoming, expected) in [
            (None, one, LookUp::Absent),
            (Some(&known), one, duplicate),
            (Some(&known), two, LookUp::Mismatch { held: one }),
            (Some(&retired), one, LookUp::Retired),
            (Some(&retired), two, LookUp::Retired),
        ] {
            assert_eq!(look_up(row, &incoming), expected);
        }
    }

    #[test]
    fn a_copy_past_its_deadline_is_refused_and_a_promise_cannot_outlast_the_brokers_bound() {
        let at = Timestamp::from_micros;
        let age = Duration::from_micros(100);
        let by_age = |borne_out| ForgottenUpto::at(at(borne_out));
        for (send_deadline, deliver_by, expected) in [
            (None, None, Ok(())),
            (Some(at(1001)), None, Ok(())),
            (Some(at(1000)), None, Err(ErrorCode::SendDeadlinePassed)),
            (Some(at(999)), Some(at(999)), Err(ErrorCode::SendDeadlinePassed)),
            (None, Some(at(1000)), Err(ErrorCode::DeliverByPassed)),
            (Some(at(i64::MAX)), Some(at(1001)), Ok(())),
        ] {
            assert_eq!(
                check_time(at(1000), &by_age(1000), send_deadline, deliver_by, age),
                expected,
                "{send_deadline:?} {deliver_by:?}"
            );
        }
        let in_doubt = check_time(at(1000), &by_age(400), Some(at(500)), None, age);
        assert_eq!(
            in_doubt,
            Ok(()),
            "a clock ahead of what is borne out refuses no copy that is surely known"
        );
        let never = check_time(at(1000), &by_age(1000), Some(at(i64::MAX)), None, Duration::ZERO);
        assert_eq!(never, Err(ErrorCode::SendDeadlinePassed), "the broker's own bound clamps the promise");
    }

    #[test]
    fn a_question_about_an_id_is_answered_in_every_cell() {
        let (one, two) = (Fingerprint::from_bytes([1; 32]), Fingerprint::from_bytes([2; 32]));
        let known = accepted(1);
        let retired = Known { fingerprint: one, state: KnownState::Retired };
        let first = Timestamp::from_micros(0);
        let inside = first + days_long(7) - 1;
        let after = first + days_long(7);
        for (row, asked, now, expected) in [
            (Some(&known), one, after, StatusAnswer::Accepted(receipt_of(&known))),
            (Some(&known), two, inside, StatusAnswer::AcceptedOtherFingerprint),
            (Some(&retired), one, inside, StatusAnswer::Retired),
            (None, one, inside, StatusAnswer::Absent),
            (None, one, after, StatusAnswer::Unknown),
        ] {
            assert_eq!(message_status(row, &asked, first, DedupeWindow::Days(7), now), expected);
        }
        let permanent = message_status(None, &one, first, DedupeWindow::Permanent, after);
        assert_eq!(permanent, StatusAnswer::Absent, "a broker that never forgets always knows");
    }

    #[test]
    fn a_no_is_fenced_and_nothing_else_is() {
        for (answer, expected) in [
            (StatusAnswer::Accepted(receipt_of(&accepted(1))), Fence::Nothing),
            (StatusAnswer::AcceptedOtherFingerprint, Fence::Keep),
            (StatusAnswer::Retired, Fence::Keep),
            (StatusAnswer::Absent, Fence::Retire),
            (StatusAnswer::Unknown, Fence::Nothing),
        ] {
            assert_eq!(fence(answer), expected, "{answer:?}");
        }
    }

    impl std::ops::Sub<i64> for Timestamp {
        type Output = Timestamp;
        fn sub(self, micros: i64) -> Timestamp {
            Timestamp::from_micros(self.as_micros() - micros)
        }
    }
}
