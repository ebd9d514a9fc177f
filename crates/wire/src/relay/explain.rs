//! `GET /v1/relay/explain/{id}`: what a relay knows of an envelope's id or of an `Idempotency-Key`.

use model::Timestamp;
use serde::{Deserialize, Serialize};

use super::EnvelopeView;
use crate::text;

/// A relay's word on an id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelayExplained {
    /// Where its writes go.
    pub upstream: String,
    /// What it knows; nothing when it never saw the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<RelayFound>,
}

/// What a relay knows of a write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelayFound {
    /// Where the envelope is; `refused` for a write that was not stored.
    pub verdict: String,
    /// The same in a sentence.
    pub sentence: String,
    /// Why, as clients match it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Whether nothing more happens by itself.
    pub needs_person: bool,
    /// What happened, in order.
    pub steps: Vec<RelayStep>,
    /// What happens now, in a sentence.
    pub next: String,
    /// Commands to paste.
    pub fix: Vec<String>,
    /// The envelope, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<EnvelopeView>,
}

/// Something that happened to an envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayStep {
    /// `queued`, `tried`, a state it ended in, `late_ack`, or `refused`.
    pub step: String,
    /// When.
    #[serde(with = "text")]
    pub at: Timestamp,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
