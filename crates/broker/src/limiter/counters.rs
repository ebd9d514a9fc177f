//! What only the limiter knows about itself, as Prometheus text.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The limiter's figures. Refusals are counted by the door that answers them.
#[derive(Debug, Default)]
pub struct Counters {
    local_grants: AtomicU64,
    outages: AtomicU64,
    marks_dropped: AtomicU64,
    local_mode: AtomicBool,
}

impl Counters {
    /// Units granted by this process's own budgets while Redis was away.
    pub fn local_grants(&self) -> u64 {
        self.local_grants.load(Ordering::Relaxed)
    }

    /// How often Redis stopped answering.
    pub fn outages(&self) -> u64 {
        self.outages.load(Ordering::Relaxed)
    }

    /// Marks forgotten before their time because the store of marks was full: their retries pay again.
    pub fn marks_dropped(&self) -> u64 {
        self.marks_dropped.load(Ordering::Relaxed)
    }

    /// Whether this process's own budgets decide because Redis is away.
    pub fn local_mode(&self) -> bool {
        self.local_mode.load(Ordering::Relaxed)
    }

    /// Appends the exposition text.
    pub fn render(&self, text: &mut String) {
        for (name, help, kind, value) in [
            (
                "cm_broker_rate_limit_local_grant_total",
                "Units granted by this process alone while Redis was away.",
                "counter",
                self.local_grants(),
            ),
            (
                "cm_broker_rate_limit_outage_total",
                "How often Redis stopped answering.",
                "counter",
                self.outages(),
            ),
            (
                "cm_broker_rate_limit_mark_dropped_total",
                "Marks forgotten early because their store was full.",
                "counter",
                self.marks_dropped(),
            ),
            (
                "cm_broker_rate_limit_local_mode",
                "1 while Redis is away and this process decides alone.",
                "gauge",
                u64::from(self.local_mode()),
            ),
        ] {
            writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}")
                .expect("a String takes every write");
        }
    }

    pub(super) fn granted_locally(&self) {
        self.local_grants.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn mark_dropped(&self) {
        self.marks_dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn redis_went_away(&self) {
        self.outages.fetch_add(1, Ordering::Relaxed);
        self.local_mode.store(true, Ordering::Relaxed);
    }

    pub(super) fn redis_came_back(&self) {
        self.local_mode.store(false, Ordering::Relaxed);
    }
}
