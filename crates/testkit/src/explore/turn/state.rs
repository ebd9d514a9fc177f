//! Everything there is to know of such a world at one moment.

use std::fmt;

use model::Timestamp;
use model::turn::{TurnMark, TurnOutcome, TurnState};

use super::Bounds;

/// Messages of the one conversation.
pub(super) const MESSAGES: usize = 2;
/// Lives that may be at work at once: the present one, and one that does not know that its lease ran out.
pub(super) const LIVES: usize = 2;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) messages: [Message; MESSAGES],
    /// Work in the hands of each life.
    pub(super) hands: [Option<Work>; LIVES],
    /// Whether the open turn's lease ran out.
    pub(super) late: bool,
    pub(super) left: Left,
    /// Whether a later message was begun while an earlier one still waited.
    pub(super) overtaken: bool,
    /// Whether a turn was taken from a living holder within its lease.
    pub(super) taken: bool,
}

/// A row of the inbox with its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Message {
    pub(super) mark: TurnMark,
    /// Turns recorded.
    pub(super) attempts: u8,
    /// A bit per attempt that was interrupted, from the second bit on.
    pub(super) interrupted: u8,
    /// The attempt that ended it.
    pub(super) ended: Option<u8>,
    /// Replies in the outbox.
    pub(super) replies: u8,
    /// Attempts that began without anybody naming the message.
    pub(super) unasked: u8,
    /// What agents saw: attempts handed out without a mark, and reruns before an interruption.
    pub(super) unmarked: u8,
    pub(super) rushed: bool,
}

/// A turn in somebody's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Work {
    pub(super) message: u8,
    pub(super) attempt: u8,
    /// Its end was committed, and the answer lost: it is asked for again.
    pub(super) asked_end: bool,
    /// Its reply is still to be committed (planted).
    pub(super) reply_due: bool,
}

/// Faults not yet used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Left {
    pub(super) deaths: u8,
    pub(super) lost_answers: u8,
    pub(super) late: u8,
    pub(super) names: u8,
}

/// Before the lease's end, and after it.
pub(super) const EARLY: Timestamp = Timestamp::from_micros(1);
pub(super) const LEASE: Timestamp = Timestamp::from_micros(2);
pub(super) const LATE: Timestamp = Timestamp::from_micros(3);

impl State {
    pub(super) fn start(bounds: &Bounds) -> State {
        let message = Message {
            mark: TurnMark::Waiting,
            attempts: 0,
            interrupted: 0,
            ended: None,
            replies: 0,
            unasked: 0,
            unmarked: 0,
            rushed: false,
        };
        State {
            messages: [message; MESSAGES],
            hands: [None; LIVES],
            late: false,
            left: Left {
                deaths: bounds.deaths,
                lost_answers: bounds.lost_answers,
                late: bounds.late,
                names: bounds.names,
            },
            overtaken: false,
            taken: false,
        }
    }

    /// The message whose turn is open.
    pub(super) fn open(&self) -> Option<usize> {
        self.messages.iter().position(|message| message.mark == TurnMark::Open)
    }

    /// Whether some life works on this message's newest attempt.
    pub(super) fn is_held(&self, message: usize) -> bool {
        let newest = self.messages[message].attempts;
        self.hands.iter().flatten().any(|work| usize::from(work.message) == message && work.attempt == newest)
    }

    /// What time it is for the open turn.
    pub(super) fn now(&self) -> Timestamp {
        if self.late { LATE } else { EARLY }
    }

    pub(super) fn has_ended(&self) -> bool {
        let over = |message: &Message| matches!(message.mark, TurnMark::Over | TurnMark::GivenUp);
        self.messages.iter().all(over) && self.hands.iter().all(Option::is_none)
    }
}

impl Message {
    /// Where one of its attempts stands.
    pub(super) fn turn(&self, attempt: u8) -> TurnState {
        if self.ended == Some(attempt) {
            return TurnState::Ended { outcome: TurnOutcome::Processed, at: EARLY };
        }
        if self.interrupted & (1 << attempt) != 0 {
            return TurnState::Interrupted { at: EARLY };
        }
        TurnState::Open { lease_until: LEASE }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, message) in self.messages.iter().enumerate() {
            let Message { mark, attempts, replies, unmarked, .. } = message;
            write!(f, "message {place}: {mark}, {attempts} turns, {unmarked} unmarked, {replies} replies; ")?;
        }
        let at_work = self.hands.iter().flatten().count();
        write!(f, "{at_work} at work")
    }
}
