//! `GET /v1/explain/{id}`: where a message is, why, and what to do about it.

use model::Timestamp;
use serde::{Deserialize, Serialize};

use super::Receipt;
use crate::relay::RelayFound;
use crate::text;

/// Everything that is known about an id, by everyone who could be asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Explanation {
    /// The id as asked.
    pub id: String,
    /// A rung, how it ended, `never_seen`, or `unknown` when nobody here holds it and the broker could not be asked.
    /// Of a write that only the relay knows: the state of its envelope, or `refused`.
    pub verdict: String,
    /// The same in a sentence.
    pub sentence: String,
    /// What is durably true now, when anything is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// Why, as clients match it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Whether nothing more happens by itself.
    pub needs_person: bool,
    /// The sender's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_message_id: Option<String>,
    /// The broker's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The outbox row, on the sender's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// Who sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// Where to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Its place in its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_id: Option<u64>,
    /// Every rung reached, in order, with its observer.
    pub rungs: Vec<Receipt>,
    /// One per recipient that is known.
    pub recipients: Vec<ExplainedCopy>,
    /// Turns at this host, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<ExplainedTurn>,
    /// `accepted`, `retired`, `forgotten`, `never_committed` or `unreachable`.
    pub broker: String,
    /// What this home's relay knows of a write under this id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayFound>,
    /// Times it went on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The last answer to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When it is tried next.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// What is known of the broker's side of a row that ended here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The row that took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// Who retired the row: operator, session or policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted_by: Option<String>,
    /// When the broker's acceptance became known after the row had ended here.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub late_ack_at: Option<Timestamp>,
    /// Who answered.
    pub asked: Vec<String>,
    /// Who could not be asked, and why.
    pub unasked: Vec<String>,
    /// What happens now, in a sentence.
    pub next: String,
    /// Commands to paste.
    pub fix: Vec<String>,
}

impl Explanation {
    /// The relay's word is the whole answer: nobody else knows the id.
    pub fn tell_as_relay(&mut self, found: &RelayFound) {
        self.verdict.clone_from(&found.verdict);
        self.sentence.clone_from(&found.sentence);
        self.code.clone_from(&found.code);
        self.needs_person = found.needs_person;
        self.next.clone_from(&found.next);
        self.fix.clone_from(&found.fix);
        if let Some(envelope) = &found.envelope {
            self.attempts = Some(envelope.attempts);
            self.last_error.clone_from(&envelope.last_error);
            self.outcome = Some(envelope.outcome.clone());
            self.superseded_by.clone_from(&envelope.superseded_by);
        }
    }
}

/// One recipient's copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedCopy {
    /// Who.
    pub name: String,
    /// Its node; nothing when the broker hosts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// How far it came, or how it ended.
    pub rung: String,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// One attempt at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedTurn {
    /// Whose.
    pub agent: String,
    /// From 1.
    pub attempt: u32,
    /// open, processed, failed or interrupted.
    pub state: String,
    /// When it began.
    #[serde(with = "text")]
    pub began_at: Timestamp,
    /// When it ended or was interrupted.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
