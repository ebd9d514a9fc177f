//! The broker's figures, printed as Prometheus text. Owned by one broker: two in one process do not mix.
//!
//! No label is ever an id or a name: every label's values are counted here in advance.

use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use model::{ErrorCode, Priority};

/// A number that only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

/// A number that rises and falls.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

/// A counter for every error code.
#[derive(Debug)]
pub struct PerCode(Vec<Counter>);

/// A counter for every priority.
#[derive(Debug)]
pub struct PerPriority(Vec<Counter>);

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $field:ident: $kind:ident $name:literal;)*) => {
        /// Every figure of one broker.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $($(#[doc = $doc])+ pub $field: $kind,)*
        }

        impl Metrics {
            /// The exposition text.
            pub fn render(&self) -> String {
                let mut text = String::new();
                $(self.$field.render($name, concat!($($doc),+).trim_ascii(), &mut text);)*
                text
            }
        }
    };
}

metrics! {
    /// Upgrades that became links.
    connections: Counter "cm_broker_connections_total";
    /// Upgrades and handshakes refused.
    connections_rejected: PerCode "cm_broker_connections_rejected_total";
    /// Links open now.
    connections_active: Gauge "cm_broker_connections_active";
    /// Subscribers connected now.
    subscribers_active: Gauge "cm_broker_subscribers_active";
    /// Subscribers closed because they took nothing for too long.
    subscribers_slow: Counter "cm_broker_subscribers_slow_total";
    /// Messages accepted.
    messages_routed: PerPriority "cm_broker_messages_routed_total";
    /// Copies answered as duplicates.
    messages_duplicate: Counter "cm_broker_messages_duplicate_total";
    /// Messages refused.
    messages_rejected: PerCode "cm_broker_messages_rejected_total";
    /// Ids that came again with another text.
    dedupe_fingerprint_mismatch: Counter "cm_broker_dedupe_fingerprint_mismatch_total";
    /// Units taken for messages that the transaction then refused.
    rate_limit_consumed_then_b2_rejected: Counter "cm_broker_rate_limit_consumed_then_b2_rejected_total";
    /// Messages refused for their budget.
    rate_limit_rejection: Counter "cm_broker_rate_limit_rejection_total";
    /// Links whose mesh remembers ids for less than the floor.
    dedupe_misconfig: Counter "cm_broker_dedupe_misconfig_total";
    /// Rounds of the orphan check.
    dedupe_orphan_check: Counter "cm_broker_dedupe_orphan_check_total";
    /// Orphans the last round found.
    dedupe_orphan_found: Gauge "cm_broker_dedupe_orphan_found";
    /// 1 when the last round found any: an accept was not written whole.
    atomicity_violation_found: Gauge "cm_broker_atomicity_violation_found";
    /// Rounds of the janitor.
    ttl_sweeps: Counter "cm_broker_ttl_sweeps_total";
    /// Walks over all ids, to forget those past their window.
    dedupe_walks: Counter "cm_broker_dedupe_walks_total";
    /// Webhook attempts answered with success.
    webhook_delivered: Counter "cm_broker_webhook_delivered_total";
    /// Webhook attempts to be repeated.
    webhook_retried: Counter "cm_broker_webhook_retried_total";
    /// Webhook rows given up.
    webhook_parked: Counter "cm_broker_webhook_parked_total";
    /// Hub writes applied.
    hub_writes: Counter "cm_hub_writes_total";
    /// Copies of hub writes answered with the first answer.
    hub_replayed: Counter "cm_hub_replayed_total";
    /// Hub writes refused.
    hub_refused: PerCode "cm_hub_refused_total";
    /// Questions about hub keys answered with retired.
    hub_keys_retired: Counter "cm_hub_keys_retired_total";
    /// Hub keys forgotten after their time.
    hub_keys_forgotten: Counter "cm_hub_keys_forgotten_total";
    /// Messages placed while the store's clock stood behind their log by more than a second.
    clock_regressed: Counter "cm_broker_clock_regressed_total";
    /// Jumps of the store's clock by more than an hour ahead of running time.
    clock_jumped: Counter "cm_broker_clock_jumped_total";
    /// Seconds the store's clock stands ahead of the time that was seen to pass; nothing ends by age in this span.
    clock_ahead: Gauge "cm_broker_clock_ahead_seconds";
    /// 1 when the ledger answered its last look.
    db_healthy: Gauge "cm_broker_db_healthy";
}

impl Counter {
    /// One more.
    pub fn add_one(&self) {
        self.add(1);
    }

    /// `n` more.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The number now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn render(&self, name: &str, help: &str, text: &mut String) {
        head(name, help, "counter", text);
        line(text, format_args!("{name} {}", self.get()));
    }
}

impl Gauge {
    /// Sets it.
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Moves it.
    pub fn add(&self, change: i64) {
        self.0.fetch_add(change, Ordering::Relaxed);
    }

    /// The number now.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn render(&self, name: &str, help: &str, text: &mut String) {
        head(name, help, "gauge", text);
        line(text, format_args!("{name} {}", self.get()));
    }
}

impl Default for PerCode {
    fn default() -> Self {
        Self(ErrorCode::ALL.iter().map(|_| Counter::default()).collect())
    }
}

impl PerCode {
    /// The counter of `code`.
    pub fn of(&self, code: ErrorCode) -> &Counter {
        let place = ErrorCode::ALL.iter().position(|known| *known == code);
        &self.0[place.expect("the table holds every code")]
    }

    fn render(&self, name: &str, help: &str, text: &mut String) {
        head(name, help, "counter", text);
        for (code, counter) in ErrorCode::ALL.iter().zip(&self.0).filter(|(_, counter)| counter.get() > 0) {
            line(text, format_args!("{name}{{reason=\"{code}\"}} {}", counter.get()));
        }
    }
}

impl Default for PerPriority {
    fn default() -> Self {
        Self(Priority::ALL.iter().map(|_| Counter::default()).collect())
    }
}

impl PerPriority {
    /// The counter of `priority`.
    pub fn of(&self, priority: Priority) -> &Counter {
        let place = Priority::ALL.iter().position(|known| *known == priority);
        &self.0[place.expect("the table holds every priority")]
    }

    fn render(&self, name: &str, help: &str, text: &mut String) {
        head(name, help, "counter", text);
        for (priority, counter) in Priority::ALL.iter().zip(&self.0) {
            line(text, format_args!("{name}{{priority=\"{priority}\"}} {}", counter.get()));
        }
    }
}

fn head(name: &str, help: &str, kind: &str, text: &mut String) {
    line(text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(text, "{content}").expect("writing to a string needs no room but memory");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_help_a_type_and_its_value() {
        let metrics = Metrics::default();
        metrics.connections.add(2);
        metrics.connections_active.add(-1);
        metrics.messages_rejected.of(ErrorCode::RateLimited).add_one();
        metrics.messages_routed.of(Priority::Now).add_one();
        let text = metrics.render();
        for expected in [
            "# TYPE cm_broker_connections_total counter\ncm_broker_connections_total 2\n",
            "# TYPE cm_broker_connections_active gauge\ncm_broker_connections_active -1\n",
            "cm_broker_messages_rejected_total{reason=\"rate_limited\"} 1\n",
            "cm_broker_messages_routed_total{priority=\"now\"} 1\n",
            "# HELP cm_broker_dedupe_orphan_found Orphans the last round found.\n",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(!text.contains("reason=\"invalid_request\""), "a code never seen has no line");
    }
}
