//! What callers measured who each asked again as soon as they were answered.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One round's figures.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Calls answered.
    pub calls: usize,
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
        let calls = waits_us.len();
        let per_second = calls as f64 / round.as_secs_f64();
        Self { calls, per_second, p50_us: rank(50), p99_us: rank(99), cpu_us: None }
    }

    /// With the processor time that all calls of the round together took.
    #[must_use]
    pub fn with_cpu(self, spent: Option<Duration>) -> Self {
        let of_call = |spent: Duration| spent.as_secs_f64() * 1e6 / self.calls as f64;
        Self { cpu_us: spent.filter(|_| self.calls > 0).map(of_call), ..self }
    }
}

/// The middle one of an odd number of measured values, the mean of the two in the middle of an even number.
///
/// # Panics
/// Without any value.
pub fn median(values: &mut [f64]) -> f64 {
    assert!(!values.is_empty(), "a median needs at least one value");
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_whatever_the_order() {
        for (values, middle) in
            [(&mut [9.0, 1.0, 5.0][..], 5.0), (&mut [2.0], 2.0), (&mut [4.0, 9.0, 1.0, 6.0], 5.0)]
        {
            assert!((median(values) - middle).abs() < f64::EPSILON);
        }
    }

    #[test]
    fn a_rounds_figures_are_ranks_of_its_waits_and_calls_over_its_time() {
        let measured = Measured::of((1..=100).rev().collect(), Duration::from_secs(2));
        assert_eq!(
            (measured.calls, measured.per_second, measured.p50_us, measured.p99_us),
            (100, 50.0, 50.0, 99.0)
        );
        assert_eq!(measured.with_cpu(Some(Duration::from_millis(1))).cpu_us, Some(10.0));
        assert_eq!(
            Measured::of(Vec::new(), Duration::from_secs(2)).with_cpu(Some(Duration::ZERO)).cpu_us,
            None
        );
    }
}
