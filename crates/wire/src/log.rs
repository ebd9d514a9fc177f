//! Reading a log page by page.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::message::Message;

/// Which rows of a log. Without a place: the newest.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PageRequest {
    /// Rows before this cursor, for paging back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// How many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Rows from ONE read, so that what follows `cursor` joins them without gap or repeat.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Page {
    /// Oldest first.
    pub messages: Vec<Message>,
    /// The head of the log at this read.
    pub cursor: String,
    /// Where the page before this one ends; empty at the start.
    pub before: String,
    /// Whether there is a page before this one.
    pub has_more: bool,
}
