//! What callers measured who each asked again as soon as they were answered.

use super::median;
use std::time::Duration;

/// One round's figures.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Calls answered a second.
    pub per_second: f64,
    /// The wait of the middle call.
    pub p50_us: f64,
    /// The wait that one call in a hundred exceeds.
    pub p99_us: f64,
    /// Processor time of a call at all processes involved, where it was measured.
    pub cpu_us: Option<f64>,
}

impl Measured {
    /// The round in the middle, by rate.
    pub fn median(rounds: &mut [Self]) -> Self {
        rounds.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
        rounds[rounds.len() / 2]
    }

    /// The middle one of the ratios of each round's rates, both in the order they were measured.
    pub fn ratio(these: &[Self], those: &[Self]) -> f64 {
        let pairs = these.iter().zip(those);
        median(&mut pairs.map(|(this, that)| this.per_second / that.per_second).collect::<Vec<_>>())
    }

    /// The figures of calls that took so long, made within `round`; none made counts as none a second.
    pub fn of(mut waits_us: Vec<u64>, round: Duration) -> Self {
        waits_us.sort_unstable();
        let rank = |hundredths: usize| match waits_us.len() {
            0 => f64::NAN,
            calls => waits_us[(calls - 1) * hundredths / 100] as f64,
        };
        let per_second = waits_us.len() as f64 / round.as_secs_f64();
        Self { per_second, p50_us: rank(50), p99_us: rank(99), cpu_us: None }
    }

    /// With the processor time that all calls of the round together took.
    #[must_use]
    pub fn with_cpu(self, spent: Option<Duration>, calls: usize) -> Self {
        let cpu_us = spent.filter(|_| calls > 0).map(|spent| spent.as_secs_f64() * 1e6 / calls as f64);
        Self { cpu_us, ..self }
    }
}
