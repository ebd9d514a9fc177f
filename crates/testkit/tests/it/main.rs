//! The equipment itself: it must hold what the tests that use it take for granted.

#![expect(clippy::unwrap_used, reason = "a test that meets an error ends there, with the error")]

mod driver;
mod explore;
mod history;
mod postgres;
mod process;
mod redis;
mod wait;
