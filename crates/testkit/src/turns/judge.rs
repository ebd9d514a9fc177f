//! What the agents' logs and the sender's inbox must say.

use super::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A line of an agent's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub what: What,
    /// The sender's id.
    pub message: String,
    pub turn: String,
    pub attempt: u64,
    pub redelivered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// The agent was handed it and goes to work.
    Begun,
    /// The door says that this turn was interrupted.
    Interrupted,
    /// The door says that the turn ended.
    Ended,
}

/// What the sender knows at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Closing {
    /// Ids told to be durable.
    pub acked: Vec<String>,
    /// Replies received, by the id they answer.
    pub replies: BTreeMap<String, u64>,
    /// Ids the door lists as given up.
    pub given_up: BTreeSet<String>,
}

pub(super) fn judge(logs: &[Vec<Note>], closing: &Closing, deaths: BTreeMap<String, u64>) -> Outcome {
    let mut outcome = Outcome {
        deaths,
        acked: closing.acked.len() as u64,
        replies: closing.replies.values().sum(),
        given_up: closing.given_up.len() as u64,
        ..Outcome::default()
    };
    for log in logs {
        judge_log(log, &mut outcome);
    }
    for id in &closing.acked {
        let answered = closing.replies.get(id).copied().unwrap_or(0);
        if answered == 0 && !closing.given_up.contains(id) {
            outcome
                .lost
                .push(format!("{id} was acknowledged, and has neither an answer nor a name for its end"));
        }
        if answered > 1 {
            outcome.doubled.push(format!("{id} was answered {answered} times"));
        }
    }
    let ended: BTreeSet<&String> =
        logs.iter().flatten().filter(|note| note.what == What::Ended).map(|note| &note.message).collect();
    for id in ended {
        if !closing.replies.contains_key(id) {
            outcome.lost.push(format!("{id}: its agent was told that the turn ended, its reply never came"));
        }
    }
    outcome
}

fn judge_log(log: &[Note], outcome: &mut Outcome) {
    let mut by_message: BTreeMap<&str, Vec<&Note>> = BTreeMap::new();
    for note in log {
        by_message.entry(&note.message).or_default().push(note);
    }
    for (id, notes) in by_message {
        let firsts = notes.iter().filter(|note| note.what == What::Begun && note.attempt == 1).count();
        if firsts > 1 {
            outcome.doubled.push(format!("{id} has {firsts} first attempts"));
        }
        for (place, note) in notes.iter().enumerate().filter(|(_, note)| note.what == What::Begun) {
            outcome.begun += 1;
            outcome.reruns += u64::from(note.redelivered);
            let before = &notes[..place];
            if before.iter().any(|earlier| earlier.what == What::Ended) {
                outcome.doubled.push(format!("{id} was handed out after its turn had ended"));
            }
            if note.attempt > 1 && !note.redelivered {
                outcome.broken.push(format!("{id}, attempt {}, is not marked", note.attempt));
            }
            let interrupted =
                |earlier: &&&Note| earlier.what == What::Interrupted && earlier.attempt + 1 == note.attempt;
            if note.attempt > 1 && !before.iter().any(|earlier| interrupted(&earlier)) {
                let before = note.attempt - 1;
                outcome.broken.push(format!("{id}: attempt {before} was not interrupted before the next"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(what: What, attempt: u64, redelivered: bool) -> Note {
        Note { what, message: "m".to_owned(), turn: format!("t{attempt}"), attempt, redelivered }
    }

    fn counted(log: &[Note], replies: u64, given_up: bool) -> [usize; 3] {
        let closing = Closing {
            acked: vec!["m".to_owned()],
            replies: (replies > 0).then(|| ("m".to_owned(), replies)).into_iter().collect(),
            given_up: given_up.then(|| "m".to_owned()).into_iter().collect(),
        };
        let outcome = judge(&[log.to_vec()], &closing, BTreeMap::new());
        [outcome.lost.len(), outcome.doubled.len(), outcome.broken.len()]
    }

    #[test]
    fn each_thing_that_must_not_be_is_found() {
        use What::{Begun, Ended, Interrupted};
        let first = note(Begun, 1, false);
        let (cut, again) = (note(Interrupted, 1, false), note(Begun, 2, true));
        for (name, log, replies, given_up, expected) in [
            ("plain", vec![first.clone(), note(Ended, 1, false)], 1, false, [0, 0, 0]),
            (
                "rerun",
                vec![first.clone(), cut.clone(), again.clone(), note(Ended, 2, true)],
                1,
                false,
                [0, 0, 0],
            ),
            ("unlogged first", vec![cut.clone(), again.clone()], 1, false, [0, 0, 0]),
            ("given up", vec![first.clone(), cut.clone(), again.clone()], 0, true, [0, 0, 0]),
            ("two firsts", vec![first.clone(), first.clone()], 1, false, [0, 1, 0]),
            ("unmarked", vec![first.clone(), cut.clone(), note(Begun, 2, false)], 1, false, [0, 0, 1]),
            ("not interrupted", vec![first.clone(), again.clone()], 1, false, [0, 0, 1]),
            (
                "after its end",
                vec![first.clone(), note(Ended, 1, false), cut.clone(), again.clone()],
                1,
                false,
                [0, 1, 0],
            ),
            ("answered twice", vec![first.clone()], 2, false, [0, 1, 0]),
            ("lost", vec![first.clone()], 0, false, [1, 0, 0]),
            ("reply lost", vec![first, note(Ended, 1, false)], 0, true, [1, 0, 0]),
        ] {
            assert_eq!(counted(&log, replies, given_up), expected, "{name}");
        }
    }
}
