//! Plans: decisions and workplans.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::field::{kept, kept_line, line};

/// How far a decision is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionStatus {
    /// Waiting for an answer.
    #[default]
    Open,
    /// Answered.
    Resolved,
}

/// `POST /hub/decisions/`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDecision {
    /// The record's id; minted when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub id: Option<String>,
    /// What is to be decided.
    #[serde(deserialize_with = "line")]
    #[schema(min_length = 1)]
    pub title: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Between what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
    /// Who is to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decider: Option<String>,
    /// The task it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The workplan it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workplan: Option<String>,
    /// Anything structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
}

/// `PATCH /hub/decisions/{id}`: what changes. How it was decided is said by resolving it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionPatch {
    /// What is to be decided.
    #[serde(default, deserialize_with = "kept_line", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Between what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
    /// Who is to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decider: Option<String>,
    /// The task it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The workplan it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workplan: Option<String>,
    /// Anything structured; named parts change, others stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
}

/// `POST /hub/decisions/{id}/resolve`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolutionText {
    /// What was decided.
    #[serde(deserialize_with = "line")]
    #[schema(min_length = 1)]
    pub resolution: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
}

/// What resolving writes into a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resolution {
    /// Resolved.
    pub status: DecisionStatus,
    /// What was decided.
    pub resolution: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
    /// By whom.
    pub resolved_by: String,
}

/// How far a workplan is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkplanStatus {
    /// Not begun.
    Draft,
    /// Under way.
    #[default]
    Active,
    /// Finished.
    Done,
    /// Put away.
    Archived,
}

/// `POST /hub/workplans/`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorkplan {
    /// The record's id; minted when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub id: Option<String>,
    /// What it is about.
    #[serde(deserialize_with = "line")]
    #[schema(min_length = 1)]
    pub title: String,
    /// How far it is.
    #[serde(default)]
    pub status: WorkplanStatus,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Who answers for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Its tasks, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<String>>,
    /// Anything structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
}

/// `PATCH /hub/workplans/{id}`: what changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkplanPatch {
    /// What it is about.
    #[serde(default, deserialize_with = "kept_line", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How far it is.
    #[serde(default, deserialize_with = "kept", skip_serializing_if = "Option::is_none")]
    pub status: Option<WorkplanStatus>,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Who answers for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Its tasks, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<String>>,
    /// Anything structured; named parts change, others stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_resolved_by_resolving_it_alone() {
        assert!(serde_json::from_str::<NewDecision>(r#"{"title":"t","status":"resolved"}"#).is_err());
        assert!(serde_json::from_str::<DecisionPatch>(r#"{"status":"resolved"}"#).is_err());
        assert!(serde_json::from_str::<ResolutionText>(r#"{"rationale":"because"}"#).is_err());
        assert!(serde_json::from_str::<ResolutionText>(r#"{"resolution":"yes"}"#).is_ok());
    }

    #[test]
    fn a_workplan_keeps_its_title_and_status() {
        for (json, good) in [
            (r#"{"summary":null}"#, true),
            (r#"{"status":"archived"}"#, true),
            (r#"{"status":null}"#, false),
            (r#"{"title":null}"#, false),
        ] {
            assert_eq!(serde_json::from_str::<WorkplanPatch>(json).is_ok(), good, "{json}");
        }
    }
}
