//! A home's daemon: the local door through which any process of this account sends and reads, the courier that
//! carries to each mesh's broker, the inbox that keeps what comes back, and the operator's acts.
//!
//! Invariants
//! - An operating-system lock decides which process is a home's daemon; a second one changes nothing.
//! - A send is answered after its row is durable, with or without a network.
//! - Rows leave only over a negotiated link, in the order they were accepted, one frame a lane.
//! - Mail is acked after it is durable, and again when it comes twice.
//! - One mesh's trouble (a refusal, a damaged file, a silent broker) stays its own.
//! - Every fact lives in the mailbox; what this crate holds in memory can be lost at any moment.
//!
//! Absent on purpose: SQL, retries of a caller's request, and any trust in the address a request claims to
//! come from.

mod attach;
mod courier;
mod disk;
mod events;
mod explain;
mod ground;
pub mod home;
mod inbox;
mod ipc;
mod join;
mod link;
mod machine;
mod mesh;
mod metrics;
mod notices;
mod operator;
mod prune;
mod questions;
mod recover;
mod refetch;
mod retention;
mod send;
pub mod settings;
mod start;
mod storage;
pub mod surroundings;
mod token;
mod turns;
mod view;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use model::{Clock, Entropy};
use net::handshake::Invite;
use sqlite::Stores;
use tokio_util::sync::CancellationToken;

pub use disk::{FreeSpace, SystemDisk};
pub use join::{Join, JoinError, Joined};
pub use machine::{HostError, accept_host, other_machine, remint};
pub use mailbox::LossCount;
pub use recover::{RecoverError, Recovered, RecoveryRun, recover};
pub use start::{Daemon, StartError};
pub use surroundings::Surroundings;

/// What a daemon is started with.
#[derive(Clone)]
pub struct Config {
    /// The home's root.
    pub home: PathBuf,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// This program's version, for people and for `/v1/version`.
    pub version: String,
    /// The roles of this process, for `/v1/health`.
    pub roles: Vec<String>,
    /// The page's address, where this process serves it.
    pub page_url: Option<String>,
    /// The mesh whose broker runs in this very process.
    pub own_mesh: Option<OwnMesh>,
    /// Routes of other services for the local door, behind its guards and its authentication; without a fallback.
    pub more_routes: axum::Router,
    /// What the process found around itself.
    pub surroundings: Surroundings,
    /// Measures the room of the home's disk.
    pub free_space: Arc<dyn FreeSpace>,
    /// The stores of the process, among which the daemon enters its mailboxes.
    pub stores: Stores,
    /// Ends the daemon when cancelled; the daemon cancels it when it is asked to stop.
    pub stop: CancellationToken,
}

/// A mesh whose broker runs in this very process: its address is the live listener's, and it lets its own home
/// in.
#[derive(Clone)]
pub struct OwnMesh {
    /// The local alias.
    pub slug: String,
    /// Where the broker listens.
    pub url: String,
    /// Where a fresh invite comes from.
    pub invites: Arc<dyn Invites>,
}

/// Makes invites; asked when a broker does not know this home's node.
#[async_trait]
pub trait Invites: Send + Sync {
    /// An invite for one join, or none when there can be none.
    async fn fresh(&self) -> Option<Invite>;
}
