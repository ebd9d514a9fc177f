//! Requests refused in words that deny their storage: nothing of them may be there, after a kill and a restart either.
//!
//! Invariant: an id is judged only while every call of it was refused so. After a call without an answer, or with one that
//! leaves the outcome open, its request may be stored.

use crate::kills::door::Answer;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// More than a message may hold.
const TOO_LARGE: usize = 70_000;

/// What became of such requests.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    /// How many there were.
    pub requests: u64,
    /// Those that were stored all the same, a sentence each.
    pub stored: Vec<String>,
}

impl Refused {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.stored.extend(other.stored);
    }
}

/// What a caller was refused. Every second time it asks again with the same id, else it takes another one.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    refused: Refused,
    /// Ids that were given up, with the words they were refused in.
    given_up: BTreeMap<String, String>,
}

/// A message on its way to an answer, under one id after the other.
#[derive(Debug)]
pub(crate) struct Attempt {
    name: String,
    id: String,
    ids: u32,
    outcome: Outcome,
}

/// What the calls of an attempt's id say about its storage.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    NotAsked,
    /// All were refused; the words of the last.
    Denied(String),
    Unknown,
}

impl Attempt {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), id: name.to_owned(), ids: 1, outcome: Outcome::NotAsked }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// No answer came.
    pub(crate) fn note_unanswered(&mut self) {
        self.outcome = Outcome::Unknown;
    }
}

impl Refusals {
    /// An answer after which the caller asks on: whether with the same id, the attempt then knows.
    pub(crate) fn note(&mut self, attempt: &mut Attempt, answer: &Answer) {
        if attempt.outcome == Outcome::Unknown || !answer.denies_storage() {
            attempt.outcome = Outcome::Unknown;
            return;
        }
        if self.refused.requests.is_multiple_of(2) {
            attempt.ids += 1;
            let next = format!("{}.{}", attempt.name, attempt.ids);
            self.give_up(std::mem::replace(&mut attempt.id, next), answer);
            attempt.outcome = Outcome::NotAsked;
        } else {
            self.refused.requests += 1;
            attempt.outcome = Outcome::Denied(answer.refusal());
        }
    }

    /// A refusal of an id that nobody asks again with.
    pub(crate) fn give_up(&mut self, id: String, answer: &Answer) {
        self.refused.requests += 1;
        self.given_up.insert(id, answer.refusal());
    }

    /// The attempt was answered as one that was known before.
    pub(crate) fn note_known(&mut self, attempt: &Attempt) {
        if let Outcome::Denied(words) = &attempt.outcome {
            self.refused.stored.push(sentence(&attempt.id, words, "was known when it was asked again"));
        }
    }

    /// Requests that no door takes, each with an id of its own: asks them all; a sentence for each that is not refused
    /// with words that deny its storage. An id without an answer is not judged.
    pub(crate) fn ask_refused(
        &mut self,
        name: &str,
        to: &str,
        mut ask: impl FnMut(&Value) -> std::io::Result<Answer>,
    ) -> Vec<String> {
        let requests = [
            ("too-large", json!({"to": to, "body": "x".repeat(TOO_LARGE)})),
            ("to-nothing", json!({"to": "", "body": "x"})),
            ("hops", json!({"to": to, "body": "x", "hops": 200})),
        ];
        let mut wrong = Vec::new();
        for (why, mut request) in requests {
            let id = format!("{name}.{why}");
            request["client_message_id"] = id.as_str().into();
            match ask(&request) {
                Ok(answer) if answer.denies_storage() => self.give_up(id, &answer),
                Ok(answer) if answer.status >= 500 => {}
                Ok(answer) => wrong.push(format!("{id} was not refused: {}", answer.refusal())),
                Err(_) => {}
            }
        }
        wrong
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.refused.add(other.refused);
        self.given_up.extend(other.given_up);
    }

    /// Asks about every id that was given up, after a kill and a restart.
    pub(crate) fn judge<E>(self, mut is_there: impl FnMut(&str) -> Result<bool, E>) -> Result<Refused, E> {
        let mut refused = self.refused;
        for (id, words) in &self.given_up {
            if is_there(id)? {
                refused.stored.push(sentence(id, words, "is there after a kill and a restart"));
            }
        }
        Ok(refused)
    }
}

fn sentence(id: &str, words: &str, and: &str) -> String {
    format!("refused and stored: {id} was told {words:?} and {and}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, error: &str) -> Answer {
        Answer { status, body: json!({ "error": error }) }
    }

    /// How many sentences there are when everything is there, and whether the id was changed.
    fn judged(calls: &[Option<(u16, &str)>], refused_before: u64) -> (u64, usize, bool) {
        let (mut refusals, mut attempt) = (Refusals::default(), Attempt::new("m"));
        refusals.refused.requests = refused_before;
        for call in calls {
            match call {
                Some((status, error)) => refusals.note(&mut attempt, &answer(*status, error)),
                None => attempt.note_unanswered(),
            }
        }
        refusals.note_known(&attempt);
        let refused = refusals.judge(|_| Ok::<_, ()>(true)).unwrap();
        (refused.requests - refused_before, refused.stored.len(), attempt.id != "m")
    }

    #[test]
    fn an_id_is_judged_only_while_every_call_of_it_was_denied() {
        let (busy, unknown) = (Some((503, "storage_busy")), Some((503, "outcome_unknown")));
        for (name, calls, before, expected) in [
            ("asked again with another id", vec![busy], 0, (1, 1, true)),
            ("asked again with the same id", vec![busy], 1, (1, 1, false)),
            ("unanswered before", vec![None, busy], 0, (0, 0, false)),
            ("unanswered after", vec![busy, None], 1, (1, 0, false)),
            ("open before", vec![unknown, busy], 0, (0, 0, false)),
            ("never refused", vec![], 0, (0, 0, false)),
        ] {
            assert_eq!(judged(&calls, before), expected, "{name}");
        }
    }
}
