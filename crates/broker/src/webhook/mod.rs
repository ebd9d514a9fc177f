//! Webhooks: deliveries of members whose home is an HTTP endpoint.
//!
//! A webhook is a member of kind `service` that the broker hosts and whose deliveries it pushes.
//!
//! | part | for |
//! |---|---|
//! | `gate` | where a call may go: resolve, check, pin |
//! | `call` | one call: body, signature, answer |
//! | `keep` | the task: claim what is due, make the calls, record what became of them |
//! | `manage` | what the owner asks |
//!
//! Invariants:
//!
//! - What is pushed is a committed delivery row, and nothing else decides what is due: a kill loses no push.
//! - A row is `delivered` when the endpoint answered with success; `webhook-id` is the same at every attempt.
//! - One row of a conversation is under way at a time, under a claim in the ledger, so success keeps order and two
//!   brokers never push one row at once.
//! - A connection goes to an address that was checked, by number, and never follows a redirect.
//! - Secrets appear in signatures only: no log, error or listing shows them.

mod call;
mod dial;
mod gate;
mod keep;
mod manage;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use model::limits;
use model::webhook::Host;
use net::tls::Trust;

use gate::{Gate, Resolve, SystemResolver};

pub(crate) use keep::keep;
pub(crate) use manage::{enable, explained, list, remove, rotate};

/// How calls are made, and where they may go.
pub(crate) struct Webhooks {
    gate: Gate,
    /// Whose certificates count; the public authorities, loaded when first needed, unless told otherwise.
    trust: OnceLock<Trust>,
    /// Who calls, for the endpoint's log.
    agent: String,
    timeout: Duration,
}

impl Webhooks {
    /// Calls go to public addresses and, wherever they are, to the hosts the operator named.
    pub(crate) fn new(allowed: Vec<Host>, version: &str) -> Self {
        Self::with(allowed, Arc::new(SystemResolver), version)
    }

    fn with(allowed: Vec<Host>, resolver: Arc<dyn Resolve>, version: &str) -> Self {
        let agent = format!("postrider/{version}");
        Self {
            gate: Gate::new(allowed, resolver),
            trust: OnceLock::new(),
            agent,
            timeout: limits::WEBHOOK_TIMEOUT,
        }
    }
}
