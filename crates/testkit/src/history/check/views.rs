//! The readers' side: what was seen, by whom, where and in which order.

use super::Broken;
use crate::history::{Act, Event, MessageKey};
use std::collections::{BTreeMap, BTreeSet};

type Place = (String, u64);

#[derive(Default)]
pub(super) struct Views {
    readers: BTreeMap<MessageKey, BTreeSet<String>>,
    places: BTreeMap<MessageKey, BTreeSet<Place>>,
    /// How often one reader saw one message in one conversation.
    times: BTreeMap<(MessageKey, String), u64>,
    /// Per reader and conversation, the rows in the order seen.
    walks: BTreeMap<(String, String), Walk>,
    bare: Vec<Broken>,
}

#[derive(Default)]
struct Walk {
    steps: Vec<u64>,
    /// A reader of the log may skip nothing.
    whole: bool,
}

impl Views {
    pub(super) fn of(events: &[Event]) -> Self {
        let mut views = Self::default();
        for event in events {
            match &event.act {
                Act::Render { seq, cursor, .. } => views.see(event, *seq, cursor, true),
                Act::Receive { seq, cursor, .. } => views.see(event, *seq, cursor, false),
                Act::Send { .. } | Act::Listed { .. } => {}
            }
        }
        views
    }

    pub(super) fn seen(&self) -> u64 {
        self.times.values().sum()
    }

    pub(super) fn seen_by(&self, key: &MessageKey) -> Option<&BTreeSet<String>> {
        self.readers.get(key)
    }

    /// Every message seen, with one of its readers.
    pub(super) fn first_readers(&self) -> impl Iterator<Item = (&MessageKey, &str)> {
        self.readers.iter().filter_map(|(key, readers)| Some((key, readers.first()?.as_str())))
    }

    pub(super) fn place(&self, key: &MessageKey) -> Option<&Place> {
        self.places.get(key)?.first()
    }

    /// I2.
    pub(super) fn repeated(&self) -> Vec<Broken> {
        let mut broken = self.bare.clone();
        for ((key, reader), times) in self.times.iter().filter(|(_, times)| **times > 1) {
            broken.push(Broken::Doubled { key: key.clone(), reader: reader.clone(), times: *times });
        }
        for (key, places) in &self.places {
            let mut places = places.iter();
            if let (Some(first), Some(second)) = (places.next(), places.next()) {
                broken.push(Broken::TwoPlaces { key: key.clone(), places: [first.clone(), second.clone()] });
            }
        }
        broken
    }

    /// I7, as far as readers see it.
    pub(super) fn disordered(&self) -> Vec<Broken> {
        let mut broken = self.shared_places();
        for ((reader, conv), walk) in &self.walks {
            for pair in walk.steps.windows(2) {
                let (reader, conv, after, next) = (reader.clone(), conv.clone(), pair[0], pair[1]);
                match next.cmp(&after) {
                    // Seen twice in a row is I2's finding, not a second one here.
                    std::cmp::Ordering::Equal => {}
                    std::cmp::Ordering::Less => broken.push(Broken::Backwards { reader, conv, after, next }),
                    std::cmp::Ordering::Greater if walk.whole && next > after + 1 => {
                        broken.push(Broken::Gap { reader, conv, after, next });
                    }
                    std::cmp::Ordering::Greater => {}
                }
            }
        }
        broken
    }

    fn shared_places(&self) -> Vec<Broken> {
        let mut broken = Vec::new();
        let mut holder: BTreeMap<&Place, &MessageKey> = BTreeMap::new();
        for (key, places) in &self.places {
            for place in places {
                if let Some(other) = holder.insert(place, key) {
                    let (conv, seq) = place.clone();
                    broken.push(Broken::SharedPlace { conv, seq, keys: [other.clone(), key.clone()] });
                }
            }
        }
        broken
    }

    fn see(&mut self, event: &Event, seq: u64, cursor: &str, whole: bool) {
        let (key, reader, conv) = (event.key(), event.proc.clone(), event.conversation().to_owned());
        if cursor.is_empty() {
            self.bare.push(Broken::NoCursor { key: key.clone(), reader: reader.clone() });
        }
        self.readers.entry(key.clone()).or_default().insert(reader.clone());
        self.places.entry(key.clone()).or_default().insert((conv.clone(), seq));
        *self.times.entry((key, reader.clone())).or_default() += 1;
        let walk = self.walks.entry((reader, conv)).or_default();
        walk.steps.push(seq);
        walk.whole |= whole;
    }
}
