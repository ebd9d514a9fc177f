//! A budget as one instant per spender (GCRA): when would everything spent so far have been earned?
//!
//! - A spender who waits long enough may spend `burst` units at once; over any span never more than
//!   `burst + per_second × span`.
//! - One unit is a whole number of microseconds, rounded up. So a rate that does not divide a million is
//!   granted a little slower than named, never faster, and a script with 53-bit numbers computes the same.
//! - A clock that went back makes a spender wait at most two burst periods, for the named time: a state further
//!   ahead than that is of another clock, and counts as none.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use crate::error::Malformed;
use crate::limits::{BUDGET_BURST_SECONDS, BUDGET_PERIOD_MAX, BUDGET_RATE_MAX};

/// How fast units are earned and how many may be saved up. Written `RATE` or `RATE:BURST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    per_second: u32,
    burst: u32,
}

/// What a budget says to one spender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Affordable; nothing is spent until this instant is stored.
    Conforming {
        /// The spender's new state.
        arrival: Duration,
    },
    /// Not yet; the state stays.
    TooSoon(TooSoon),
}

/// The budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("over budget for another {retry_after:?}")]
pub struct TooSoon {
    /// Exactly when the same units become affordable, if nothing else is spent until then.
    pub retry_after: Duration,
}

/// Asks for `units` at `now`. `arrival` is the state stored last, zero for a spender never seen; both instants
/// are of one clock. More units than the burst count as the whole burst: late, rather than never.
pub fn spend(arrival: Duration, now: Duration, quota: &Quota, units: u32) -> Decision {
    let arrival = valid(arrival, now, quota).saturating_add(quota.cost(units));
    match arrival.checked_sub(now.saturating_add(quota.period())) {
        None | Some(Duration::ZERO) => Decision::Conforming { arrival },
        Some(retry_after) => Decision::TooSoon(TooSoon { retry_after }),
    }
}

/// The state after `units` that somebody else already granted: spent whether or not they were affordable here.
pub fn charge(arrival: Duration, now: Duration, quota: &Quota, units: u32) -> Duration {
    let arrival = valid(arrival, now, quota);
    let spent = now.saturating_add(quota.period());
    arrival.max(arrival.saturating_add(quota.cost(units)).min(spent))
}

/// Time earns no more than the burst, so a state never lies in the past.
fn valid(arrival: Duration, now: Duration, quota: &Quota) -> Duration {
    let of_another_clock = arrival > now.saturating_add(quota.period() * 2);
    if of_another_clock { now } else { arrival.max(now) }
}

impl Quota {
    /// `per_second` units a second, at most `burst` of them at once.
    pub fn new(per_second: u32, burst: u32) -> Result<Self, Malformed> {
        let quota = Self { per_second, burst };
        let earnable = (1..=BUDGET_RATE_MAX).contains(&per_second) && burst > 0;
        if earnable && quota.period() <= BUDGET_PERIOD_MAX {
            Ok(quota)
        } else {
            Err(Malformed::new(
                "limit",
                "RATE or RATE:BURST, units a second from 1 to 1000000 and a burst earned within a day",
            ))
        }
    }

    /// `per_second` with the ordinary burst of [`BUDGET_BURST_SECONDS`].
    pub fn per_second(per_second: u32) -> Result<Self, Malformed> {
        Self::new(per_second, per_second.saturating_mul(BUDGET_BURST_SECONDS))
    }

    /// `factor` times as fast, up to the fastest there is, and as deep.
    pub fn times(&self, factor: NonZeroU32) -> Self {
        Self {
            per_second: self.per_second.saturating_mul(factor.get()).min(BUDGET_RATE_MAX),
            burst: self.burst.saturating_mul(factor.get()),
        }
    }

    /// The time in which an empty budget fills.
    pub fn period(&self) -> Duration {
        self.unit() * self.burst
    }

    /// The time in which `units` are earned; at most the period.
    pub fn cost(&self, units: u32) -> Duration {
        self.unit() * units.min(self.burst)
    }

    fn unit(&self) -> Duration {
        Duration::from_micros(1_000_000_u64.div_ceil(u64::from(self.per_second)))
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.per_second, self.burst)
    }
}

impl FromStr for Quota {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        // Zero is out of range, so that a text which is no number gets the refusal that names the form.
        let number = |digits: &str| digits.parse().unwrap_or(0);
        match text.split_once(':') {
            Some((per_second, burst)) => Self::new(number(per_second), number(burst)),
            None => Self::per_second(number(text)),
        }
    }
}

#[cfg(test)]
#[path = "gcra_tests.rs"]
mod tests;
