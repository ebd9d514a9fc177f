//! Two writes of one resource on their way from a relay to its hub, and a successor of the first.
//!
//! The relay forwards them live or parks them, replays them, asks the hub about their keys before it lets one end, and
//! crashes. Copies are delayed and overtake each other; a third party writes at the hub; the hub refuses for a while,
//! and forgets keys; an operator cancels or retries; a write that cannot be parked passes by.
//!
//! - What an answer does to an envelope is decided by [`model::relay`], what a copy does at the hub by
//!   [`model::hub`].
//! - A day matters only where a rule compares with thirteen or fourteen of them, so a tick is six and a half.

mod check;
mod hub;
mod people;
mod plants;
mod relay;
mod state;

pub use check::INVARIANTS;
pub use plants::{plants, runs};

use model::hub as hub_rules;
use model::hub::{KeyAnswer, KeyVerdict, KnownKey};
use model::relay::{self as relay_rules, Answer, Ending, Fenced, Move, Outcome, Retry, Status};
use model::{Fingerprint, Timestamp};

use super::{Edges, World};
use state::State;

/// How much may happen in a world.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// What the writes do.
    pub writes: Writes,
    /// Ticks of six and a half days.
    pub ticks: u8,
    /// Times the relay's process dies.
    pub crashes: u8,
    /// Writes of somebody else.
    pub third_party: u8,
    /// Times the hub begins or ends to refuse everything new.
    pub refusals: u8,
    /// What an operator may do, once.
    pub operator: bool,
    /// Whether a write that cannot be parked comes by.
    pub passing: bool,
    /// How long a copy may be under way.
    pub net: Net,
}

/// See [`Bounds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Each adds something: no precondition.
    Append,
    /// Each changes what the caller had seen.
    Replace,
}

/// See [`Bounds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Net {
    /// Well under a day.
    Bounded,
    /// For ever.
    Endless,
}

/// Who decides, and what is done around it.
#[derive(Clone, Copy)]
pub struct Rules {
    /// [`model::relay::settle`]
    pub settle: fn(Status, bool, Outcome, Answer) -> Move,
    /// [`model::relay::conclude`]
    pub conclude: fn(Ending, Fenced) -> (Status, Outcome),
    /// [`model::relay::retry`]
    pub retry: fn(Status, Outcome, bool) -> Retry,
    /// [`model::hub::look_up`]
    pub look_up: fn(Option<&KnownKey>, &Fingerprint) -> KeyVerdict,
    /// [`model::hub::key_status`]
    pub key_status: fn(Option<&KnownKey>, Option<Timestamp>, Timestamp) -> KeyAnswer,
    /// [`model::hub::is_too_old`]
    pub is_too_old: fn(Option<Timestamp>, Timestamp) -> bool,
    /// Whether an envelope is on the disk before it leaves, and before its caller has a receipt.
    pub write_ahead: bool,
    /// Whether a relay replays an envelope only while it is young enough.
    pub age_rule: bool,
    /// Whether an answer is matched with the attempt it is for.
    pub leases: bool,
    /// Whether the first live attempt carries the precondition.
    pub precondition_on_live: bool,
    /// Whether a chain whose predecessor did not commit keeps its own precondition.
    pub chain_falls_back: bool,
    /// Whether a question about a key retires it.
    pub fence: bool,
    /// Whether an envelope that waits for the hub's word holds its resource.
    pub asking_holds: bool,
    /// Whether envelopes of one resource go one after another.
    pub in_order: bool,
    /// Whether a conflict holds up later changes of its resource.
    pub conflict_holds: bool,
    /// Whether the hub records a key together with its effect.
    pub key_with_effect: bool,
    /// Whether a write that cannot be parked is refused while others wait.
    pub passing_waits: bool,
    /// Whether it carries what was last seen.
    pub passing_precondition: bool,
}

/// A world within bounds, under rules.
#[derive(Clone, Copy)]
pub struct Envelope {
    /// How much may happen.
    pub bounds: Bounds,
    /// Who decides.
    pub rules: Rules,
}

impl Rules {
    /// Nothing is planted.
    pub const REAL: Rules = Rules {
        settle: relay_rules::settle,
        conclude: relay_rules::conclude,
        retry: relay_rules::retry,
        look_up: hub_rules::look_up,
        key_status: hub_rules::key_status,
        is_too_old: hub_rules::is_too_old,
        write_ahead: true,
        age_rule: true,
        leases: true,
        precondition_on_live: true,
        chain_falls_back: true,
        fence: true,
        asking_holds: true,
        in_order: true,
        conflict_holds: true,
        key_with_effect: true,
        passing_waits: true,
        passing_precondition: true,
    };
}

impl World for Envelope {
    type State = State;

    fn starts(&self) -> Vec<State> {
        vec![State::start(&self.bounds)]
    }

    fn next(&self, state: &State, edges: &mut Edges<State>) {
        self.caller_steps(state, edges);
        for row in 0..state.rows.len() {
            self.relay_steps(state, row, edges);
            self.hub_steps(state, row, edges);
        }
        self.passing_steps(state, edges);
        self.operator_steps(state, edges);
        self.fault_steps(state, edges);
    }

    fn broken(&self, state: &State, names: &mut Vec<&'static str>) {
        self.check(state, names);
    }

    fn is_end(&self, state: &State) -> bool {
        state.has_ended()
    }

    fn show(&self, state: &State) -> String {
        state.to_string()
    }
}
