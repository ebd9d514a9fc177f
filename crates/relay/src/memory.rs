//! What passed a moment ago: stamps of changes, states of resources, bodies without a key, and keys that left nothing behind. All are aids;
//! losing them costs a stricter condition, a column of a conflict, a hint or a shorter answer, never a write.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use model::relay::unchanged_since;
use model::route_class::OrderKey;
use model::{ErrorCode, Fingerprint, RowId, Timestamp, limits};

/// When the upstream says that each resource was changed last by a write that passed here.
pub(crate) struct Stamps(Mutex<Recent<OrderKey, Timestamp>>);

/// The last state seen of each resource, with its tag. Nothing of it reaches the disk before it was scanned.
pub(crate) struct Bases(Mutex<Recent<OrderKey, (String, Bytes)>>);

/// The bodies of the last minute.
pub(crate) struct Twins(Mutex<Recent<(String, Fingerprint), (RowId, Timestamp)>>);

/// What the callers of keys were told of which nothing is stored.
pub(crate) struct UnstoredKeys(Mutex<Recent<String, (Unstored, Timestamp)>>);

/// Why nothing of a write is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unstored {
    /// This relay refused it.
    Refused(ErrorCode),
    /// The upstream did, and its caller heard it.
    Answered(u16),
}

/// A map that forgets its oldest entry beyond a bound.
pub(crate) struct Recent<K, V> {
    map: HashMap<K, V>,
    order: VecDeque<K>,
    max: usize,
}

impl<K: Hash + Eq + Clone, V> Recent<K, V> {
    pub(crate) fn new(max: usize) -> Self {
        Self { map: HashMap::new(), order: VecDeque::new(), max }
    }

    /// Answers with the value that went for want of room.
    pub(crate) fn put(&mut self, key: K, value: V) -> Option<V> {
        if self.map.insert(key.clone(), value).is_none() {
            self.order.push_back(key);
        }
        let oldest = if self.order.len() > self.max { self.order.pop_front() } else { None };
        oldest.and_then(|oldest| self.map.remove(&oldest))
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.map.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.map.iter_mut()
    }
}

impl Default for Stamps {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(limits::RELAY_TAGS_MAX)))
    }
}

impl Default for Bases {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(limits::RELAY_BASES_MAX)))
    }
}

impl Default for Twins {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(limits::RELAY_TWINS_MAX)))
    }
}

impl Default for UnstoredKeys {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(limits::RELAY_REFUSED_MAX)))
    }
}

impl UnstoredKeys {
    /// The caller of `key` was told so.
    pub(crate) fn note(&self, key: String, told: Unstored, now: Timestamp) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(key, (told, now));
    }

    /// What the last caller of `key` was told, and when.
    pub(crate) fn of(&self, key: &str) -> Option<(Unstored, Timestamp)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).map.get(key).copied()
    }
}

impl Stamps {
    pub(crate) fn changed(&self, resource: &OrderKey, at: Timestamp) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(resource.clone(), at);
    }

    /// The instant since which nothing may have changed `resource`; the upstream's time is about `estimate`.
    pub(crate) fn unchanged_since(&self, resource: &OrderKey, estimate: Timestamp) -> Timestamp {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if resource.is_barrier() {
            let overlapping = recent.iter().filter(|(known, _)| known.overlaps(resource));
            return unchanged_since(estimate, None, overlapping.map(|(_, at)| *at));
        }
        let batch = recent.get(&OrderKey::barrier(resource.scope()));
        unchanged_since(estimate, recent.get(resource).copied(), batch.copied())
    }
}

impl Bases {
    /// `resource` was seen with `tag` and this content.
    pub(crate) fn saw(&self, resource: OrderKey, tag: String, content: Bytes) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(resource, (tag, content));
    }

    /// The content of `resource` under `tag`, if that was the last one seen.
    pub(crate) fn of(&self, resource: &OrderKey, tag: &str) -> Option<Bytes> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.map.get(resource).filter(|(seen, _)| seen == tag).map(|(_, content)| content.clone())
    }
}

impl Twins {
    /// Notes that `source` asked for this; answers with what it asked for in the same words within the last minute.
    pub(crate) fn note(&self, source: &str, asked: Fingerprint, id: RowId, now: Timestamp) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put((source.to_owned(), asked), (id, now));
    }

    /// The last one of `source` in the same words, when that was within the last minute.
    pub(crate) fn twin(&self, source: &str, asked: Fingerprint, now: Timestamp) -> Option<RowId> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (id, at) = recent.map.get(&(source.to_owned(), asked))?;
        (now.since(*at) <= limits::RELAY_TWIN_WINDOW).then_some(*id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_goes_first_and_a_repeated_one_counts_once() {
        let mut recent = Recent::new(2);
        for (key, value) in [(1, 'a'), (1, 'b'), (2, 'c'), (3, 'd')] {
            recent.put(key, value);
        }
        assert_eq!(
            (recent.map.get(&1), recent.map.get(&2), recent.map.get(&3)),
            (None, Some(&'c'), Some(&'d'))
        );
    }

    #[test]
    fn a_state_is_remembered_for_its_own_tag() {
        let bases = Bases::default();
        let task = |id| OrderKey::new("task", id);
        bases.saw(task("1"), "\"1\"".into(), Bytes::from_static(b"{}"));
        assert_eq!(bases.of(&task("1"), "\"1\""), Some(Bytes::from_static(b"{}")));
        assert_eq!((bases.of(&task("1"), "\"2\""), bases.of(&task("2"), "\"1\"")), (None, None));
    }

    #[test]
    fn the_same_words_of_the_same_caller_are_twins_for_a_minute() {
        let twins = Twins::default();
        let (at, print) = (Timestamp::from_micros(1_000_000), Fingerprint::from_bytes([1; 32]));
        let id = RowId::from_bytes([1; 16]);
        twins.note("s", print, id, at);
        assert_eq!(twins.twin("s", print, at + limits::RELAY_TWIN_WINDOW), Some(id));
        assert_eq!(twins.twin("s", print, at + limits::RELAY_TWIN_WINDOW * 2), None);
        assert_eq!(twins.twin("t", print, at), None);
    }
}
