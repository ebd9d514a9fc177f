//! What the programs' notes and the agents' inboxes must say.

use super::Outcome;
use std::collections::{BTreeMap, BTreeSet};

/// What a program noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub number: u64,
    pub attempt: u64,
    pub redelivered: bool,
}

/// One agent's side.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    /// Its programs' notes, in order.
    pub notes: Vec<Note>,
    /// Its inbox, in order.
    pub received: Vec<u64>,
    /// What the door lists as given up.
    pub given_up: BTreeSet<u64>,
}

impl Note {
    /// `number attempt redelivered`; none for a line cut by a kill.
    pub(super) fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let mut number = || words.next()?.parse().ok();
        let (number, attempt, redelivered) = (number()?, number()?, number()?);
        Some(Self { number, attempt, redelivered: redelivered == 1 })
    }
}

pub(super) fn judge(sides: &[Side], messages: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let mut arrived: BTreeMap<u64, u64> = BTreeMap::new();
    for side in sides {
        judge_side(side, &mut outcome);
        side.received.iter().for_each(|number| *arrived.entry(*number).or_default() += 1);
    }
    for number in 0..messages {
        match arrived.get(&number).copied().unwrap_or(0) {
            0 => outcome.lost.push(format!("{number} was never received")),
            1 => {}
            times => outcome.doubled.push(format!("{number} was received {times} times")),
        }
    }
    outcome.messages = arrived.len() as u64;
    outcome
}

fn judge_side(side: &Side, outcome: &mut Outcome) {
    outcome.programs += side.notes.len() as u64;
    outcome.reruns += side.notes.iter().filter(|note| note.redelivered).count() as u64;
    outcome.given_up += side.given_up.len() as u64;
    let mut firsts: BTreeMap<u64, u64> = BTreeMap::new();
    let mut newest = None;
    for note in &side.notes {
        if note.attempt == 1 || !note.redelivered {
            *firsts.entry(note.number).or_default() += 1;
        }
        if newest.is_some_and(|newest| note.number < newest) {
            outcome.broken.push(format!("{} was handed out after {}", note.number, newest.unwrap_or(0)));
        }
        newest = newest.max(Some(note.number));
    }
    let twice = firsts.iter().filter(|(_, times)| **times > 1);
    outcome.doubled.extend(twice.map(|(number, times)| format!("{number} has {times} unmarked attempts")));
    if side.received.windows(2).any(|pair| pair[0] >= pair[1]) {
        outcome.broken.push("an inbox is out of order".to_owned());
    }
    let noted: BTreeSet<u64> = side.notes.iter().map(|note| note.number).collect();
    for number in
        side.received.iter().filter(|number| !noted.contains(number) && !side.given_up.contains(number))
    {
        outcome.lost.push(format!("{number} had no program and no name for its end"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(number: u64, attempt: u64) -> Note {
        Note { number, attempt, redelivered: attempt > 1 }
    }

    fn counted(notes: &[Note], received: &[u64], given_up: &[u64]) -> [usize; 3] {
        let side = Side {
            notes: notes.to_vec(),
            received: received.to_vec(),
            given_up: given_up.iter().copied().collect(),
        };
        let outcome = judge(&[side], 2);
        [outcome.lost.len(), outcome.doubled.len(), outcome.broken.len()]
    }

    #[test]
    fn each_thing_that_must_not_be_is_found() {
        for (name, notes, received, given_up, expected) in [
            ("plain", vec![note(0, 1), note(1, 1)], vec![0, 1], vec![], [0, 0, 0]),
            ("rerun", vec![note(0, 1), note(0, 2), note(1, 1)], vec![0, 1], vec![], [0, 0, 0]),
            ("given up", vec![note(0, 1)], vec![0, 1], vec![1], [0, 0, 0]),
            ("never received", vec![note(0, 1)], vec![0], vec![], [1, 0, 0]),
            ("no program", vec![note(0, 1)], vec![0, 1], vec![], [1, 0, 0]),
            ("received twice", vec![note(0, 1), note(1, 1)], vec![0, 1, 1], vec![], [0, 1, 1]),
            ("two firsts", vec![note(0, 1), note(0, 1), note(1, 1)], vec![0, 1], vec![], [0, 1, 0]),
            ("out of order", vec![note(1, 1), note(0, 1)], vec![0, 1], vec![], [0, 0, 1]),
        ] {
            assert_eq!(counted(&notes, &received, &given_up), expected, "{name}");
        }
        assert_eq!(Note::read("12 2 1"), Some(note(12, 2)));
        assert_eq!(Note::read("12 2"), None);
    }
}
