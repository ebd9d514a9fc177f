//! Turns: an agent's work on one message, from `engaged` to `processed`.
//!
//! - A message has at most one attempt 1. Another attempt begins only after the one before was interrupted, and is
//!   marked `redelivered`.
//! - Unasked, an interrupted message is run once more; interrupted again, it waits for somebody who names it or puts
//!   it back in line.
//! - An agent has at most one open turn.
//! - An end is taken once. The same end again is answered from the first; another one is refused.
//! - A lease that ran out ends nothing by itself: the turn is its holder's until somebody else begins one.

use std::fmt;
use std::str::FromStr;

use crate::clock::Timestamp;
use crate::envelope::words;
use crate::error::Malformed;
use crate::limits;

/// Where a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TurnState {
    /// Under way, its holder's at least until then.
    Open {
        /// The lease.
        lease_until: Timestamp,
    },
    /// Its holder ended it.
    Ended {
        /// How.
        outcome: TurnOutcome,
        /// When.
        at: Timestamp,
    },
    /// Its holder lost it.
    Interrupted {
        /// When.
        at: Timestamp,
    },
}

/// How a holder ends its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TurnOutcome {
    /// The work is done.
    Processed,
    /// It went wrong, and that is the end of it.
    Failed,
}

/// What a message's turns have come to, as its inbox row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum TurnMark {
    /// No turn has begun.
    Waiting = 0,
    /// One is open.
    Open = 1,
    /// The last one was interrupted; it will be run again.
    Interrupted = 2,
    /// A turn was ended.
    Over = 3,
    /// Interrupted once too often; it is run again only for somebody who names it.
    GivenUp = 4,
}

words! { TurnOutcome "outcome" "processed or failed" { Processed "processed" Failed "failed" } }
words! { TurnMark "turn" "waiting, open, interrupted, over or given_up" {
    Waiting "waiting" Open "open" Interrupted "interrupted" Over "over" GivenUp "given_up"
} }

/// Whether a turn is asked for by its message's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Whatever comes next.
    Next,
    /// This very message.
    ByName,
}

/// A turn that may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// From 1.
    pub attempt: u32,
    /// Whether an earlier attempt may have had effects.
    pub redelivered: bool,
}

/// Why a message gets no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTurn {
    /// It has one.
    Open,
    /// It had one.
    Over,
    /// Only for somebody who names it.
    GivenUp,
}

/// What an asked end does to a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndVerdict {
    /// It ends the turn.
    End,
    /// It ended it before: the first answer stands.
    Replay,
    /// The turn was lost to somebody else's.
    Lost,
    /// It ended otherwise.
    Over,
}

/// Whether a message with this mark and so many attempts behind it gets a turn, and which.
pub const fn begin(mark: TurnMark, attempts: u32, asking: Asking) -> Result<Beginning, NoTurn> {
    match (mark, asking) {
        (TurnMark::Open, _) => Err(NoTurn::Open),
        (TurnMark::Over, _) => Err(NoTurn::Over),
        (TurnMark::GivenUp, Asking::Next) => Err(NoTurn::GivenUp),
        (TurnMark::Waiting | TurnMark::Interrupted, _) | (TurnMark::GivenUp, Asking::ByName) => {
            Ok(Beginning { attempt: attempts + 1, redelivered: attempts > 0 })
        }
    }
}

/// What a message whose attempt was interrupted waits for.
pub const fn interrupted(attempt: u32) -> TurnMark {
    if attempt <= limits::TURN_RERUNS_MAX { TurnMark::Interrupted } else { TurnMark::GivenUp }
}

/// What a message waits for when a person wants it run once more; only one that was given up has to be asked for.
/// Interrupted again, it is given up again.
pub const fn retry(mark: TurnMark) -> Result<TurnMark, TurnMark> {
    match mark {
        TurnMark::GivenUp => Ok(TurnMark::Interrupted),
        TurnMark::Waiting | TurnMark::Open | TurnMark::Interrupted | TurnMark::Over => Err(mark),
    }
}

/// Whether `now` takes an open turn from its holder, when somebody wants the next one.
pub fn is_lost(state: &TurnState, now: Timestamp) -> bool {
    match state {
        TurnState::Open { lease_until } => *lease_until <= now,
        TurnState::Ended { .. } | TurnState::Interrupted { .. } => false,
    }
}

