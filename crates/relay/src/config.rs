//! What a relay is told at its start.

use std::path::PathBuf;
use std::time::Duration;

use model::limits;
use model::route_class::RouteTable;
use net::Secret;
use net::client::Target;
use net::tls::Trust;
use sqlite::Stores;

/// What becomes of a caller's own credential for the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// It is forwarded, and its request never waits.
    Strict,
    /// It is dropped: the relay asks with its own credential, on the caller's behalf.
    Relay,
}

/// Everything a relay needs to know.
#[derive(Clone)]
pub struct Config {
    /// Where requests go.
    pub upstream: Target,
    /// Whose certificates are believed there; the public authorities' when nothing is said.
    pub trust: Option<Trust>,
    /// The outbox's file.
    pub outbox: PathBuf,
    /// Which writes may wait.
    pub routes: RouteTable,
    /// What becomes of callers' credentials.
    pub auth_mode: AuthMode,
    /// The relay's own credential at the upstream. With one, callers must show `local_token`.
    pub upstream_token: Option<Secret>,
    /// What callers show before the relay lends its own credential.
    pub local_token: Option<Secret>,
    /// Below the upstream's base: where it says that it lives.
    pub health_path: String,
    /// How long the answer to a write is awaited.
    pub answer_timeout: Duration,
    /// Envelopes replayed in a second.
    pub drain_per_second: u32,
    /// Envelopes that may wait.
    pub rows_max: u64,
    /// Bytes of bodies that may wait.
    pub bytes_max: u64,
    /// The stores of the process, among which the relay enters its outbox.
    pub stores: Stores,
}

impl Config {
    /// The usual choices for an upstream and a file.
    pub fn new(upstream: Target, outbox: PathBuf) -> Self {
        Self {
            upstream,
            trust: None,
            outbox,
            routes: RouteTable::built_in(),
            auth_mode: AuthMode::Strict,
            upstream_token: None,
            local_token: None,
            health_path: "/health".to_owned(),
            answer_timeout: limits::RELAY_ANSWER_TIMEOUT,
            drain_per_second: limits::RELAY_DRAIN_PER_SECOND,
            rows_max: limits::RELAY_ROWS_MAX,
            bytes_max: limits::RELAY_BYTES_MAX,
            stores: Stores::default(),
        }
    }
}
