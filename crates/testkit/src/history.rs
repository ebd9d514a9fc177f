//! The client-side history of a run, and what must hold in it.
//!
//! Invariants:
//! - Clients write it (drivers, fake agents, fake webhook receivers), servers never do.
//! - One `write` per line, so a client that is killed leaves whole lines and at most one torn last one.
//! - A call whose end nobody saw is `info` for ever: it may or may not have happened, and both are legal.
//! - Times are compared within one `proc` only; clocks of different processes are never compared.

mod check;
mod event;
mod record;
pub mod sample;

pub use check::{Broken, Verdict, check};
pub use event::{Act, Event, MessageKey, Outcome};
pub use record::{Recorder, read, read_folder};
