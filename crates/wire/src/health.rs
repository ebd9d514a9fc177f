//! What a broker says of itself at `/healthz` and `/readyz`, to any caller.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A broker's own word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrokerHealth {
    /// `ok` or `ready`.
    pub status: String,
    /// What an operator has to look at although the broker serves; absent when there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<BrokerProblem>,
}

/// Something an operator has to look at. It names no member, no message and no address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrokerProblem {
    /// Which: `clock_ahead`, `books_contradict` or `store_not_durable`.
    pub code: String,
    /// What was found, and what helps.
    pub message: String,
}
