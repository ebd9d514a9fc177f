//! The room's tests, in one binary.

#![expect(clippy::unwrap_used, reason = "a test that meets an error ends there, with the error")]

mod client;
mod door;
mod follow;
mod frames;
mod guards;
mod homes;
mod pass;
mod scene;
mod secure;
mod sockets;
