//! The senders' side: what was asked, what was answered.

use super::views::Views;
use super::{Broken, Verdict};
use crate::history::{Act, Event, MessageKey, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// The words under which an operator finds a message that ended without being delivered. Written out here, not
/// taken from the product: a checker that asks the checked agrees with every mistake.
const TERMINAL_STATES: [&str; 6] = ["rejected", "conflict", "dead", "aborted", "expired", "cancelled"];

pub(super) struct Calls {
    by_key: BTreeMap<MessageKey, Call>,
    /// Pairs that must keep their order: the newest acknowledged message of the lane, and the one sent then.
    /// Which one is newest is decided by place, so the whole list stands here per later message.
    awaited: Vec<Awaited>,
}

#[derive(Default)]
struct Call {
    begun: u64,
    acked: u64,
    refused: u64,
    listed: bool,
    readers: BTreeSet<String>,
    fingerprints: BTreeSet<String>,
}

struct Awaited {
    lane: (String, String, String),
    step: Step,
}

enum Step {
    Begun(MessageKey),
    Acked(MessageKey),
}

impl Call {
    fn is_open(&self) -> bool {
        self.begun > self.acked + self.refused
    }
}

impl Calls {
    pub(super) fn of(events: &[Event]) -> Self {
        let mut calls = Self { by_key: BTreeMap::new(), awaited: Vec::new() };
        for event in events {
            match &event.act {
                Act::Send { readers, .. } => calls.send(event, readers),
                Act::Listed { state, cause, .. } => {
                    let named = TERMINAL_STATES.contains(&state.as_str()) && !cause.is_empty();
                    calls.by_key.entry(event.key()).or_default().listed |= named;
                }
                Act::Render { .. } | Act::Receive { .. } => {}
            }
        }
        calls
    }

    pub(super) fn count(&self) -> Verdict {
        let mut verdict = Verdict::default();
        for call in self.by_key.values() {
            match call {
                Call { acked: 1.., .. } => verdict.acked += 1,
                open if open.is_open() => verdict.indeterminate += 1,
                Call { refused: 1.., .. } => verdict.refused += 1,
                _ => {}
            }
        }
        verdict
    }

    pub(super) fn lost(&self, views: &Views) -> Vec<Broken> {
        let mut lost = Vec::new();
        for (key, call) in self.by_key.iter().filter(|(_, call)| call.acked > 0 && !call.listed) {
            let seen_by = views.seen_by(key);
            if call.readers.is_empty() && seen_by.is_none() {
                lost.push(Broken::Lost { key: key.clone(), reader: None });
            }
            for reader in
                call.readers.iter().filter(|reader| seen_by.is_none_or(|seen| !seen.contains(*reader)))
            {
                lost.push(Broken::Lost { key: key.clone(), reader: Some(reader.clone()) });
            }
        }
        lost
    }

    pub(super) fn rebound(&self) -> Vec<Broken> {
        let two = |call: &Call| {
            let mut fingerprints = call.fingerprints.iter();
            Some([fingerprints.next()?.clone(), fingerprints.next()?.clone()])
        };
        let broken = |(key, call): (&MessageKey, &Call)| {
            two(call).map(|fingerprints| Broken::Rebound { key: key.clone(), fingerprints })
        };
        self.by_key.iter().filter_map(broken).collect()
    }

    /// One pass: per lane the highest place acknowledged so far is the floor for whatever is begun next.
    pub(super) fn overtaken(&self, views: &Views) -> Vec<Broken> {
        let mut overtaken = Vec::new();
        let mut floors: BTreeMap<&(String, String, String), (u64, &MessageKey)> = BTreeMap::new();
        let mut begun: BTreeSet<&MessageKey> = BTreeSet::new();
        for Awaited { lane, step } in &self.awaited {
            match step {
                Step::Acked(key) => {
                    let Some(seq) = views.place(key).map(|(_, seq)| *seq) else { continue };
                    let floor = floors.entry(lane).or_insert((seq, key));
                    *floor = (*floor).max((seq, key));
                }
                // Only the first call counts: a retry carries the place the first one took.
                Step::Begun(key) if begun.insert(key) => {
                    let (Some((floor, earlier)), Some((conv, seq))) = (floors.get(lane), views.place(key))
                    else {
                        continue;
                    };
                    let same_log = views.place(earlier).is_some_and(|(of, _)| of == conv);
                    if same_log && seq < floor {
                        overtaken.push(Broken::Overtaken { earlier: (*earlier).clone(), later: key.clone() });
                    }
                }
                Step::Begun(_) => {}
            }
        }
        overtaken
    }

    pub(super) fn forged(&self, views: &Views) -> Vec<Broken> {
        let sent =
            |key: &MessageKey| self.by_key.get(key).is_some_and(|call| call.acked > 0 || call.is_open());
        let seen = views.first_readers().filter(|(key, _)| !sent(key));
        seen.map(|(key, reader)| Broken::Forged { key: key.clone(), reader: reader.to_owned() }).collect()
    }

    fn send(&mut self, event: &Event, readers: &[String]) {
        let key = event.key();
        let lane = (event.proc.clone(), key.sender.clone(), event.conversation().to_owned());
        let call = self.by_key.entry(key.clone()).or_default();
        match event.outcome {
            Outcome::Invoke => {
                call.begun += 1;
                call.readers.extend(readers.iter().cloned());
                self.awaited.push(Awaited { lane, step: Step::Begun(key) });
            }
            Outcome::Ok => {
                call.acked += 1;
                // A refused call may carry another fingerprint; being refused is how it stays unbound.
                call.fingerprints.extend(event.fp.clone());
                self.awaited.push(Awaited { lane, step: Step::Acked(key) });
            }
            Outcome::Fail => call.refused += 1,
            Outcome::Info => {}
        }
    }
}
