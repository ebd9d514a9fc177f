//! The relay between real sockets: a fault-injecting upstream on one side, callers on the other.
#![expect(clippy::unwrap_used, reason = "a test that meets an error ends there, in its helpers too")]

mod bad_input;
mod canaries;
mod counterexamples;
mod explain;
mod faults;
mod keys;
mod operate;
mod others;
mod outages;
mod pass;
mod pauses;
mod stage;
mod tags;
mod upstream;
mod went_back;
