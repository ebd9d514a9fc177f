//! Whether it is worth dialling the upstream.

use std::time::Duration;

use crate::limits;

/// Counts connections that could not be made, and a gateway's answers that nothing is behind it. Time is the monotonic
/// clock's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    failures: u32,
    opened_at: Option<Duration>,
    probe_at: Option<Duration>,
}

/// What it says now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Dial.
    Closed,
    /// Do not dial; the next probe is due in so long.
    Open(Duration),
}

impl Breaker {
    /// The upstream answered, with whatever.
    pub fn answered(&mut self) {
        *self = Self::default();
    }

    /// It could not be dialled, or its gateway said so; `retry_after` is how long that wants to be left alone.
    pub fn unreachable(&mut self, now: Duration, retry_after: Option<Duration>) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= limits::BREAKER_FAILURES_MAX {
            self.opened_at.get_or_insert(now);
            let wished = retry_after.unwrap_or_default().min(limits::BREAKER_RETRY_AFTER_MAX);
            self.probe_at = Some(now + wished.max(limits::BREAKER_PROBE_EVERY));
        }
    }

    /// What to do now.
    pub fn state(&self, now: Duration) -> BreakerState {
        self.probe_at.map_or(BreakerState::Closed, |at| BreakerState::Open(at.saturating_sub(now)))
    }

    /// Tries since the last answer that reached nobody.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// How long it has been open.
    pub fn away_for(&self, now: Duration) -> Option<Duration> {
        self.opened_at.map(|opened| now.saturating_sub(opened))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_at_the_third_failure_and_closes_at_any_answer() {
        let at = Duration::from_secs;
        let mut breaker = Breaker::default();
        for _ in 0..2 {
            breaker.unreachable(at(10), None);
            assert_eq!(breaker.state(at(10)), BreakerState::Closed);
        }
        assert_eq!((breaker.failures(), breaker.away_for(at(10))), (2, None), "told before it opens");
        breaker.unreachable(at(10), None);
        assert_eq!(breaker.state(at(10)), BreakerState::Open(at(2)));
        assert_eq!(breaker.state(at(11)), BreakerState::Open(at(1)));
        assert_eq!(breaker.state(at(60)), BreakerState::Open(at(0)));
        breaker.unreachable(at(60), Some(at(1)));
        assert_eq!(breaker.state(at(60)), BreakerState::Open(at(2)));
        breaker.unreachable(at(60), Some(at(20)));
        assert_eq!(breaker.state(at(60)), BreakerState::Open(at(20)), "as long as it wants to be left alone");
        breaker.unreachable(at(60), Some(at(3_600)));
        assert_eq!(breaker.state(at(60)), BreakerState::Open(limits::BREAKER_RETRY_AFTER_MAX));
        assert_eq!(breaker.away_for(at(60)), Some(at(50)));
        breaker.answered();
        assert_eq!((breaker.state(at(60)), breaker.away_for(at(60))), (BreakerState::Closed, None));
    }
}
