//! What must hold in a history. Numbers I1, I2, I6 and I7 are those of the list of invariants in `docs/proof/`.
//!
//! Everything here is one pass or a sort, so a history of millions of events is checked in seconds.

mod calls;
mod views;

use super::{Event, MessageKey};
use calls::Calls;
use std::fmt;
use views::Views;

/// What the history says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Messages whose send was answered with "it happened".
    pub acked: u64,
    /// Messages about whose send nobody knows.
    pub indeterminate: u64,
    /// Messages refused in every call.
    pub refused: u64,
    /// Rows that readers and inboxes showed.
    pub seen: u64,
    /// Everything that must not be.
    pub broken: Vec<Broken>,
}

/// One thing that must not be, with enough to find it in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// I1: acknowledged, and neither seen nor listed in a terminal state with its cause.
    Lost {
        /// The message.
        key: MessageKey,
        /// The reader that did not see it; none when nobody did.
        reader: Option<String>,
    },
    /// I2: one reader saw it more than once.
    Doubled {
        /// The message.
        key: MessageKey,
        /// The reader.
        reader: String,
        /// How often.
        times: u64,
    },
    /// I2: one message has two places.
    TwoPlaces {
        /// The message.
        key: MessageKey,
        /// Conversation and seq, each.
        places: [(String, u64); 2],
    },
    /// I2: a row came without a cursor to resume from.
    NoCursor {
        /// The message.
        key: MessageKey,
        /// The reader.
        reader: String,
    },
    /// I6: one id names two fingerprints.
    Rebound {
        /// The message.
        key: MessageKey,
        /// Both.
        fingerprints: [String; 2],
    },
    /// I7: one place holds two messages.
    SharedPlace {
        /// The conversation.
        conv: String,
        /// The place.
        seq: u64,
        /// Both.
        keys: [MessageKey; 2],
    },
    /// I7: a reader of the log skipped rows.
    Gap {
        /// The reader.
        reader: String,
        /// The conversation.
        conv: String,
        /// The last row before the gap.
        after: u64,
        /// The first row behind it.
        next: u64,
    },
    /// I7: a reader saw a row after a later one.
    Backwards {
        /// The reader.
        reader: String,
        /// The conversation.
        conv: String,
        /// The row it had seen.
        after: u64,
        /// The earlier row it saw then.
        next: u64,
    },
    /// I7: a message got its place before one that its sender had seen acknowledged before sending it.
    Overtaken {
        /// Acknowledged first.
        earlier: MessageKey,
        /// Sent afterwards, placed before it.
        later: MessageKey,
    },
    /// Seen, but nobody sent it, or every call was refused.
    Forged {
        /// The message.
        key: MessageKey,
        /// The reader.
        reader: String,
    },
}

/// Judges a history; events of one `proc` must be in the order it wrote them.
pub fn check(events: &[Event]) -> Verdict {
    let calls = Calls::of(events);
    let views = Views::of(events);
    let mut verdict = calls.count();
    verdict.seen = views.seen();
    verdict.broken.extend(calls.lost(&views));
    verdict.broken.extend(views.repeated());
    verdict.broken.extend(calls.rebound());
    verdict.broken.extend(views.disordered());
    verdict.broken.extend(calls.overtaken(&views));
    verdict.broken.extend(calls.forged(&views));
    verdict
}

impl Verdict {
    /// True when nothing is broken.
    pub fn holds(&self) -> bool {
        self.broken.is_empty()
    }

    /// How many were lost: not there at all, or skipped by a reader.
    pub fn lost(&self) -> u64 {
        self.count_if(|broken| matches!(broken, Broken::Lost { .. } | Broken::Gap { .. }))
    }

    /// How many came more than once.
    pub fn doubled(&self) -> u64 {
        self.count_if(|broken| matches!(broken, Broken::Doubled { .. } | Broken::TwoPlaces { .. }))
    }

    fn count_if(&self, of_kind: impl Fn(&Broken) -> bool) -> u64 {
        self.broken.iter().filter(|broken| of_kind(broken)).count() as u64
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { key, reader: None } => write!(out, "lost: {key} was acknowledged and is nowhere"),
            Self::Lost { key, reader: Some(reader) } => write!(out, "lost: {key} never reached {reader}"),
            Self::Doubled { key, reader, times } => write!(out, "doubled: {reader} saw {key} {times} times"),
            Self::TwoPlaces { key, places: [(conv_a, seq_a), (conv_b, seq_b)] } => {
                write!(out, "doubled: {key} stands at {conv_a}:{seq_a} and at {conv_b}:{seq_b}")
            }
            Self::NoCursor { key, reader } => write!(out, "no cursor: {reader} got {key} without one"),
            Self::Rebound { key, fingerprints: [first, second] } => {
                write!(out, "rebound: {key} names {first} and {second}")
            }
            Self::SharedPlace { conv, seq, keys: [first, second] } => {
                write!(out, "shared place: {conv}:{seq} holds {first} and {second}")
            }
            Self::Gap { reader, conv, after, next } => {
                write!(out, "gap: {reader} went from {conv}:{after} to {next}")
            }
            Self::Backwards { reader, conv, after, next } => {
                write!(out, "backwards: {reader} went from {conv}:{after} to {next}")
            }
            Self::Overtaken { earlier, later } => {
                write!(
                    out,
                    "overtaken: {later} was sent after {earlier} was acknowledged, and stands before it"
                )
            }
            Self::Forged { key, reader } => write!(out, "forged: {reader} saw {key}, which nobody sent"),
        }
    }
}
