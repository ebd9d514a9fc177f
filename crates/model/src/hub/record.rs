//! Records: what a write makes of what stands there.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::clock::Timestamp;
use crate::error::Malformed;
use crate::hub::{Precondition, PreconditionFailed};
use crate::limits;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// A note of what was done.
    Progress,
    /// What a session used up.
    TokenEvent,
    /// A question somebody decides.
    Decision,
    /// Work to do.
    Task,
    /// Work in its order.
    Workplan,
}

/// A record's id: the grammar of idempotency keys, so that it fits an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(String);

/// A record that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Counts its changes.
    pub version: u64,
    /// The last of them.
    pub updated_at: Timestamp,
    /// Its fields, as JSON.
    pub body: Vec<u8>,
}

/// What stands under an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing, ever.
    Absent,
    /// Nothing any more.
    Deleted {
        /// The version its deletion made.
        version: u64,
    },
    /// A record.
    Present(Held),
}

/// What a caller wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A record that is not there yet.
    Create(Map<String, Value>),
    /// A record with exactly these fields, there or not.
    Replace(Map<String, Value>),
    /// These fields of a record that is there; null takes one away.
    Patch(Map<String, Value>),
    /// The same for a decision that is open.
    Resolve(Map<String, Value>),
    /// No record.
    Delete,
}

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// A record, new under its id.
    Make {
        /// Its version.
        version: u64,
        /// Its fields.
        body: Vec<u8>,
    },
    /// A record that was there.
    Change {
        /// Its next version.
        version: u64,
        /// Its fields.
        body: Vec<u8>,
    },
    /// That there is none.
    Delete {
        /// The version the deletion makes.
        version: u64,
    },
}

/// Why nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such record.
    NotFound,
    /// What stands there is not what the caller expects.
    Conflict {
        /// Its version; none when there never was a record.
        current: Option<u64>,
    },
    /// The record would be over its bound.
    TooLarge,
}

/// The field that says how far a decision is, and its word for the end.
const STATUS: &str = "status";
const RESOLVED: &str = "resolved";

/// The verdict on a change, given what stands there.
pub fn judge(change: &Change, precondition: &Precondition, standing: &Standing) -> Result<Judged, Refusal> {
    // Told apart from a conflict only while nothing was expected: a record that somebody saw and that is gone
    // has changed.
    let missing = match (precondition, standing) {
        (Precondition::None, _) | (_, Standing::Absent) => Refusal::NotFound,
        (_, Standing::Deleted { .. } | Standing::Present(_)) => {
            Refusal::Conflict { current: standing.version() }
        }
    };
    let fits = precondition.check(standing);
    match (change, standing) {
        (Change::Create(_), Standing::Present(_)) => Err(Refusal::Conflict { current: standing.version() }),
        (Change::Create(fields), Standing::Absent | Standing::Deleted { .. }) => {
            fits?;
            Ok(Judged::Make { version: standing.next_version(), body: body_of(fields)? })
        }
        (Change::Replace(fields), Standing::Absent | Standing::Deleted { .. }) => {
            fits?;
            Ok(Judged::Make { version: standing.next_version(), body: body_of(fields)? })
        }
        (Change::Replace(fields), Standing::Present(_)) => {
            fits?;
            Ok(Judged::Change { version: standing.next_version(), body: body_of(fields)? })
        }
        (
            Change::Patch(_) | Change::Resolve(_) | Change::Delete,
            Standing::Absent | Standing::Deleted { .. },
        ) => Err(missing),
        (Change::Patch(patch), Standing::Present(held)) => {
            fits?;
            let body = patched(&fields_of(held), patch)?;
            Ok(Judged::Change { version: standing.next_version(), body })
        }
        (Change::Resolve(patch), Standing::Present(held)) => {
            fits?;
            let fields = fields_of(held);
            if fields.get(STATUS).and_then(Value::as_str) == Some(RESOLVED) {
                return Err(Refusal::Conflict { current: standing.version() });
            }
            Ok(Judged::Change { version: standing.next_version(), body: patched(&fields, patch)? })
        }
        (Change::Delete, Standing::Present(_)) => {
            fits?;
            Ok(Judged::Delete { version: standing.next_version() })
        }
    }
}

fn body_of(fields: &Map<String, Value>) -> Result<Vec<u8>, Refusal> {
    let body = serde_json::to_vec(fields).expect("parsed JSON can be written");
    if body.len() > limits::BODY_BYTES_MAX { Err(Refusal::TooLarge) } else { Ok(body) }
}

/// What is stored was an object when it was written; anything else counts as one without fields.
fn fields_of(held: &Held) -> Map<String, Value> {
    serde_json::from_slice(&held.body).unwrap_or_default()
}

fn patched(fields: &Map<String, Value>, patch: &Map<String, Value>) -> Result<Vec<u8>, Refusal> {
    let mut merged = fields.clone();
    merge(&mut merged, patch);
    body_of(&merged)
}

/// JSON merge patch (RFC 7396).
fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match value {
            Value::Null => {
                target.remove(name);
            }
            Value::Object(inner) => {
                let mut nested = match target.remove(name) {
                    Some(Value::Object(nested)) => nested,
                    Some(_) | None => Map::new(),
                };
                merge(&mut nested, inner);
                target.insert(name.clone(), Value::Object(nested));
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                target.insert(name.clone(), value.clone());
            }
        }
    }
}

impl Standing {
    /// The version now; none when there never was a record.
    pub const fn version(&self) -> Option<u64> {
        match self {
            Standing::Absent => None,
            Standing::Deleted { version } => Some(*version),
            Standing::Present(held) => Some(held.version),
        }
    }

    const fn next_version(&self) -> u64 {
        match self.version() {
            Some(version) => version + 1,
            None => 1,
        }
    }
}

impl From<PreconditionFailed> for Refusal {
    fn from(failed: PreconditionFailed) -> Self {
        Refusal::Conflict { current: failed.current }
    }
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [RecordKind; 5] = [
        RecordKind::Progress,
        RecordKind::TokenEvent,
        RecordKind::Decision,
        RecordKind::Task,
        RecordKind::Workplan,
    ];

    /// The stored number.
    pub const fn code(self) -> u8 {
        match self {
            RecordKind::Progress => 1,
            RecordKind::TokenEvent => 2,
            RecordKind::Decision => 3,
            RecordKind::Task => 4,
            RecordKind::Workplan => 5,
        }
    }

    /// The kind stored as `code`.
    pub fn from_code(code: i64) -> Option<RecordKind> {
        RecordKind::ALL.into_iter().find(|kind| i64::from(kind.code()) == code)
    }

    /// Its word in addresses.
    pub const fn word(self) -> &'static str {
        match self {
            RecordKind::Progress => "progress",
            RecordKind::TokenEvent => "token-events",
            RecordKind::Decision => "decisions",
            RecordKind::Task => "tasks",
            RecordKind::Workplan => "workplans",
        }
    }
}

impl RecordId {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RecordId {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        match text.parse::<crate::ClientMessageId>() {
            // Dots alone are a way through folders, not a name.
            Ok(id) if text.bytes().any(|b| b != b'.') => Ok(Self(id.as_str().to_owned())),
            Ok(_) | Err(_) => Err(Malformed::new("id", "1 to 128 characters of A-Z a-z 0-9 . _ : -")),
        }
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
