//! The last entity tag seen of each resource, by whatever path.
//!
//! - Answers may come in another order than the upstream gave them. A read that began before a change was answered may
//!   show the resource as it was before, and one that began earlier than another may show an older state: their tags are
//!   not taken.
//! - Losing a tag costs a stricter condition, never a write.

use std::sync::{Mutex, MutexGuard, PoisonError};

use model::limits;
use model::route_class::OrderKey;

use crate::memory::Recent;

pub(crate) struct Tags(Mutex<Known>);

struct Known {
    resources: Recent<OrderKey, Seen>,
    /// Counts the reads that began and the changes that were answered.
    place: u64,
    /// The highest place of a resource that went for want of room.
    gone_upto: u64,
}

/// What is known of a resource, or under a barrier of every one of its kind.
struct Seen {
    /// Nothing when a change left one that nobody named.
    tag: Option<String>,
    /// Where the change was answered, or the read that showed the tag began.
    place: u64,
}

/// Where a read began among the reads and changes of this relay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadBegun(u64);

impl Default for Tags {
    fn default() -> Self {
        Self(Mutex::new(Known::new(limits::RELAY_TAGS_MAX)))
    }
}

impl Tags {
    pub(crate) fn read_begins(&self) -> ReadBegun {
        ReadBegun(self.known().next_place())
    }

    /// A read showed `tag`; false when what is known of `resource` is newer.
    pub(crate) fn read(&self, resource: &OrderKey, tag: &str, begun: ReadBegun) -> bool {
        self.known().read(resource, tag, begun)
    }

    /// A change of `resource` was answered, or refused because of its state: of everything that overlaps with it only
    /// `tag` is known to hold.
    pub(crate) fn changed(&self, resource: &OrderKey, tag: Option<String>) {
        self.known().changed(resource, tag);
    }

    pub(crate) fn of(&self, resource: &OrderKey) -> Option<String> {
        self.known().resources.get(resource)?.tag.clone()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn new(resources_max: usize) -> Self {
        Self { resources: Recent::new(resources_max), place: 0, gone_upto: 0 }
    }

    fn next_place(&mut self) -> u64 {
        self.place += 1;
        self.place
    }

    fn read(&mut self, resource: &OrderKey, tag: &str, ReadBegun(place): ReadBegun) -> bool {
        let every = OrderKey::barrier(resource.scope());
        let known = [resource, &every].map(|key| self.resources.get(key).map_or(0, |seen| seen.place));
        if known.into_iter().any(|known| place < known) || place < self.gone_upto {
            return false;
        }
        self.put(resource, Some(tag.to_owned()), place);
        true
    }

    fn changed(&mut self, resource: &OrderKey, tag: Option<String>) {
        if resource.is_barrier() {
            let overlapping = self.resources.iter_mut().filter(|(known, _)| known.overlaps(resource));
            overlapping.for_each(|(_, seen)| seen.tag = None);
        }
        let place = self.next_place();
        self.put(resource, tag, place);
    }

    fn put(&mut self, resource: &OrderKey, tag: Option<String>, place: u64) {
        if let Some(gone) = self.resources.put(resource.clone(), Seen { tag, place }) {
            self.gone_upto = self.gone_upto.max(gone.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    enum Step {
        /// A read of task 1 begins.
        Begin,
        /// The read with this number, counted from 0, shows this tag.
        End(usize, &'static str),
        /// A change is answered.
        Change(&'static str, Option<&'static str>),
    }

    #[test]
    fn a_read_shows_the_tag_unless_a_change_or_a_later_read_was_answered_since_it_began() {
        use Step::{Begin, Change, End};
        for (case, steps, expected) in [
            ("a read alone", vec![Begin, End(0, "1")], Some("1")),
            ("a change during it", vec![Begin, Change("task:1", Some("2")), End(0, "1")], Some("2")),
            ("one whose tag nobody named", vec![Begin, Change("task:1", None), End(0, "1")], None),
            ("a batch during it", vec![Begin, Change("task:*", None), End(0, "1")], None),
            (
                "a change of another resource",
                vec![Begin, Change("task:2", Some("7")), End(0, "1")],
                Some("1"),
            ),
            ("a batch of another kind", vec![Begin, Change("decision:*", None), End(0, "1")], Some("1")),
            ("a change before it", vec![Change("task:1", Some("2")), Begin, End(0, "3")], Some("3")),
            ("a batch before it", vec![Change("task:*", None), Begin, End(0, "3")], Some("3")),
            ("a change after it", vec![Begin, End(0, "1"), Change("task:1", Some("2"))], Some("2")),
            ("a batch after it", vec![Begin, End(0, "1"), Change("task:*", None)], None),
            ("a later read answered first", vec![Begin, Begin, End(1, "2"), End(0, "1")], Some("2")),
            ("an earlier one answered first", vec![Begin, Begin, End(0, "1"), End(1, "2")], Some("2")),
        ] {
            let (tags, mut reads, task) = (Tags::default(), Vec::new(), OrderKey::new("task", "1"));
            for step in steps {
                match step {
                    Begin => reads.push(tags.read_begins()),
                    End(place, tag) => {
                        tags.read(&task, tag, reads[place]);
                    }
                    Change(key, tag) => {
                        tags.changed(&OrderKey::parse(key).unwrap(), tag.map(str::to_owned));
                    }
                }
            }
            assert_eq!(tags.of(&task).as_deref(), expected, "{case}");
        }
    }

    #[test]
    fn a_change_that_went_for_want_of_room_still_keeps_an_older_read_out() {
        let (mut known, key) = (Known::new(2), |id| OrderKey::new("task", id));
        let begun = ReadBegun(known.next_place());
        for id in ["1", "2", "3"] {
            known.changed(&key(id), Some("new".to_owned()));
        }
        assert!(known.resources.get(&key("1")).is_none());
        assert!(!known.read(&key("1"), "old", begun));
        let begun = ReadBegun(known.next_place());
        assert!(known.read(&key("1"), "new", begun));
    }
}
