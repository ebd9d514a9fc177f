//! How often one address may knock.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::limits;

/// Addresses remembered at once. When all of them are fresh, the strangers beyond share one budget: an attacker
/// with many addresses slows other strangers down, and memory stays bounded.
const ADDRESSES_MAX: usize = 16_384;

/// Counts knocks per address in windows of [`limits::EXCHANGE_RATE_WINDOW`], on the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct KnockRate {
    knocks: Mutex<HashMap<Option<IpAddr>, Knocks>>,
}

#[derive(Clone, Copy, Debug)]
struct Knocks {
    window_from: Duration,
    count: u32,
}

impl KnockRate {
    /// Counts one knock; `Err` says when the next may come.
    pub(crate) fn knock(&self, address: IpAddr, now: Duration) -> Result<(), Duration> {
        let mut knocks = self.knocks.lock().unwrap_or_else(PoisonError::into_inner);
        if knocks.len() >= ADDRESSES_MAX {
            knocks.retain(|_, seen| now < seen.ends_at());
        }
        let known = knocks.contains_key(&Some(address)) || knocks.len() < ADDRESSES_MAX;
        let seen = knocks.entry(known.then_some(address)).or_insert(Knocks { window_from: now, count: 0 });
        if now >= seen.ends_at() {
            *seen = Knocks { window_from: now, count: 0 };
        }
        if seen.count >= limits::EXCHANGES_PER_WINDOW_MAX {
            return Err(seen.ends_at().saturating_sub(now));
        }
        seen.count += 1;
        Ok(())
    }
}

impl Knocks {
    fn ends_at(&self) -> Duration {
        self.window_from + limits::EXCHANGE_RATE_WINDOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thirty_first_knock_waits_for_the_window_and_other_addresses_do_not() {
        let rate = KnockRate::default();
        let (one, two) = ("10.0.0.1".parse().unwrap(), "::1".parse().unwrap());
        let at = Duration::from_secs;
        for _ in 0..limits::EXCHANGES_PER_WINDOW_MAX {
            assert_eq!(rate.knock(one, at(5)), Ok(()));
        }
        assert_eq!(rate.knock(one, at(25)), Err(at(40)));
        assert_eq!(rate.knock(two, at(25)), Ok(()));
        assert_eq!(rate.knock(one, at(65)), Ok(()));
    }

    #[test]
    fn memory_is_bounded_and_strangers_beyond_it_share_a_budget() {
        let rate = KnockRate::default();
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        for n in 0..ADDRESSES_MAX as u32 {
            assert_eq!(rate.knock(address(n), Duration::ZERO), Ok(()));
        }
        let strangers = (0..40).map(|n| rate.knock(address(1 << 30 | n), Duration::ZERO));
        assert_eq!(strangers.filter(Result::is_ok).count(), limits::EXCHANGES_PER_WINDOW_MAX as usize);
        assert!(rate.knocks.lock().unwrap().len() <= ADDRESSES_MAX + 1);
        assert_eq!(rate.knock(address(1 << 30), limits::EXCHANGE_RATE_WINDOW), Ok(()));
        assert!(rate.knocks.lock().unwrap().len() <= 2);
    }
}
