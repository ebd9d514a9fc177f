//! The tree as it stands, and the commands as they are called.

#![expect(clippy::unwrap_used, reason = "a test that meets an error ends there, with the error")]

mod commands;
mod lessons;
mod scenarios;
mod tree;
