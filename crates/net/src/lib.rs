//! Doors and links: everything between a socket and a service.
//!
//! | part | for |
//! |---|---|
//! | [`serve`] | the accept loop: bounds, timeouts that fire, a drain that ends |
//! | [`guard`] | what a request must be before a handler sees it |
//! | [`respond`] | the one shape of an answer and of a refusal |
//! | [`socket`] | a WebSocket with bounds, the same on both ends |
//! | [`follow`] | the one cursor loop: catch-up and live in one path |
//! | [`client`] | HTTP and WebSocket towards a door |
//! | [`handshake`] | keys, proofs and invites of the one way in |
//! | [`local`] | the lock and the Unix socket that make a process the one of its home |
//! | [`quiet`] | a Unix socket that does not wake who writes to it |
//! | [`tls`] | TLS at both ends |
//! | [`run_to_end`] | work that its caller's leaving does not cut off |
//!
//! Invariants:
//! - Nothing waits without a bound and nothing queues without one; the bounds are `model::limits`.
//! - A refusal is JSON with a code of `model::ErrorCode`, from the guards as from the handlers.
//! - A secret is a [`Secret`]: it has no way into a log line.
//! - This crate decides who may speak, never what is true: it knows no store.

mod alarm;
pub mod client;
pub mod follow;
pub mod guard;
pub mod handshake;
pub mod local;
pub mod quiet;
pub mod respond;
mod secret;
pub mod serve;
pub mod socket;
pub mod tls;
mod to_end;
mod watched;

pub use secret::{Secret, TokenHash};
pub use to_end::{RunToEnd, run_to_end};
