//! All there is to know at one moment.

use std::fmt;

use model::Timestamp;
use model::relay::{Ending, Outcome, Status};

use super::Bounds;

/// Microseconds of a tick: six and a half days.
const TICK_US: i64 = 13 * 12 * 3600 * 1_000_000;

/// The first write, the second, and what takes the first one's place.
pub(super) const FIRST: usize = 0;
pub(super) const SECOND: usize = 1;
pub(super) const SUCCESSOR: usize = 2;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) tick: u8,
    pub(super) rows: [Option<Row>; 3],
    /// The copy of the live attempt, and the newest of a replay.
    pub(super) live: [Option<Copy>; 3],
    pub(super) replay: [Option<Copy>; 3],
    pub(super) replies: [Option<Reply>; 3],
    pub(super) hub: Hub,
    /// The version the relay saw last.
    pub(super) seen: u8,
    pub(super) passing: Passing,
    pub(super) left: Left,
    /// Whether somebody accepted a possible double.
    pub(super) forced: bool,
    /// Whether the first write was withdrawn at some time.
    pub(super) withdrawn: bool,
    pub(super) wrong: Wrong,
}

/// An envelope.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) status: Status,
    pub(super) outcome: Outcome,
    /// How it is to end, once the hub was asked about its key.
    pub(super) ending: Option<Ending>,
    /// Whether a crash leaves it.
    pub(super) on_disk: bool,
    /// Whether its caller still waits for the live answer.
    pub(super) live: bool,
    /// Counts its attempts.
    pub(super) lease: u8,
    pub(super) born: u8,
    /// Writes of the third party that its caller may have known of.
    pub(super) third_known: u8,
    /// The version its caller had seen.
    pub(super) own: u8,
    /// Whether it waited behind the one before it.
    pub(super) chained: bool,
    /// What it was first sent with; it stays with it.
    pub(super) sent_with: Option<Condition>,
}

/// What a copy says must stand there.
pub(super) type Condition = Option<u8>;

/// A request under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Copy {
    pub(super) condition: Condition,
    pub(super) lease: u8,
    pub(super) sent: u8,
}

/// An answer under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Reply {
    pub(super) says: Says,
    pub(super) lease: u8,
}

/// See [`Reply`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Says {
    Committed { version: u8 },
    Conflict,
    Refused,
}

/// The hub's books.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Hub {
    pub(super) version: u8,
    pub(super) last: Writer,
    /// Writes of the third party so far.
    pub(super) third: u8,
    pub(super) keys: [Key; 3],
    /// How often each write was applied.
    pub(super) applied: [u8; 3],
    /// Which version each made last.
    pub(super) made: [u8; 3],
    pub(super) refuses: bool,
}

/// What a key is known for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Free,
    Stored { at: u8, version: u8 },
    Retired { at: u8 },
}

/// Who wrote last.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Writer {
    Nobody,
    Row(u8),
    Third,
    Passing,
}

/// The write that cannot be parked.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Passing {
    NotCome,
    UnderWay { condition: Condition, over_waiting: bool, later_applied: bool, sent: u8 },
    Over,
}

/// What may still go wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Left {
    pub(super) crashes: u8,
    pub(super) third_party: u8,
    pub(super) refusals: u8,
    pub(super) operator: bool,
}

/// What went wrong at the moment it did.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Wrong {
    pub(super) lost: bool,
    pub(super) overtaken: bool,
    pub(super) overwritten: bool,
    pub(super) resurrected: bool,
    pub(super) passed_by: bool,
    pub(super) passing_overwrote: bool,
}

impl State {
    pub(super) fn start(bounds: &Bounds) -> State {
        State {
            tick: 0,
            rows: [None; 3],
            live: [None; 3],
            replay: [None; 3],
            replies: [None; 3],
            hub: Hub {
                version: 1,
                last: Writer::Nobody,
                third: 0,
                keys: [Key::Free; 3],
                applied: [0; 3],
                made: [0; 3],
                refuses: false,
            },
            seen: 1,
            passing: if bounds.passing { Passing::NotCome } else { Passing::Over },
            left: Left {
                crashes: bounds.crashes,
                third_party: bounds.third_party,
                refusals: bounds.refusals,
                operator: bounds.operator,
            },
            forced: false,
            withdrawn: false,
            wrong: Wrong::default(),
        }
    }

    /// The instant of a tick.
    pub(super) fn instant(tick: u8) -> Timestamp {
        Timestamp::from_micros(i64::from(tick) * TICK_US)
    }

    pub(super) fn now(&self) -> Timestamp {
        State::instant(self.tick)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (row, applied) in self.rows.iter().zip(self.hub.applied) {
            match row {
                Some(row) => {
                    write!(f, "{} ({}), applied {applied} times; ", row.status.word(), row.outcome.word())?
                }
                None => write!(f, "-; ")?,
            }
        }
        write!(f, "version {}, tick {}", self.hub.version, self.tick)
    }
}
