//! What the hub answers.

use model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::message::Message;
use crate::text;

/// A record: what the hub says of it, and the fields of its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Record {
    /// Its id, one per kind.
    pub id: String,
    /// Counts its changes; the `ETag` is this in quotes.
    pub version: u64,
    /// Who made it.
    pub created_by: String,
    /// When.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// Who changed it last.
    pub updated_by: String,
    /// When.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub updated_at: Timestamp,
    /// The fields of its kind.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub fields: Map<String, Value>,
}

/// A page of records by their last change, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordList {
    /// Each once, as it is now.
    pub records: Vec<Record>,
    /// Where to read on; a record that changes comes again after it.
    pub cursor: String,
    /// Whether there is more already.
    pub has_more: bool,
}

/// The query of a list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// How many records, at most 1,000; a page also ends at 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// Records that changed after this cursor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The query of `GET /hub/messages/`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MessagesQuery {
    /// How many messages, at most 1,000; a page also ends at 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Messages older than this cursor; without one, the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// A page of messages, newest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageList {
    /// Each once. There may be fewer than asked, or none, although there is more.
    pub messages: Vec<ListedMessage>,
    /// Where to read on; empty at the first message of all.
    pub before: String,
    /// Whether there may be older ones.
    pub has_more: bool,
}

/// A message as its reader's list shows it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ListedMessage {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// When the caller marked its copy as read.
    #[schema(value_type = Option<String>)]
    #[serde(default, with = "text::option", skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
}

/// `PATCH /hub/messages/{id}/read`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WasRead {
    /// The message.
    pub id: String,
    /// When its recipient said so first.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub read_at: Timestamp,
}

/// The query of `GET /hub/idempotency/{key}`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct KeyQuery {
    /// Retire the key if nothing happened under it.
    #[serde(default)]
    pub fence: bool,
    /// When the request was first made, in the hub's time; without it, within the hub's memory.
    #[param(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
}

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// Its effect is durable; the answer stands beside this word.
    Committed,
    /// Nothing happened under it and nothing ever will.
    Retired,
    /// Nothing happened under it yet; a copy may be under way.
    Absent,
    /// It is older than the hub's memory.
    Unknown,
}

/// `GET /hub/idempotency/{key}`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeyStatus {
    /// The key.
    pub key: String,
    /// What is known of it.
    pub state: KeyState,
    /// The status that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The `ETag` that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The body that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub body: Option<Value>,
    /// The fingerprint of the request that was committed, in hexadecimal digits; of a message, the message's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// When it was committed.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub recorded_at: Option<Timestamp>,
    /// The hub's time.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub now: Timestamp,
}

/// `GET /hub/health`: for whoever stands in front of a hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`: writes would be taken.
    pub status: String,
    /// Which hub this is.
    pub instance: String,
    /// The hub's time; `Idempotency-Created` is told in it.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub now: Timestamp,
    /// How long keys are remembered.
    pub idempotency_days: u32,
    /// What it can do: `idempotency`, `fence`, `created`, `preconditions`.
    pub capabilities: Vec<String>,
}

/// `GET /hub/schemas`: the JSON Schema of each kind's body, by the kind's word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Schemas {
    /// By kind.
    #[schema(value_type = Object)]
    pub schemas: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_shows_its_fields_beside_what_the_hub_says() {
        let at = Timestamp::from_micros(0);
        let record = Record {
            id: "t1".into(),
            version: 2,
            created_by: "jane".into(),
            created_at: at,
            updated_by: "ci".into(),
            updated_at: at,
            fields: serde_json::from_str(r#"{"title":"t"}"#).unwrap(),
        };
        let json = serde_json::to_string(&record).unwrap();
        let expected = r#"{"id":"t1","version":2,"created_by":"jane","created_at":"1970-01-01T00:00:00.000000Z","updated_by":"ci","updated_at":"1970-01-01T00:00:00.000000Z","title":"t"}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
    }
}
