//! Which answers are legal beside each other, and what the log must hold.

use super::Outcome;
use crate::kills::audience::Row;
use crate::kills::door::Answer;
use std::collections::BTreeMap;

/// What a copy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    One,
    Other,
}

/// A copy and its answer.
#[derive(Debug)]
pub(super) struct Copied {
    pub text: Text,
    pub answer: Answer,
}

/// All copies of an id.
#[derive(Debug, Default)]
pub(super) struct Copies {
    pub answered: Vec<Copied>,
    /// How often one was refused in words that deny its storage, and the last of them.
    refused: u64,
    words: String,
    /// Whether one was put off in other words, or not answered: then it may be stored.
    pub is_open: bool,
}

impl Copies {
    /// One is put off.
    pub(super) fn note(&mut self, answer: &Answer) {
        if answer.denies_storage() {
            self.refused += 1;
            self.words = answer.refusal();
        } else {
            self.is_open = true;
        }
    }

    /// Nobody was told that the id is accepted, and copies asked again heard that it is.
    fn is_refused_and_stored(&self) -> bool {
        let is_won = self.answered.iter().any(|copy| copy.answer.status == 201);
        self.refused > 0 && !self.is_open && !is_won
    }
}

impl Text {
    pub(super) fn body(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Other => "other",
        }
    }
}

/// Counts the answers to one id and says what is wrong with them.
pub(super) fn copies(outcome: &mut Outcome, id: u64, copies: &Copies) {
    let answered = &copies.answered;
    let with = |status: u16| answered.iter().filter(|copy| copy.answer.status == status).count() as u64;
    outcome.accepted += with(201);
    outcome.duplicates += with(200);
    outcome.conflicts += with(409);
    outcome.refused.requests += copies.refused;
    if copies.is_refused_and_stored() {
        let words = &copies.words;
        outcome.refused.stored.push(format!("refused and stored: id {id} was told {words:?} and is there"));
    } else {
        outcome.broken.extend(wrong(answered).map(|wrong| format!("id {id}: {wrong}")));
    }
}

/// The first thing that is wrong.
fn wrong(copies: &[Copied]) -> Option<String> {
    let won: Vec<&Copied> = copies.iter().filter(|copy| copy.answer.status == 201).collect();
    let [won] = won[..] else { return Some(format!("{} copies were accepted", won.len())) };
    copies.iter().find(|copy| !is_legal_beside(copy, won)).map(|copy| {
        let (status, body) = (copy.answer.status, &copy.answer.body);
        format!("{:?} was answered {status} {body}, beside {:?} as {}", copy.text, won.text, won.answer.body)
    })
}

fn is_legal_beside(copy: &Copied, won: &Copied) -> bool {
    let body = &copy.answer.body;
    let same_text = copy.text == won.text;
    let same_message = ["broker_message_id", "conversation", "history_id"]
        .iter()
        .all(|field| !body[field].is_null() && body[field] == won.answer.body[field]);
    match copy.answer.status {
        201 => body["duplicate"] == false,
        200 => same_text && same_message && body["duplicate"] == true && body["history_available"] == true,
        409 => {
            let prefix = body["broker_fingerprint_prefix"].as_str().unwrap_or_default();
            !same_text && body["error"] == "idempotency_key_reused" && prefix.len() == 16
        }
        _ => false,
    }
}

/// One message an id, and no other.
pub(super) fn log(outcome: &mut Outcome, ids: u64, rows: &[Row]) {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        *times.entry(&row.client_message_id).or_default() += 1;
    }
    let expected: Vec<String> = (0..ids).map(|id| format!("r{id}")).collect();
    for id in &expected {
        match times.remove(id.as_str()) {
            Some(1) => {}
            None => {
                outcome.lost += 1;
                outcome.broken.push(format!("{id} was accepted and is not in the log"));
            }
            Some(times) => {
                outcome.doubled += 1;
                outcome.broken.push(format!("{id} stands in the log {times} times"));
            }
        }
    }
    outcome.broken.extend(times.keys().map(|id| format!("{id} is in the log, and nobody sent it")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn copied(text: Text, status: u16, body: Value) -> Copied {
        Copied { text, answer: Answer { status, body } }
    }

    fn message(id: &str, duplicate: bool) -> Value {
        json!({"broker_message_id": id, "conversation": "c", "history_id": 1, "duplicate": duplicate,
               "history_available": true})
    }

    fn conflict() -> Value {
        json!({"error": "idempotency_key_reused", "broker_fingerprint_prefix": "0123456789abcdef"})
    }

    #[test]
    fn one_accept_with_its_duplicates_and_conflicts_is_legal_and_nothing_else_is() {
        use Text::{One, Other};
        let won = || copied(One, 201, message("m", false));
        let table = [
            (vec![won(), copied(One, 200, message("m", true)), copied(Other, 409, conflict())], true),
            (vec![won(), won()], false),
            (vec![copied(One, 200, message("m", true))], false),
            (vec![won(), copied(One, 200, message("n", true))], false),
            (vec![won(), copied(One, 200, message("m", false))], false),
            (vec![won(), copied(Other, 200, message("m", true))], false),
            (vec![won(), copied(One, 409, conflict())], false),
            (vec![won(), copied(Other, 409, json!({"error": "idempotency_key_reused"}))], false),
            (vec![won(), copied(One, 500, json!({}))], false),
        ];
        for (copies, legal) in table {
            assert_eq!(wrong(&copies).is_none(), legal, "{copies:?}");
        }
    }
}
