//! The embedded limiter: budgets and marks of one process, on its monotonic clock.

use std::sync::Arc;

use async_trait::async_trait;
use model::Clock;

use super::buckets::{Buckets, Purchase};
use super::marks::{Entry, MarkKey, Marks};
use super::{Ask, Budgets, Counters, Limiter, Verdict};

/// Budgets kept in this process. They start whole: a restart forgets what was spent.
pub struct MemoryLimiter {
    clock: Arc<dyn Clock>,
    marks: Marks,
    buckets: Buckets,
}

impl MemoryLimiter {
    /// With nothing spent.
    pub fn new(budgets: Budgets, clock: Arc<dyn Clock>, counters: Arc<Counters>) -> Self {
        Self { clock, marks: Marks::new(budgets.mark_ttl(), counters), buckets: Buckets::new(budgets) }
    }

    /// The verdict, without waiting for anything.
    pub(super) fn decide(&self, ask: &Ask) -> Verdict {
        let purchase = self.purchase(ask);
        match self.marks.entry(MarkKey::of(ask), purchase.now) {
            Entry::Marked => Verdict::AlreadyGranted,
            Entry::Free(slot) => match self.buckets.spend(&purchase) {
                Ok(()) => {
                    slot.mark();
                    Verdict::Granted
                }
                Err(refusal) => Verdict::Denied { retry_after: refusal.retry_after },
            },
        }
    }

    /// Whether the ask was charged here in this window.
    pub(super) fn remembers(&self, ask: &Ask) -> bool {
        match self.marks.entry(MarkKey::of(ask), self.clock.monotonic()) {
            Entry::Marked => true,
            Entry::Free(_) => false,
        }
    }

    /// Notes what another limiter granted through this process: mark and charge, as if granted here.
    pub(super) fn record(&self, ask: &Ask) {
        let purchase = self.purchase(ask);
        match self.marks.entry(MarkKey::of(ask), purchase.now) {
            Entry::Marked => {}
            Entry::Free(slot) => {
                self.buckets.charge(&purchase);
                slot.mark();
            }
        }
    }

    fn purchase(&self, ask: &Ask) -> Purchase {
        Purchase { mesh: ask.mesh, member: ask.member, units: ask.cost, now: self.clock.monotonic() }
    }
}

#[async_trait]
impl Limiter for MemoryLimiter {
    async fn consume(&self, ask: &Ask) -> Verdict {
        self.decide(ask)
    }
}
