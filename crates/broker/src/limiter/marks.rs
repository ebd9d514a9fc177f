//! Which messages were charged lately.
//!
//! - Every mark lives equally long, so marks expire in the order they were made.
//! - Bounded: when a shard is full its oldest mark goes, and that message's retry pays again.
//! - Between "not marked" and the mark the shard stays locked: of many equal asks one is charged.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::limits::LIMITER_MARKS_MAX;
use sha2::{Digest, Sha256};
use sqlite::fault;

use super::{Ask, Counters, NO_MARKS};

const SHARDS: usize = 16;

/// An ask's identity, short: a digest, so that half a million fit in memory and no caller can choose a collision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MarkKey([u8; 16]);

pub(super) struct Marks {
    shards: [Mutex<Shard>; SHARDS],
    ttl: Duration,
    counters: Arc<Counters>,
}

/// What is known about one ask.
pub(super) enum Entry<'a> {
    /// Marked, and the mark lives.
    Marked,
    /// Not marked, and nobody else can mark it meanwhile.
    Free(Slot<'a>),
}

/// The right to mark one ask.
pub(super) struct Slot<'a> {
    shard: MutexGuard<'a, Shard>,
    key: MarkKey,
    now: Duration,
    until: Duration,
    counters: &'a Counters,
}

struct Shard {
    alive_until: HashMap<MarkKey, Duration>,
    oldest_first: VecDeque<(Duration, MarkKey)>,
    marks_max: usize,
}

impl MarkKey {
    pub(super) fn of(ask: &Ask) -> Self {
        let mut digest = Sha256::new();
        digest.update(ask.mesh.as_bytes());
        digest.update(ask.member.as_bytes());
        digest.update(ask.fingerprint_prefix);
        // Last, because it alone has no fixed length.
        digest.update(ask.client_message_id.as_str());
        let mut key = [0; 16];
        key.copy_from_slice(&digest.finalize()[..16]);
        Self(key)
    }
}

impl Marks {
    pub(super) fn new(ttl: Duration, counters: Arc<Counters>) -> Self {
        let shards = std::array::from_fn(|_| Mutex::new(Shard::new(LIMITER_MARKS_MAX / SHARDS)));
        Self { shards, ttl, counters }
    }

    pub(super) fn entry(&self, key: MarkKey, now: Duration) -> Entry<'_> {
        let shard =
            self.shards[usize::from(key.0[0]) % SHARDS].lock().unwrap_or_else(PoisonError::into_inner);
        match shard.alive_until.get(&key) {
            Some(until) if now < *until && !fault::bug(NO_MARKS) => Entry::Marked,
            Some(_) | None => {
                Entry::Free(Slot { shard, key, now, until: now + self.ttl, counters: &self.counters })
            }
        }
    }
}

impl Slot<'_> {
    pub(super) fn mark(mut self) {
        self.shard.expire(self.now);
        if self.shard.oldest_first.len() >= self.shard.marks_max {
            self.shard.drop_oldest();
            self.counters.mark_dropped();
        }
        self.shard.alive_until.insert(self.key, self.until);
        self.shard.oldest_first.push_back((self.until, self.key));
    }
}

impl Shard {
    fn new(marks_max: usize) -> Self {
        Self { alive_until: HashMap::new(), oldest_first: VecDeque::new(), marks_max }
    }

    fn expire(&mut self, now: Duration) {
        while self.oldest_first.front().is_some_and(|(until, _)| *until <= now) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some((until, key)) = self.oldest_first.pop_front() else { return };
        // A message marked again after its first mark expired has a later one, which stays.
        if self.alive_until.get(&key) == Some(&until) {
            self.alive_until.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(20);

    fn marks(marks_max: usize) -> Marks {
        let shards = std::array::from_fn(|_| Mutex::new(Shard::new(marks_max)));
        Marks { shards, ttl: TTL, counters: Arc::default() }
    }

    /// All in one shard.
    fn key(number: u8) -> MarkKey {
        let mut key = [0; 16];
        key[15] = number;
        MarkKey(key)
    }

    fn mark(marks: &Marks, number: u8, second: u64) {
        match marks.entry(key(number), Duration::from_secs(second)) {
            Entry::Free(slot) => slot.mark(),
            Entry::Marked => panic!("{number} was marked already"),
        }
    }

    fn marked(marks: &Marks, second: u64) -> Vec<u8> {
        let now = Duration::from_secs(second);
        (0..10).filter(|number| matches!(marks.entry(key(*number), now), Entry::Marked)).collect()
    }

    fn sizes(marks: &Marks) -> (usize, usize) {
        let shard = marks.shards[0].lock().unwrap();
        (shard.alive_until.len(), shard.oldest_first.len())
    }

    #[test]
    fn a_mark_lives_its_time_and_not_a_moment_longer() {
        let marks = marks(8);
        mark(&marks, 1, 100);
        mark(&marks, 2, 110);
        assert_eq!(marked(&marks, 119), [1, 2]);
        assert_eq!(marked(&marks, 120), [2]);
        assert_eq!(marked(&marks, 130), [] as [u8; 0]);
    }

    #[test]
    fn a_full_shard_forgets_its_oldest_mark_and_counts_it() {
        let marks = marks(3);
        for number in 0..5 {
            mark(&marks, number, 100 + u64::from(number));
        }
        assert_eq!(marked(&marks, 105), [2, 3, 4]);
        assert_eq!((sizes(&marks), marks.counters.marks_dropped()), ((3, 3), 2));
    }

    #[test]
    fn expired_marks_leave_memory_when_the_next_one_is_made() {
        let marks = marks(8);
        mark(&marks, 1, 100);
        mark(&marks, 2, 100);
        mark(&marks, 3, 120);
        assert_eq!((sizes(&marks), marks.counters.marks_dropped()), ((1, 1), 0));
    }

    #[test]
    fn a_mark_made_again_outlives_the_end_of_its_first_one() {
        let marks = marks(8);
        mark(&marks, 1, 100);
        {
            // As when two threads read the clock in one order and reached the shard in the other.
            let mut shard = marks.shards[0].lock().unwrap();
            shard.oldest_first.push_front((Duration::from_secs(121), key(9)));
        }
        mark(&marks, 1, 120);
        mark(&marks, 2, 121);
        assert_eq!(marked(&marks, 121), [1, 2]);
    }
}