/// What becomes of an asked end. `same` says whether it asks for what a first end asked for, `newest` whether no
/// later attempt has begun: until then the work of an interrupted turn is the only one there is, and counts.
pub const fn end(state: &TurnState, same: bool, newest: bool) -> EndVerdict {
    match (state, same, newest) {
        (TurnState::Open { .. }, _, _) | (TurnState::Interrupted { .. }, _, true) => EndVerdict::End,
        (TurnState::Interrupted { .. }, _, false) => EndVerdict::Lost,
        (TurnState::Ended { .. }, true, _) => EndVerdict::Replay,
        (TurnState::Ended { .. }, false, _) => EndVerdict::Over,
    }
}

impl TurnMark {
    /// The stored number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The mark stored as `code`.
    pub fn from_code(code: i64) -> Option<TurnMark> {
        TurnMark::ALL.iter().copied().find(|mark| i64::from(mark.code()) == code)
    }
}

impl TurnState {
    /// In a word: open, processed, failed or interrupted.
    pub const fn word(&self) -> &'static str {
        match self {
            TurnState::Open { .. } => "open",
            TurnState::Ended { outcome, .. } => outcome.word(),
            TurnState::Interrupted { .. } => "interrupted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_micros(100);
    const OPEN: TurnState = TurnState::Open { lease_until: AT };
    const INTERRUPTED: TurnState = TurnState::Interrupted { at: AT };
    const ENDED: TurnState = TurnState::Ended { outcome: TurnOutcome::Processed, at: AT };

    #[test]
    fn a_first_turn_is_unmarked_and_every_later_one_is_marked() {
        let first = Beginning { attempt: 1, redelivered: false };
        let again = |attempt| Beginning { attempt, redelivered: true };
        for (mark, attempts, next, by_name) in [
            (TurnMark::Waiting, 0, Ok(first), Ok(first)),
            (TurnMark::Open, 1, Err(NoTurn::Open), Err(NoTurn::Open)),
            (TurnMark::Interrupted, 1, Ok(again(2)), Ok(again(2))),
            (TurnMark::Over, 1, Err(NoTurn::Over), Err(NoTurn::Over)),
            (TurnMark::GivenUp, 2, Err(NoTurn::GivenUp), Ok(again(3))),
        ] {
            assert_eq!(begin(mark, attempts, Asking::Next), next, "{mark} {attempts}");
            assert_eq!(begin(mark, attempts, Asking::ByName), by_name, "{mark} {attempts}");
        }
    }

    #[test]
    fn an_interrupted_message_is_run_once_more_and_then_waits_for_a_person() {
        assert_eq!([1, 2, 3].map(interrupted), [TurnMark::Interrupted, TurnMark::GivenUp, TurnMark::GivenUp]);
    }

    #[test]
    fn only_what_was_given_up_is_asked_for_again() {
        for mark in TurnMark::ALL {
            let expected = if *mark == TurnMark::GivenUp { Ok(TurnMark::Interrupted) } else { Err(*mark) };
            assert_eq!(retry(*mark), expected, "{mark}");
        }
    }

    #[test]
    fn an_end_counts_until_another_attempt_has_begun_and_only_once() {
        for (state, same, newest, verdict) in [
            (OPEN, false, true, EndVerdict::End),
            (OPEN, true, true, EndVerdict::End),
            (INTERRUPTED, false, true, EndVerdict::End),
            (INTERRUPTED, true, true, EndVerdict::End),
            (INTERRUPTED, true, false, EndVerdict::Lost),
            (INTERRUPTED, false, false, EndVerdict::Lost),
            (ENDED, true, true, EndVerdict::Replay),
            (ENDED, true, false, EndVerdict::Replay),
            (ENDED, false, true, EndVerdict::Over),
            (ENDED, false, false, EndVerdict::Over),
        ] {
            assert_eq!(end(&state, same, newest), verdict, "{state:?} same {same} newest {newest}");
        }
    }

    #[test]
    fn only_an_open_turn_past_its_lease_can_be_taken() {
        let at = |micros| Timestamp::from_micros(micros);
        assert!(!is_lost(&OPEN, at(99)));
        assert!(is_lost(&OPEN, at(100)));
        assert!(!is_lost(&ENDED, at(1_000)) && !is_lost(&INTERRUPTED, at(1_000)));
    }

    #[test]
    fn marks_keep_their_numbers() {
        for (code, mark) in (0..).zip(TurnMark::ALL) {
            assert_eq!((i64::from(mark.code()), TurnMark::from_code(code)), (code, Some(*mark)));
        }
        assert_eq!(TurnMark::from_code(5), None);
    }
}
