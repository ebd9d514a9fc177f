//! What a tool says: a text for whoever reads, and the same facts as data.

use model::ErrorCode;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Map, Value};
use wire::ErrorBody;

/// A result.
pub(crate) struct Told {
    text: String,
    facts: Value,
}

/// A refusal: what, what is still true, and what helps.
#[derive(Debug)]
pub(crate) struct Trouble {
    code: String,
    message: String,
    still: Option<&'static str>,
    fix: Option<String>,
    more: Map<String, Value>,
}

impl Told {
    pub(crate) fn new(text: String, facts: &impl Serialize) -> Self {
        let facts = serde_json::to_value(facts).expect("results are made of maps with text keys");
        Self { text, facts }
    }
}

impl From<Told> for CallToolResult {
    fn from(told: Told) -> Self {
        let mut result = CallToolResult::success(vec![ContentBlock::text(told.text)]);
        result.structured_content = Some(told.facts);
        result
    }
}

impl Trouble {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code: code.code().to_owned(),
            message: message.into(),
            still: None,
            fix: None,
            more: Map::new(),
        }
    }

    /// What the daemon said, with the remedy of its code.
    pub(crate) fn refused(body: ErrorBody) -> Self {
        let fix = ErrorCode::parse(&body.error).map(|code| match code {
            // A tool's caller always names an id, so leaving it out is no way.
            ErrorCode::IdempotencyKeyReused => "Choose a new client_message_id for other words.".to_owned(),
            other => other.remedy().to_owned(),
        });
        Self { code: body.error, message: body.message, still: None, fix, more: body.more }
    }

    pub(crate) fn still(mut self, sentence: &'static str) -> Self {
        self.still = Some(sentence);
        self
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Whether it is this refusal.
    pub(crate) fn is(&self, code: ErrorCode) -> bool {
        self.code == code.code()
    }

    pub(crate) fn code(&self) -> &str {
        &self.code
    }
}

impl From<Trouble> for CallToolResult {
    fn from(trouble: Trouble) -> Self {
        let mut text = format!("refused ({}): {}", trouble.code, trouble.message);
        let mut facts = trouble.more;
        if let Some(still) = trouble.still {
            text = format!("{text} {still}");
        }
        if let Some(fix) = trouble.fix {
            text = format!("{text}\nfix: {fix}");
            facts.insert("fix".to_owned(), fix.into());
        }
        facts.insert("error".to_owned(), trouble.code.into());
        facts.insert("message".to_owned(), trouble.message.into());
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.structured_content = Some(Value::Object(facts));
        result
    }
}
