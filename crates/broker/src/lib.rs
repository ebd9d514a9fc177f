//! The broker: the one place where "accepted" becomes true.
//!
//! Invariants:
//!
//! - Who asks is known before anything is looked up; a known id is answered before any budget is spent.
//! - The limiter only ever delays: a refusal is transient, and no fact depends on what the limiter remembers.

pub mod limiter;
