//! Time that stands still until it is moved, and randomness that a seed decides.

use crate::seeded::Seeded;
use model::clock::{Clock, Entropy, Timestamp};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A clock the test moves. Wall clock and monotonic time move apart, as they do on a machine whose date is set.
#[derive(Debug)]
pub struct ManualClock {
    hands: Mutex<Hands>,
}

#[derive(Debug)]
struct Hands {
    now: Timestamp,
    monotonic: Duration,
}

/// Bytes from a seed: the same ids and tokens in every run with it.
#[derive(Debug)]
pub struct SeededEntropy {
    seeded: Mutex<Seeded>,
}

impl ManualClock {
    /// Stands at `now`.
    pub fn at(now: Timestamp) -> Self {
        Self { hands: Mutex::new(Hands { now, monotonic: Duration::ZERO }) }
    }

    /// Lets `span` pass, on both hands.
    pub fn advance(&self, span: Duration) {
        let mut hands = self.hands();
        hands.now = hands.now + span;
        hands.monotonic += span;
    }

    /// Sets the date, forward or back; no time passes.
    pub fn set_date(&self, now: Timestamp) {
        self.hands().now = now;
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.hands().now
    }

    fn monotonic(&self) -> Duration {
        self.hands().monotonic
    }
}

impl SeededEntropy {
    /// The bytes that belong to `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seeded: Mutex::new(Seeded::new(seed)) }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        self.seeded.lock().unwrap_or_else(PoisonError::into_inner).fill(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_date_moves_the_wall_clock_and_not_the_monotonic_one() {
        let clock = ManualClock::at(Timestamp::from_micros(1_000_000));
        clock.advance(Duration::from_secs(2));
        clock.set_date(Timestamp::from_micros(5));
        assert_eq!((clock.now(), clock.monotonic()), (Timestamp::from_micros(5), Duration::from_secs(2)));
        clock.advance(Duration::from_micros(1));
        assert_eq!(clock.now(), Timestamp::from_micros(6));
        assert_eq!(clock.monotonic(), Duration::from_micros(2_000_001));
    }

    #[test]
    fn two_sources_with_one_seed_agree() {
        let (first, second) = (SeededEntropy::new(3), SeededEntropy::new(3));
        assert_eq!([first.next_u64(), first.next_u64()], [second.next_u64(), second.next_u64()]);
    }
}
