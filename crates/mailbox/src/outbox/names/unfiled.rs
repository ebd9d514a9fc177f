//! The keys that wait for the tree, and which of them go next.
//!
//! Rounds go through all keys in their order, a sheaf at a time. A key that comes behind the place of a round waits for
//! the next one. When a round is over, the keys of all rows that were there when it began are in the tree.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::key::Key;

/// Sheaves of a round, about.
const SHEAVES: usize = 512;

/// See the module.
pub(super) struct Unfiled {
    /// So many may wait; what comes beyond is filed as it comes.
    waiting_max: usize,
    /// With the places of their rows.
    keys: BTreeSet<(Key, u64)>,
    /// The last row that was added.
    newest: u64,
    round: Option<Round>,
}

/// A round under way.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The last row there was when it began.
    last: u64,
    /// What it has come to.
    after: (Key, u64),
}

/// Keys to be filed together.
#[derive(Debug)]
pub(super) struct Sheaf {
    keys: Vec<(Key, u64)>,
    /// The last row there was when its round began.
    last: u64,
    ends_round: bool,
}

impl Unfiled {
    pub(super) fn new(waiting_max: usize) -> Self {
        Self { waiting_max, keys: BTreeSet::new(), newest: 0, round: None }
    }

    pub(super) fn add(&mut self, key: Key, seq: u64) {
        self.keys.insert((key, seq));
        self.newest = self.newest.max(seq);
    }

    pub(super) fn places(&self, key: Key) -> Vec<u64> {
        self.keys.range((key, 0)..=(key, u64::MAX)).map(|(_, seq)| *seq).collect()
    }

    /// Whether it is time for a sheaf.
    pub(super) fn is_full(&self) -> bool {
        self.keys.len() >= self.waiting_max
    }

    /// The next keys: at least so many, and as many as are too many. `last` is the last row that the transaction under
    /// way sees: one that was added may have been rolled back, and its place be given again.
    pub(super) fn sheaf(&self, least: usize, last: u64) -> Sheaf {
        let part = (self.waiting_max / SHEAVES).max(1);
        let count = part.max(least) + self.keys.len().saturating_sub(self.waiting_max);
        let from = self.round.map_or(Bound::Unbounded, |round| Bound::Excluded(round.after));
        let keys: Vec<_> = self.keys.range((from, Bound::Unbounded)).take(count).copied().collect();
        // Not all rows have been added yet while a file is being opened.
        let last = self.round.map_or(last.min(self.newest), |round| round.last);
        Sheaf { ends_round: keys.len() < count, keys, last }
    }

    pub(super) fn filed(&mut self, sheaf: &Sheaf) {
        for key in &sheaf.keys {
            self.keys.remove(key);
        }
        let ended = sheaf.ends_round;
        self.round =
            sheaf.keys.last().filter(|_| !ended).map(|after| Round { last: sheaf.last, after: *after });
    }
}

impl Sheaf {
    pub(super) fn keys(&self) -> &[(Key, u64)] {
        &self.keys
    }

    /// The row up to which every name is in the tree, once this is.
    pub(super) fn completes(&self) -> Option<u64> {
        self.ends_round.then_some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Sheaf, Unfiled};

    /// Two names may wait.
    fn waiting(keys: impl IntoIterator<Item = (i64, u64)>) -> Unfiled {
        let mut unfiled = Unfiled::new(2);
        keys.into_iter().for_each(|(key, seq)| unfiled.add(Key::from_bits(key), seq));
        unfiled
    }

    fn places(sheaf: &Sheaf) -> Vec<u64> {
        sheaf.keys().iter().map(|(_, seq)| *seq).collect()
    }

    /// Files the next sheaf: its places, and how far all are filed with it.
    fn file(unfiled: &mut Unfiled, last: u64) -> (Vec<u64>, Option<u64>) {
        let sheaf = unfiled.sheaf(0, last);
        unfiled.filed(&sheaf);
        (places(&sheaf), sheaf.completes())
    }

    #[test]
    fn a_sheaf_is_a_run_of_keys_and_the_next_goes_on_behind_it() {
        let mut unfiled = waiting([(30, 1), (10, 2), (20, 3), (40, 4)]);
        assert_eq!(file(&mut unfiled, 4), (vec![2, 3, 1], None));
        assert_eq!(file(&mut unfiled, 4), (vec![4], None));
        assert_eq!(file(&mut unfiled, 4), (vec![], Some(4)));
    }

    #[test]
    fn a_round_vouches_for_the_rows_there_were_when_it_began() {
        let mut unfiled = waiting([(10, 1), (20, 2), (30, 3)]);
        assert_eq!(file(&mut unfiled, 3), (vec![1, 2], None));
        unfiled.add(Key::from_bits(5), 4);
        unfiled.add(Key::from_bits(40), 5);
        assert_eq!(file(&mut unfiled, 5), (vec![3, 5], None));
        assert_eq!(file(&mut unfiled, 5), (vec![], Some(3)), "row 4 came behind it");
        assert_eq!(file(&mut unfiled, 5), (vec![4], None));
        assert_eq!(file(&mut unfiled, 5), (vec![], Some(5)));
    }

    #[test]
    fn a_round_vouches_neither_for_rows_rolled_back_nor_for_those_not_read_yet() {
        assert_eq!(file(&mut waiting([]), 0), (vec![], Some(0)));
        let mut rolled_back = waiting([(10, 1), (20, 9)]);
        file(&mut rolled_back, 1);
        file(&mut rolled_back, 1);
        assert_eq!(file(&mut rolled_back, 9), (vec![], Some(1)));
        let mut half_read = waiting([(10, 1)]);
        file(&mut half_read, 9);
        assert_eq!(file(&mut half_read, 9), (vec![], Some(1)));
    }

    #[test]
    fn a_sheaf_that_was_not_committed_is_taken_again() {
        let unfiled = waiting([(10, 1), (20, 2), (30, 3)]);
        assert_eq!(places(&unfiled.sheaf(0, 3)), [1, 2]);
        assert_eq!(places(&unfiled.sheaf(0, 3)), [1, 2]);
    }

    #[test]
    fn it_is_time_until_fewer_wait_than_may() {
        assert!(!waiting([(10, 1)]).is_full());
        let mut unfiled = waiting((1..=9_i64).map(|n| (n, n.unsigned_abs())));
        assert!(unfiled.is_full());
        assert_eq!(file(&mut unfiled, 9).0.len(), 8);
        assert!(!unfiled.is_full());
    }

    #[test]
    fn places_are_those_of_the_key_alone() {
        let unfiled = waiting([(10, 1), (20, 2), (20, 7), (21, 3)]);
        assert_eq!(unfiled.places(Key::from_bits(20)), [2, 7]);
        assert_eq!(unfiled.places(Key::from_bits(22)), Vec::<u64>::new());
    }
}
