//! Which faults fall, and when.

use super::Planted;
use super::stage::{Servers, Stage};
use crate::fleet::{DEDUPE_OWN_TRANSACTION, FleetError};
use crate::seeded::Seeded;
use crate::stopwatch::Stopwatch;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest quiet before a fault.
const QUIET_MAX_MS: u64 = 3_000;
/// The longest time a killed server stays away.
const AWAY_MAX_MS: u64 = 1_000;
/// What a broker that comes back has, too.
const CLOCK_SET: &str = "a broker's clock set apart, by minutes to days";
/// Between the planted bug's two transactions.
const BETWEEN: &str = "ledger.accept_ids.before_commit";
/// The latest of a life's accepts at which a broker with the planted bug dies.
const VISIT_MAX: u64 = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Broker(usize),
    RedisFlushed,
    RedisKilled,
    PostgresStopped,
}

pub(super) struct Faults {
    seeded: Seeded,
    planted: Planted,
    counts: BTreeMap<String, u64>,
}

impl Faults {
    pub(super) fn new(seed: u64, planted: Planted) -> Self {
        Self { seeded: Seeded::new(seed), planted, counts: BTreeMap::new() }
    }

    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.clone()
    }

    /// One fault after the other for `span`; at the end both brokers live and carry no bug.
    pub(super) fn fall(
        &mut self,
        stage: &Stage,
        servers: &mut Servers,
        span: Duration,
    ) -> Result<(), FleetError> {
        let watch = Stopwatch::start();
        for n in 0.. {
            if watch.elapsed() >= span {
                break;
            }
            let fault = self.next(n);
            let quiet = Duration::from_millis(self.seeded.below(QUIET_MAX_MS));
            self.strike(fault, quiet, stage, servers)?;
        }
        for broker in &mut servers.brokers {
            // A broker that a planted bug already ended, or that still carries it, begins anew.
            if self.planted != Planted::Nothing || broker.ends_within(Duration::ZERO) {
                broker.kill9();
                broker.restart(&[])?;
            }
        }
        Ok(())
    }

    /// One of each kind first; then mostly brokers.
    fn next(&mut self, n: u64) -> Fault {
        if self.planted != Planted::Nothing {
            return Fault::Broker(usize::from(n % 2 == 1));
        }
        match n {
            0 => Fault::Broker(0),
            1 => Fault::RedisKilled,
            2 => Fault::Broker(1),
            3 => Fault::PostgresStopped,
            4 => Fault::RedisFlushed,
            _ => match self.seeded.below(100) {
                0..80 => Fault::Broker(self.seeded.index(2)),
                80..87 => Fault::RedisFlushed,
                87..94 => Fault::RedisKilled,
                _ => Fault::PostgresStopped,
            },
        }
    }

    fn strike(
        &mut self,
        fault: Fault,
        quiet: Duration,
        stage: &Stage,
        servers: &mut Servers,
    ) -> Result<(), FleetError> {
        let away = Duration::from_millis(self.seeded.below(AWAY_MAX_MS));
        let watched = match fault {
            Fault::Broker(which) => which,
            Fault::RedisFlushed | Fault::RedisKilled | Fault::PostgresStopped => 0,
        };
        let by_itself = servers.brokers[watched].ends_within(quiet);
        if by_itself && self.planted != Planted::DedupeApart {
            stage.note_amiss(format!("broker {watched} ended by itself"));
        }
        match fault {
            Fault::Broker(which) => {
                servers.brokers[which].kill9();
                // The other one is watched meanwhile: it must stand alone.
                let _alone = servers.brokers[1 - which].ends_within(away);
                let clock = servers.clocks.set(which)?;
                let faults = self.armed(clock);
                *self.counts.entry(CLOCK_SET.to_owned()).or_default() += 1;
                servers.brokers[which].restart(&faults)?;
            }
            Fault::RedisFlushed => {
                servers.redis.ask("FLUSHALL")?;
            }
            Fault::RedisKilled => {
                servers.redis.kill9();
                let _without = servers.brokers[0].ends_within(away);
                servers.redis.restart()?;
            }
            Fault::PostgresStopped => {
                servers.postgres.stop_immediately()?;
                let _without = servers.brokers[0].ends_within(away);
                servers.postgres.restart()?;
            }
        }
        *self.counts.entry(shown(fault, by_itself)).or_default() += 1;
        Ok(())
    }

    /// What the next life of a broker carries.
    fn armed(&mut self, clock: String) -> Vec<String> {
        match self.planted {
            Planted::Nothing => vec![clock],
            Planted::ProcessClock => vec![clock, "bug:ledger.process_clock".to_owned()],
            Planted::DedupeApart => {
                let visit = 1 + self.seeded.below(VISIT_MAX);
                vec![clock, DEDUPE_OWN_TRANSACTION.to_owned(), format!("crash:{BETWEEN}:{visit}")]
            }
        }
    }
}

fn shown(fault: Fault, by_itself: bool) -> String {
    match fault {
        Fault::Broker(_) if by_itself => format!("crash at {BETWEEN}"),
        Fault::Broker(which) => format!("SIGKILL of broker {}", which + 1),
        Fault::RedisFlushed => "Redis flushed".to_owned(),
        Fault::RedisKilled => "Redis killed and started empty".to_owned(),
        Fault::PostgresStopped => "PostgreSQL stopped at once and started again".to_owned(),
    }
}
