//! The frames by direction, and how a text becomes one.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{
    Ack, AckRef, Acked, Answer, Ask, MailRow, Nack, NegotiationRequest, NegotiationResponse, NodeAsk,
    ReceiptRow, Send, Sent,
};
use crate::error::ErrorBody;

/// Node → broker.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToBroker {
    /// First frame after the upgrade.
    FeatureNegotiationRequest(NegotiationRequest),
    /// One lane's next messages, in order.
    Send(Send),
    /// Rungs reached in this node's inbox; sent after their commit, and again for duplicates.
    Ack(Rows<Ack>),
    /// Rows this node cannot store.
    Nack(Rows<Nack>),
    /// Receipts this node has committed.
    ReceiptsAck(Rows<AckRef>),
    /// A question of a member at home here.
    Ask(Ask),
    /// The answer to the broker's own `ask`.
    Answer(Answer),
}

/// Broker → node.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToNode {
    /// Before any traffic.
    FeatureNegotiationResponse(NegotiationResponse),
    /// The answer to `send`, row by row in order.
    Sent(Sent),
    /// Messages for members at home on this node; at most a window's worth.
    Mail(Rows<MailRow>),
    /// Rungs the broker has committed.
    Acked(Rows<Acked>),
    /// Rungs of messages that members at home here sent.
    Receipts(Rows<ReceiptRow>),
    /// The answer to `ask`.
    Answer(Answer),
    /// A question about what the node holds.
    Ask(NodeAsk),
    /// Precedes a close and holds what its 123 bytes cannot.
    Error(ErrorBody),
}

/// A frame that is nothing but rows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Rows<T> {
    /// The rows.
    pub rows: Vec<T>,
}

/// A frame that cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum BadFrame {
    /// Not JSON, or not the shape its type asks for.
    #[error("frame does not parse: {0}")]
    Shape(#[from] serde_json::Error),
    /// A type this side does not know; link peers pass over it.
    #[error("frame type {0} is unknown")]
    UnknownType(String),
    /// A question this side does not know; it is refused by its number, or a newer node would lose its link.
    #[error("question {n} does not parse: {source}")]
    Question {
        /// Correlates.
        n: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

#[derive(Deserialize)]
struct Tag {
    r#type: String,
}

/// What is left of an [`Ask`] or a [`NodeAsk`] that does not parse.
#[derive(Deserialize)]
struct AskNumber {
    n: u64,
}

impl ToBroker {
    /// Reads a frame. The tag is read first and the frame second, because raw values cannot pass
    /// through a tagged enum.
    pub fn parse(text: &str) -> Result<ToBroker, BadFrame> {
        let Tag { r#type } = serde_json::from_str(text)?;
        Ok(match r#type.as_str() {
            "feature_negotiation_request" => ToBroker::FeatureNegotiationRequest(serde_json::from_str(text)?),
            "send" => ToBroker::Send(serde_json::from_str(text)?),
            "ack" => ToBroker::Ack(serde_json::from_str(text)?),
            "nack" => ToBroker::Nack(serde_json::from_str(text)?),
            "receipts_ack" => ToBroker::ReceiptsAck(serde_json::from_str(text)?),
            "ask" => ToBroker::Ask(parse_ask(text)?),
            "answer" => ToBroker::Answer(serde_json::from_str(text)?),
            _ => return Err(BadFrame::UnknownType(r#type)),
        })
    }

    /// The frame's text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("frames hold only what JSON can say")
    }
}

impl ToNode {
    /// Reads a frame; see [`ToBroker::parse`].
    pub fn parse(text: &str) -> Result<ToNode, BadFrame> {
        let Tag { r#type } = serde_json::from_str(text)?;
        Ok(match r#type.as_str() {
            "feature_negotiation_response" => ToNode::FeatureNegotiationResponse(serde_json::from_str(text)?),
            "sent" => ToNode::Sent(serde_json::from_str(text)?),
            "mail" => ToNode::Mail(serde_json::from_str(text)?),
            "acked" => ToNode::Acked(serde_json::from_str(text)?),
            "receipts" => ToNode::Receipts(serde_json::from_str(text)?),
            "answer" => ToNode::Answer(serde_json::from_str(text)?),
            "ask" => ToNode::Ask(parse_ask(text)?),
            "error" => ToNode::Error(serde_json::from_str(text)?),
            _ => return Err(BadFrame::UnknownType(r#type)),
        })
    }

    /// The frame's text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("frames hold only what JSON can say")
    }
}

fn parse_ask<A: DeserializeOwned>(text: &str) -> Result<A, BadFrame> {
    serde_json::from_str(text).map_err(|source| match serde_json::from_str::<AskNumber>(text) {
        Ok(AskNumber { n }) => BadFrame::Question { n, source },
        Err(_) => BadFrame::Shape(source),
    })
}
