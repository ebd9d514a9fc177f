//! One daemon put to the test: killed in every state of a row, away from its broker for days, with a broker that
//! flaps. A second daemon of the same mesh watches what arrives and sends what must be kept.
//!
//! Invariants:
//! - What is judged is what callers were answered, what the logs hold and what the inbox hands out.
//! - A row's state is brought about by what brings it about in life: a broker that stands still, that is away, that
//!   refuses. Nothing is written into a store from outside.
//! - Crash points are learned from the binary itself, state by state.

pub mod cells;
pub mod days;
pub mod flaps;
mod log;
mod site;

use crate::fleet::FleetError;
use crate::fleet::servers::Node;
use crate::wait::wait_for;
use std::time::Duration;

pub(super) use log::of_topic;

/// Whatever waits is carried within this, on a busy machine.
const CARRY_BOUND: Duration = Duration::from_secs(90);

/// Waits until nothing of these homes waits.
pub(super) fn await_empty(nodes: &[&Node]) -> Result<(), FleetError> {
    for node in nodes {
        let mut door = node.door();
        let empty = || {
            let counts = door.get("/v1/outbox?limit=1").ok()?.body["counts"].clone();
            (counts["pending"] == 0 && counts["inflight"] == 0).then_some(())
        };
        wait_for("an outbox without waiting rows", CARRY_BOUND, empty)?;
    }
    Ok(())
}
