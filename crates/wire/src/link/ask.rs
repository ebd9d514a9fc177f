//! Questions and answers, each way.

use model::MemberId;
use serde::{Deserialize, Serialize};

use super::{AnswerResult, NodeQuestion, Question};
use crate::text;

/// See [`super::ToBroker::Ask`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Ask {
    /// Correlates.
    pub n: u64,
    /// Who asks.
    #[serde(rename = "as", with = "text")]
    pub asker: MemberId,
    /// What.
    #[serde(flatten)]
    pub question: Question,
}

/// See [`super::ToNode::Ask`].
#[derive(Debug, Serialize, Deserialize)]
pub struct NodeAsk {
    /// Correlates.
    pub n: u64,
    /// What.
    #[serde(flatten)]
    pub question: NodeQuestion,
}

/// See [`super::ToNode::Answer`] and [`super::ToBroker::Answer`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Correlates.
    pub n: u64,
    /// What.
    pub result: AnswerResult,
}
