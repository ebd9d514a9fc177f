//! Work: progress, token events, tasks.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::field::{instant, kept, kept_line, line};

/// `POST /hub/progress/`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProgress {
    /// The record's id; minted when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub id: Option<String>,
    /// What was done.
    #[serde(deserialize_with = "line")]
    #[schema(min_length = 1)]
    pub summary: String,
    /// What kind of moment it is, such as `session_close`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The session it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The agent it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The task it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The workplan it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workplan: Option<String>,
    /// When it happened, if not now.
    #[serde(default, deserialize_with = "instant", skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<String>,
    /// Anything structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
}

/// `POST /hub/token-events/` and `POST /hub/token-events/upsert`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTokenEvent {
    /// The source's own id, which becomes the record's; an upsert needs it, else it is minted when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub source_id: Option<String>,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// All of them, as the source counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The model that used them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session that used them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The agent that used them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The task they were used for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What they cost, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// When it happened, if not now.
    #[serde(default, deserialize_with = "instant", skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<String>,
    /// Anything structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    #[default]
    Todo,
    /// Begun.
    InProgress,
    /// Waiting for something else.
    Blocked,
    /// Finished.
    Done,
    /// Given up.
    Cancelled,
}

/// `POST /hub/tasks/`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTask {
    /// The record's id; minted when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub id: Option<String>,
    /// What is to be done.
    #[serde(deserialize_with = "line")]
    #[schema(min_length = 1)]
    pub title: String,
    /// How far it is.
    #[serde(default)]
    pub status: TaskStatus,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// How much it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// The workplan it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workplan: Option<String>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// Anything structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
}

/// `PATCH /hub/tasks/{id}`: what changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskPatch {
    /// What is to be done.
    #[serde(default, deserialize_with = "kept_line", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How far it is.
    #[serde(default, deserialize_with = "kept", skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// How much it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// The workplan it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workplan: Option<String>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// Anything structured; named parts change, others stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
}

/// `POST /hub/tasks/bulk-status-sync`: in order, all or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusSync {
    /// At most 512.
    #[schema(min_items = 1, max_items = 512)]
    pub tasks: Vec<TaskStatusChange>,
}

/// One task of a sync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskStatusChange {
    /// Which.
    pub id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// The version the caller saw; without it any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_whole() {
        for (json, good) in [
            (r#"{"title":"t"}"#, true),
            (r#"{"title":"t","status":"in_progress","meta":{"a":[1]}}"#, true),
            (r#"{"title":" "}"#, false),
            (r#"{"status":"todo"}"#, false),
            (r#"{"title":"t","status":"paused"}"#, false),
            (r#"{"title":"t","version":3}"#, false),
            (r#"{"title":"t","meta":1}"#, false),
        ] {
            assert_eq!(serde_json::from_str::<NewTask>(json).is_ok(), good, "{json}");
        }
        let event = r#"{"input_tokens":1,"output_tokens":2,"occurred_at":"yesterday"}"#;
        assert!(serde_json::from_str::<NewTokenEvent>(event).is_err());
        assert!(serde_json::from_str::<NewTokenEvent>(r#"{"input_tokens":-1,"output_tokens":2}"#).is_err());
    }

    #[test]
    fn a_patch_may_take_away_only_what_may_be_absent() {
        for (json, good) in [
            (r#"{"description":null}"#, true),
            (r#"{"status":"done"}"#, true),
            (r#"{"meta":{"a":null}}"#, true),
            (r#"{"title":null}"#, false),
            (r#"{"title":""}"#, false),
            (r#"{"status":null}"#, false),
            (r#"{"id":"x"}"#, false),
        ] {
            assert_eq!(serde_json::from_str::<TaskPatch>(json).is_ok(), good, "{json}");
        }
    }
}
