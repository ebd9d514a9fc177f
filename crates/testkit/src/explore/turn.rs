//! Two messages of one conversation, one agent, its turns.
//!
//! The agent lives several times: a life dies at any moment, or goes on unaware that its lease ran out while the next
//! one is at work. Answers are lost on their way. A person may name a message that was given up.
//!
//! - Whether a turn begins, is lost, is ended and what an interrupted message waits for is decided by the rules of
//!   [`model::turn`] alone.
//! - A commit and its answer are one step unless the answer is lost, or a plant gives it first.

mod check;
mod plants;
mod state;
mod steps;

pub use check::INVARIANTS;
pub use plants::{plants, runs};

use model::Timestamp;
use model::turn::{self, Asking, Beginning, EndVerdict, NoTurn, TurnMark, TurnState};

use super::{Edges, World};
use state::State;

/// How much may happen in a world.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Times a life of the agent ends.
    pub deaths: u8,
    /// Times an answer is lost.
    pub lost_answers: u8,
    /// Times a lease runs out while its holder lives.
    pub late: u8,
    /// Times a person names a message that was given up.
    pub names: u8,
}

/// Who decides, and what is done around it.
#[derive(Clone, Copy)]
pub struct Rules {
    /// [`turn::begin`]
    pub begin: fn(TurnMark, u32, Asking) -> Result<Beginning, NoTurn>,
    /// [`turn::interrupted`]
    pub interrupted: fn(u32) -> TurnMark,
    /// [`turn::is_lost`]
    pub is_lost: fn(&TurnState, Timestamp) -> bool,
    /// [`turn::end`]
    pub end: fn(&TurnState, bool, bool) -> EndVerdict,
    /// A turn is a row before its agent hears of it.
    pub recorded_first: bool,
    /// An interruption is a fact of the turn it ended.
    pub interruption_recorded: bool,
    /// The end and its reply are one commit.
    pub reply_with_end: bool,
    /// A conversation's messages are handed out in order.
    pub in_order: bool,
    /// A lease whose holder is gone runs out.
    pub leases_end: bool,
}

/// A world within bounds, under rules.
#[derive(Clone, Copy)]
pub struct Turns {
    /// How much may happen.
    pub bounds: Bounds,
    /// Who decides.
    pub rules: Rules,
}

impl Rules {
    /// Nothing is planted.
    pub const REAL: Rules = Rules {
        begin: turn::begin,
        interrupted: turn::interrupted,
        is_lost: turn::is_lost,
        end: turn::end,
        recorded_first: true,
        interruption_recorded: true,
        reply_with_end: true,
        in_order: true,
        leases_end: true,
    };
}

impl World for Turns {
    type State = State;

    fn starts(&self) -> Vec<State> {
        vec![State::start(&self.bounds)]
    }

    fn next(&self, state: &State, edges: &mut Edges<State>) {
        self.begin_steps(state, edges);
        self.end_steps(state, edges);
        self.life_steps(state, edges);
    }

    fn broken(&self, state: &State, names: &mut Vec<&'static str>) {
        check::check(state, names);
    }

    fn is_end(&self, state: &State) -> bool {
        state.has_ended()
    }

    fn show(&self, state: &State) -> String {
        state.to_string()
    }
}
