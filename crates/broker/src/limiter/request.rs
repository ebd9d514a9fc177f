//! The plain limiter that stands before the known-id look-up.
//!
//! A retry of a known or charged message costs no budget, so budgets alone would let one member repeat it
//! without end. Here every request counts, whatever it asks for.

use std::sync::Arc;

use model::gcra::TooSoon;
use model::limits::REQUESTS_PER_MESSAGE;
use model::{Clock, MemberId, MeshId};

use super::Budgets;
use super::buckets::{Buckets, Purchase};

/// Counts requests in this process; remembers no ids.
pub struct RequestLimiter {
    clock: Arc<dyn Clock>,
    buckets: Buckets,
}

impl RequestLimiter {
    /// [`REQUESTS_PER_MESSAGE`] times `budgets`, the ones of the limiter behind it.
    pub fn new(budgets: Budgets, clock: Arc<dyn Clock>) -> Self {
        let requests = Budgets {
            member: budgets.member.times(REQUESTS_PER_MESSAGE),
            mesh: budgets.mesh.times(REQUESTS_PER_MESSAGE),
        };
        Self { clock, buckets: Buckets::new(requests) }
    }

    /// Counts `requests` of `member`, one for each message of a frame, or refuses them all.
    pub fn admit(&self, mesh: MeshId, member: MemberId, requests: u32) -> Result<(), TooSoon> {
        self.buckets.spend(&Purchase { mesh, member, units: requests, now: self.clock.monotonic() })
    }
}
