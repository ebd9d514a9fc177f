//! The unacked rows of one link window: what was pushed and not yet acknowledged.
//!
//! - Nothing here is authoritative. The rows are in the ledger; a lost window is pushed again on the next link.
//! - A window never holds more than its bound, so a node that does not acknowledge costs a bounded memory.

use std::collections::HashSet;
use std::time::Duration;

use model::{MemberId, MessageId, limits};

/// A delivery, named as acks name it.
pub(crate) type DeliveryKey = (MessageId, MemberId);

/// See the module.
#[derive(Debug)]
pub(crate) struct Window {
    unacked: HashSet<DeliveryKey>,
    full_since: Option<Duration>,
}

impl Window {
    pub(crate) fn new() -> Self {
        Self { unacked: HashSet::new(), full_since: None }
    }

    /// How many rows may be pushed now.
    pub(crate) fn room(&self) -> usize {
        limits::WINDOW_ROWS_MAX.saturating_sub(self.unacked.len())
    }

    /// What the next read must leave out.
    pub(crate) fn unacked(&self) -> Vec<DeliveryKey> {
        self.unacked.iter().copied().collect()
    }

    /// `key` goes out at `now`, a monotonic instant.
    pub(crate) fn push(&mut self, key: DeliveryKey, now: Duration) {
        self.unacked.insert(key);
        if self.room() == 0 {
            self.full_since.get_or_insert(now);
        }
    }

    /// `keys` were acknowledged. Any ack restarts the patience of a full window.
    pub(crate) fn release(&mut self, keys: impl IntoIterator<Item = DeliveryKey>) {
        for key in keys {
            if self.unacked.remove(&key) {
                self.full_since = None;
            }
        }
    }

    /// When a window that stays full ends its link.
    pub(crate) fn stalls_at(&self) -> Option<Duration> {
        self.full_since.map(|since| since + limits::WINDOW_STALL_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: usize) -> DeliveryKey {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&n.to_le_bytes());
        (MessageId::from_bytes(bytes), MemberId::from_bytes([1; 16]))
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_window_is_bounded_and_an_ack_makes_room() {
        let mut window = Window::new();
        for n in 0..limits::WINDOW_ROWS_MAX {
            assert_eq!(window.room(), limits::WINDOW_ROWS_MAX - n);
            window.push(key(n), at(1));
        }
        assert_eq!(window.room(), 0);
        window.release([key(3), key(3), key(999)]);
        assert_eq!(window.room(), 1);
        assert!(!window.unacked().contains(&key(3)));
        assert!(window.unacked().contains(&key(4)));
    }

    #[test]
    fn only_a_full_window_without_any_ack_stalls() {
        let mut window = Window::new();
        for n in 0..limits::WINDOW_ROWS_MAX - 1 {
            window.push(key(n), at(1));
        }
        assert_eq!(window.stalls_at(), None);
        window.push(key(1000), at(5));
        window.push(key(1000), at(9));
        assert_eq!(window.stalls_at(), Some(at(5) + limits::WINDOW_STALL_TIMEOUT));
        window.release([key(999)]);
        assert!(window.stalls_at().is_some(), "an ack of a row that was never pushed is no progress");
        window.release([key(0)]);
        assert_eq!(window.stalls_at(), None);
        window.push(key(1001), at(20));
        assert_eq!(window.stalls_at(), Some(at(20) + limits::WINDOW_STALL_TIMEOUT));
    }
}
