//! The one shape of a refusal.

use model::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// `{"error": code, "message": …, …}` as it is read and written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The code's text. A string, not a code: a newer peer may use one we do not know.
    pub error: String,
    /// One sentence for people.
    pub message: String,
    /// Whatever else belongs to this refusal (`conflict`, `retry_after_ms`, `candidates` …).
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A refusal on its way to becoming an answer: code, sentence, further fields.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refused {
    /// What it is.
    pub code: ErrorCode,
    /// One sentence for people; never a secret, never a caller's body.
    pub message: String,
    /// Further fields of the JSON body.
    pub more: Map<String, Value>,
}

impl Refused {
    /// A refusal in the code's own words.
    pub fn plain(code: ErrorCode) -> Self {
        Self::new(code, code.meaning())
    }

    /// A refusal with a sentence of its own.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), more: Map::new() }
    }

    /// Adds a field.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }
}

impl From<model::error::Malformed> for Refused {
    fn from(malformed: model::error::Malformed) -> Self {
        Refused::new(ErrorCode::InvalidRequest, malformed.to_string()).with("field", malformed.field)
    }
}

impl From<Refused> for ErrorBody {
    fn from(refused: Refused) -> Self {
        Self { error: refused.code.code().to_owned(), message: refused.message, more: refused.more }
    }
}
