//! What callers were told, as it is kept beside stored state.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Everything that was answered with 2xx, in order, and how to reach whom.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Told {
    /// The commit of the binary that told it; empty when nobody stored it.
    #[serde(default)]
    pub commit: String,
    /// When the state was left, in microseconds since 1970.
    pub left_at_us: i64,
    /// Where the broker listened.
    pub broker: SocketAddr,
    /// A token of a direct caller at the broker.
    pub direct_token: String,
    /// The relay's token at the hub.
    pub hub_token: String,
    /// Handed to a daemon.
    pub sent: Vec<Sent>,
    /// Posted to the broker.
    pub posted: Vec<Posted>,
    /// Written through the relay.
    pub written: Vec<Written>,
}

/// A message that a daemon answered with 202.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Who sent it.
    pub from: String,
    /// Where to.
    pub to: String,
    /// The caller's id.
    pub id: String,
}

/// A message that the broker answered with 201.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// The caller's id.
    pub id: String,
    /// The message's id at the broker.
    pub message: String,
    /// When the broker accepted it, by its own clock.
    pub created_at: String,
}

/// A write that the relay answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Its idempotency key.
    pub key: String,
    /// True when it was stored at the relay, false when the hub answered.
    pub queued: bool,
}

impl Told {
    /// All of it.
    pub fn acked(&self) -> u64 {
        (self.sent.len() + self.posted.len() + self.written.len()) as u64
    }
}
