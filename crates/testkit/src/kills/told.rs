//! What receipts told writers: under which id and at which place a message was accepted.
//!
//! A receipt is a promise of its own. A message that is lost after it and comes again under another id is there
//! once, so no count shows the loss; the receipt does.

use super::audience::Place;
use crate::history::MessageKey;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Told {
    receipts: Mutex<Vec<(MessageKey, Place)>>,
}

impl Told {
    pub(crate) fn note(&self, sender: &str, id: &str, place: Place) {
        let key = MessageKey { sender: sender.to_owned(), id: id.to_owned() };
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner).push((key, place));
    }

    /// How many receipts each sender has.
    pub(crate) fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (key, _) in self.receipts.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            *counts.entry(key.sender.clone()).or_default() += 1;
        }
        counts
    }

    /// How many receipts name a message that stands at another place.
    pub(crate) fn moved(&self, logs: &BTreeMap<MessageKey, Place>) -> u64 {
        let receipts = self.receipts.lock().unwrap_or_else(PoisonError::into_inner);
        receipts.iter().filter(|(key, told)| logs.get(key).is_some_and(|found| found != told)).count() as u64
    }

    /// How many receipts there are, and a sentence for each that the logs do not bear out.
    pub(crate) fn compare(&self, logs: &BTreeMap<MessageKey, Place>) -> (u64, Vec<String>) {
        let receipts = self.receipts.lock().unwrap_or_else(PoisonError::into_inner);
        let amiss = receipts.iter().filter_map(|(key, told)| sentence(key, told, logs.get(key))).collect();
        (receipts.len() as u64, amiss)
    }
}

fn sentence(key: &MessageKey, told: &Place, found: Option<&Place>) -> Option<String> {
    match found {
        Some(found) if found == told => None,
        Some(found) => Some(format!(
            "accepted and gone: {key} was accepted as {}, place {}; the log holds {}, place {}",
            told.message_id, told.seq, found.message_id, found.seq
        )),
        None => Some(format!(
            "accepted and gone: {key} was accepted as {}, place {}; the log does not hold it",
            told.message_id, told.seq
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(message_id: &str, seq: u64) -> Place {
        Place { message_id: message_id.to_owned(), conversation: "c".to_owned(), seq }
    }

    #[test]
    fn a_receipt_is_borne_out_only_by_its_own_id_at_its_own_place() {
        let key = MessageKey { sender: "ann".to_owned(), id: "1".to_owned() };
        for (found, amiss) in
            [(Some(place("m", 4)), 0), (Some(place("other", 4)), 1), (Some(place("m", 5)), 1), (None, 1)]
        {
            let told = Told::default();
            told.note("ann", "1", place("m", 4));
            let logs: BTreeMap<MessageKey, Place> =
                found.map(|place| (key.clone(), place)).into_iter().collect();
            let (receipts, sentences) = told.compare(&logs);
            assert_eq!((receipts, sentences.len()), (1, amiss), "{sentences:?}");
        }
    }
}
