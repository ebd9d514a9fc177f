//! The agent's door: tools of the Model Context Protocol, spoken over stdin and stdout or at `/mcp`, carried out
//! through the daemon's local door.
//!
//! Invariants
//! - Nothing is kept here: every call asks the daemon, so a server that dies or is started twice loses nothing.
//! - A call that writes names its own id; the daemon answers a repeated one from the first.
//! - A result states a rung and what it means, and claims no higher one.
//! - Whoever calls over HTTP acts with its own credential; this crate has none of its own to lend.
//! - Every wait is bounded below the time after which common clients give up, and ends when the client does.
//! - What members wrote is handed over as data; nothing in it becomes an instruction of this server.
//!
//! Absent on purpose: SQL, sessions, retries of a write, and everything that only an operator may do.

mod door;
mod http;
mod server;
mod stdio;
mod told;
mod tools;

pub use door::Door;
pub use http::{PATH, router};
pub use server::Server;
pub use stdio::{ServeError, serve};
pub use tools::ToolKind;
