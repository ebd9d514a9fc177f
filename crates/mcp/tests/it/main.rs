//! The tools as a client of the official SDK meets them, over a daemon that does as it is told.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by ending")]

mod http;
mod scene;
mod tools;
mod trouble;
