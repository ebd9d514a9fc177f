//! Counters. Those of the hot path are single numbers; the rest share a map.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mailbox::{Arrival, Recorded, Settled};
use model::outbox::Verdict;
use wire::link::Sent;

use super::page::Page;
use crate::link::LinkEnd;

/// One mesh's counters since the start.
#[derive(Default)]
pub(crate) struct Tally {
    queued: AtomicU64,
    repeated: AtomicU64,
    conflicts: AtomicU64,
    accepted: AtomicU64,
    retried: AtomicU64,
    dead: AtomicU64,
    received: AtomicU64,
    received_again: AtomicU64,
    invalid_inbound: AtomicU64,
    history_pruned: AtomicU64,
    hop_limits: AtomicU64,
    link_ends: Mutex<BTreeMap<&'static str, u64>>,
}

/// The local door's counters since the start.
#[derive(Default)]
pub(crate) struct IpcTally {
    /// By address.
    endpoints: Mutex<BTreeMap<String, Answers>>,
    pub(crate) token_rotations: AtomicU64,
}

/// What one address answered.
#[derive(Clone, Default)]
struct Answers {
    /// By status and transport.
    counts: BTreeMap<(u16, &'static str), u64>,
    took: Duration,
}

fn add(counter: &AtomicU64, n: usize) {
    counter.fetch_add(n as u64, Ordering::Relaxed);
}

impl Tally {
    /// A send was answered.
    pub(crate) fn sent(&self, verdict: &Verdict) {
        let counter = match verdict {
            Verdict::Insert => &self.queued,
            Verdict::Queued | Verdict::Inflight | Verdict::Duplicate(_) => &self.repeated,
            Verdict::Conflict(_) => &self.conflicts,
        };
        add(counter, 1);
    }

    /// A frame was settled.
    pub(crate) fn settled(&self, settled: &Settled) {
        add(&self.accepted, settled.done.len());
        add(&self.retried, settled.retried.len());
        add(&self.dead, settled.buried.len());
    }

    /// The broker's word on a frame.
    pub(crate) fn answered(&self, sent: &Sent) {
        use wire::link::SendOutcome::Accepted;
        let pruned = |outcome: &_| matches!(outcome, Accepted(row) if !row.history_available);
        let count = sent.results.iter().filter(|result| pruned(&result.outcome)).count();
        if count > 0 {
            tracing::warn!(count, "the broker accepted these before and has pruned them since");
            add(&self.history_pruned, count);
        }
    }

    /// Rows whose time was over.
    pub(crate) fn buried(&self, rows: usize) {
        add(&self.dead, rows);
    }

    /// Mail was stored.
    pub(crate) fn received(&self, recorded: &[Recorded]) {
        let count = |of: fn(&Arrival) -> bool| recorded.iter().filter(|row| of(&row.arrival)).count();
        add(&self.received, count(|arrival| matches!(arrival, Arrival::Fresh { .. })));
        add(&self.received_again, count(|arrival| matches!(arrival, Arrival::Duplicate { .. })));
        add(&self.invalid_inbound, count(|arrival| matches!(arrival, Arrival::Poison { .. })));
    }

    /// The broker said something that cannot be read.
    pub(crate) fn invalid_inbound(&self) {
        add(&self.invalid_inbound, 1);
    }

    /// A chain of automatic replies was cut.
    pub(crate) fn hop_limit(&self) {
        add(&self.hop_limits, 1);
    }

    /// A link, or the way to one, ended.
    pub(crate) fn link_ended(&self, end: &LinkEnd) {
        *self.link_ends.lock().unwrap_or_else(PoisonError::into_inner).entry(end.word()).or_default() += 1;
    }

    /// Writes the counters of `mesh`.
    pub(crate) fn print(&self, page: &mut Page, mesh: &str) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (status, counter) in [
            ("queued", &self.queued),
            ("repeated", &self.repeated),
            ("conflict", &self.conflicts),
            ("accepted", &self.accepted),
            ("retried", &self.retried),
        ] {
            page.counter("cm_daemon_send_total", &[("mesh", mesh), ("status", status)], read(counter));
        }
        page.counter("cm_daemon_outbox_dead_total", &[("mesh", mesh)], read(&self.dead));
        page.counter("cm_daemon_recv_total", &[("mesh", mesh)], read(&self.received));
        for (direction, counter) in [("in", &self.received_again), ("out", &self.repeated)] {
            page.counter(
                "cm_daemon_dedupe_total",
                &[("mesh", mesh), ("direction", direction)],
                read(counter),
            );
        }
        for (name, counter) in [
            ("cm_daemon_invalid_inbound_total", &self.invalid_inbound),
            ("cm_daemon_dedupe_history_pruned_total", &self.history_pruned),
            ("cm_daemon_hop_limit_total", &self.hop_limits),
        ] {
            page.counter(name, &[("mesh", mesh)], read(counter));
        }
        let ends = self.link_ends.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (reason, count) in ends {
            page.counter("cm_daemon_reconnects_total", &[("mesh", mesh), ("reason", reason)], count);
        }
    }
}

impl IpcTally {
    /// A request was answered.
    pub(crate) fn answered(&self, endpoint: &str, status: u16, transport: &'static str, took: Duration) {
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        // An address is new once and known ever after: only then does its name cost an allocation.
        if !endpoints.contains_key(endpoint) {
            endpoints.insert(endpoint.to_owned(), Answers::default());
        }
        if let Some(answers) = endpoints.get_mut(endpoint) {
            *answers.counts.entry((status, transport)).or_default() += 1;
            answers.took += took;
        }
    }

    /// Writes the counters.
    pub(crate) fn print(&self, page: &mut Page) {
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (endpoint, answers) in &endpoints {
            for ((status, transport), count) in &answers.counts {
                let status = status.to_string();
                let labels = [("endpoint", endpoint.as_str()), ("status", &status), ("transport", transport)];
                page.counter("cm_daemon_ipc_request_total", &labels, *count);
            }
        }
        for (endpoint, answers) in &endpoints {
            let (count, took) = (answers.counts.values().sum(), answers.took);
            page.summary("cm_daemon_ipc_duration_seconds", &[("endpoint", endpoint)], count, took);
        }
        let rotations = self.token_rotations.load(Ordering::Relaxed);
        page.counter("cm_daemon_local_token_rotations_total", &[], rotations);
    }
}
