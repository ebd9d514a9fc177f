//! The broker: the one place where "accepted" becomes true.
//!
//! | part | for |
//! |---|---|
//! | `wayin` | invite or challenge → exchange → ticket |
//! | `link` | a node's connection: negotiation, lanes, mail and receipts windows, questions |
//! | `accept` | door 2: known id → budget → the ledger's transaction → the answer |
//! | [`limiter`] | budgets per member and mesh |
//! | `webhook` | members whose deliveries are pushed to an endpoint |
//! | `ask` | what members may know and decide |
//! | `door` | the fabric door: guard and routes, and messages before them |
//! | `direct` | HTTP for callers with an API token and for browsers |
//! | `chat` | conversations followed live: WebSocket, events, long poll; what waits for an answer |
//! | `session` | a person's browser signs in |
//! | `page` | the page for people |
//! | `hub` | records of agents' work, each write applied once under its key |
//! | `explain` | where is it, and why |
//! | `janitor` | what ends by itself, and the audit of the books |
//! | `audit` | who was let in, what owners decided |
//! | `problems` | what an operator has to look at although the broker serves |
//!
//! Invariants:
//!
//! - Who asks is known before anything is looked up; a known id is answered before any budget is spent.
//! - The limiter only ever delays: a refusal is transient, and no fact depends on what the limiter remembers.
//! - Nothing in memory is authoritative: windows, registries and wakes may be lost at any instant, and what is
//!   unacknowledged comes again.
//! - Store first, then wake and answer.
//! - A link speaks for members at home on its node, under its own epoch, and for nobody else.

mod accept;
mod ask;
mod audit;
mod broker;
mod chat;
mod clock;
mod credential;
mod direct;
mod door;
mod explain;
mod health;
mod hub;
mod janitor;
pub mod limiter;
mod link;
mod message;
pub mod metrics;
mod openapi;
mod page;
mod problems;
mod session;
mod wayin;
mod webhook;

pub use audit::TARGET as AUDIT_TARGET;
pub use broker::{Broker, Config, Parts, StartError};
pub use door::Callers;
pub use janitor::check;
