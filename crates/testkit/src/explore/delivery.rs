//! One accepted message on its way to one recipient, and the receipts on their way back.
//!
//! The broker's window pushes it, the recipient's node records it once and acks, its rungs climb and are told to
//! the broker, and the broker tells the sender's node. Links break at any moment and take with them whatever is on
//! them; the message's own deadline passes; the recipient's node cannot store it, prunes it, or loses its file.
//!
//! - Whether a rung is news is decided by [`model::receipt::rise`] everywhere: at the broker, in the inbox and in
//!   the sender's outbox.
//! - Acks and receipts may overtake each other.

mod check;
mod plants;
mod state;
mod steps;

pub use check::INVARIANTS;
pub use plants::{plants, runs};

use model::DeliveryRung;
use model::receipt;

use super::{Edges, World};
use state::State;

/// How much may happen in a world.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Times a link breaks.
    pub breaks: u8,
    /// Whether the message's deadline may pass.
    pub deadline: bool,
    /// Whether the recipient's node may be unable to store it.
    pub poison: bool,
    /// Times the inbox file is set aside for a new one.
    pub resets: u8,
}

/// Who decides, and what is done around it.
#[derive(Clone, Copy)]
pub struct Rules {
    /// [`receipt::rise`]
    pub rise: fn(DeliveryRung, DeliveryRung) -> Option<DeliveryRung>,
    /// An ack leaves after the inbox committed.
    pub ack_after_commit: bool,
    /// A message that is there already is acked again.
    pub acks_duplicates: bool,
    /// On connect, rungs the broker has not confirmed are told again.
    pub repeats_acks: bool,
    /// A pruned row leaves its id behind.
    pub keeps_tombstones: bool,
    /// After a reset, what may have been there before is marked.
    pub marks_redelivered: bool,
    /// A receipt is acked after the sender's outbox committed.
    pub receipt_after_commit: bool,
}

/// A world within bounds, under rules.
#[derive(Clone, Copy)]
pub struct Delivery {
    /// How much may happen.
    pub bounds: Bounds,
    /// Who decides.
    pub rules: Rules,
}

impl Rules {
    /// Nothing is planted.
    pub const REAL: Rules = Rules {
        rise: receipt::rise,
        ack_after_commit: true,
        acks_duplicates: true,
        repeats_acks: true,
        keeps_tombstones: true,
        marks_redelivered: true,
        receipt_after_commit: true,
    };
}

impl World for Delivery {
    type State = State;

    fn starts(&self) -> Vec<State> {
        vec![State::start(&self.bounds)]
    }

    fn next(&self, state: &State, edges: &mut Edges<State>) {
        self.broker_steps(state, edges);
        self.recipient_steps(state, edges);
        self.sender_steps(state, edges);
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
