//! `/v1/link`: a node and its broker, JSON text frames. `n` correlates a question with its answer.

use std::collections::BTreeMap;

use model::{
    ClientMessageId, ConversationId, DeliveryRung, ErrorCode, Fingerprint, MemberId, MessageId, RowId,
    Timestamp,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::auth::{MemberRef, MeshRef};
use crate::error::ErrorBody;
use crate::message::Message;
use crate::text;

pub use crate::ask::{AnswerResult, MemberRow, NodeQuestion, Question, StatusAnswer, TopicRow};

/// Dedupe by the caller's id: required of every broker.
pub const FEATURE_DEDUPE: &str = "client_message_id_dedupe";
/// What happens to a second connection of one node: required of every broker.
pub const FEATURE_CONNECTIONS: &str = "concurrent_connection_policy";
/// The largest body.
pub const FEATURE_PAYLOAD: &str = "max_payload";

/// A newer connection of the same node took over.
pub const CLOSE_REPLACED: u16 = 4003;
/// Another connection of this node holds the link.
pub const CLOSE_ALREADY_CONNECTED: u16 = 4004;
/// The member was removed.
pub const CLOSE_REVOKED: u16 = 4002;
/// A required feature is missing.
pub const CLOSE_FEATURE_UNAVAILABLE: u16 = 4010;
/// A feature's parameter makes no sense.
pub const CLOSE_FEATURE_PARAM_INVALID: u16 = 4011;
/// A feature's parameter is below what safety needs.
pub const CLOSE_FEATURE_BELOW_FLOOR: u16 = 4012;
/// The window stayed full without an ack.
pub const CLOSE_STALLED: u16 = 4408;

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

/// See [`ToBroker::Send`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Send {
    /// Correlates.
    pub n: u64,
    /// A member at home on this node.
    #[serde(with = "text")]
    pub sender: MemberId,
    /// [`SendItem`]s kept raw, so that a malformed one is refused by row and not with its frame.
    pub messages: Vec<Box<RawValue>>,
}

/// See [`ToNode::Sent`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Sent {
    /// Correlates.
    pub n: u64,
    /// One per message asked.
    pub results: Vec<SendResult>,
}

/// See [`ToBroker::Ask`].
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

/// See [`ToNode::Ask`].
#[derive(Debug, Serialize, Deserialize)]
pub struct NodeAsk {
    /// Correlates.
    pub n: u64,
    /// What.
    #[serde(flatten)]
    pub question: NodeQuestion,
}

/// See [`ToNode::Answer`] and [`ToBroker::Answer`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Correlates.
    pub n: u64,
    /// What.
    pub result: AnswerResult,
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

/// What a node wants and holds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NegotiationRequest {
    /// Features without which this node does not work.
    pub require: Vec<String>,
    /// Features it would use.
    #[serde(default)]
    pub optional: Vec<String>,
    /// The inbox's epoch: a new one tells the broker that earlier deliveries may be seen again.
    pub inbox_epoch: String,
    /// Members at home here, so that a restored ledger gets them back.
    #[serde(default)]
    pub members: Vec<MemberRef>,
    /// Newest accepted rows, so that a restored ledger is noticed.
    #[serde(default)]
    pub done: Vec<DoneWitness>,
    /// The node's version, for people.
    #[serde(default)]
    pub version: String,
}

/// A row the node knows to be accepted.
#[derive(Debug, Serialize, Deserialize)]
pub struct DoneWitness {
    /// Who sent it.
    #[serde(with = "text")]
    pub sender: MemberId,
    /// Under which id.
    #[serde(with = "text")]
    pub client_message_id: ClientMessageId,
    /// What the broker called it.
    #[serde(with = "text")]
    pub broker_message_id: MessageId,
}

/// What the broker offers.
#[derive(Debug, Serialize, Deserialize)]
pub struct NegotiationResponse {
    /// Feature → parameters.
    pub supported: BTreeMap<String, Feature>,
    /// Required features it lacks; the broker closes with 4010 after this frame.
    #[serde(default)]
    pub missing_required: Vec<String>,
    /// Broker time.
    #[serde(with = "text")]
    pub now: Timestamp,
    /// This connection's epoch; an older one is fenced.
    pub link_epoch: u64,
    /// The mesh.
    pub mesh: MeshRef,
    /// Whether the broker lost rows this node knows to be accepted.
    #[serde(default)]
    pub restored: bool,
    /// Members at home on this node as the broker knows them: a first join learns its person here.
    #[serde(default)]
    pub members: Vec<MemberRef>,
    /// The broker's version, for people.
    #[serde(default)]
    pub version: String,
}

/// A feature's parameters.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Feature {
    /// Name → value; `version` is always there.
    pub params: BTreeMap<String, serde_json::Value>,
}

/// One message of a `send` frame.
#[derive(Debug, Serialize, Deserialize)]
pub struct SendItem {
    /// The outbox row: answers are matched by row and fingerprint.
    #[serde(with = "text")]
    pub row: RowId,
    /// What the sender's door froze.
    #[serde(with = "text")]
    pub request_fingerprint: Fingerprint,
    /// After which the broker refuses this copy.
    #[serde(with = "text")]
    pub send_deadline: Timestamp,
    /// The deadline in force, also when it was asked as a ttl.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub deliver_by: Option<Timestamp>,
    /// [`crate::MessageFields`], as they stand in the outbox.
    pub message: Box<RawValue>,
}

/// What is left of a [`SendItem`] that does not parse.
#[derive(Debug, Deserialize)]
pub struct SendItemRow {
    /// Which row to refuse.
    #[serde(with = "text")]
    pub row: RowId,
}

/// The broker's word on one row.
#[derive(Debug, Serialize, Deserialize)]
pub struct SendResult {
    /// Which.
    #[serde(with = "text")]
    pub row: RowId,
    /// What.
    #[serde(flatten)]
    pub outcome: SendOutcome,
}

/// See [`SendResult`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum SendOutcome {
    /// Committed, now (201) or before (200).
    Accepted(AcceptedRow),
    /// Refused.
    Refused {
        /// As HTTP would say it.
        status: u16,
        /// Why, and whatever belongs to it (`retry_after_ms`, `broker_fingerprint_prefix` …).
        #[serde(flatten)]
        error: ErrorBody,
    },
    /// A message before it was refused for now.
    NotTried,
}

/// Where an accepted message is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceptedRow {
    /// 201 or 200.
    pub status: u16,
    /// What was accepted: matched together with the row.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub request_fingerprint: Fingerprint,
    /// The broker's id.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub broker_message_id: MessageId,
    /// Its log.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub conversation: ConversationId,
    /// Its place there.
    pub history_id: u64,
    /// When it was committed.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// Whether an earlier copy did it.
    pub duplicate: bool,
    /// Whether the message row still exists.
    #[serde(default = "yes")]
    pub history_available: bool,
}

const fn yes() -> bool {
    true
}

/// A message for one recipient at home here.
#[derive(Debug, Serialize, Deserialize)]
pub struct MailRow {
    /// For whom.
    #[serde(with = "text")]
    pub recipient: MemberId,
    /// Who sent it.
    #[serde(with = "text")]
    pub sender_id: MemberId,
    /// The deadline in force, also when it was asked as a ttl.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub deliver_by: Option<Timestamp>,
    /// When the recipient read it, as far as the broker was told: an inbox that was lost learns it back.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    /// The message.
    pub message: Message,
}

/// A delivery by message and recipient; row numbers come back after a restore, these do not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckRef {
    /// The message.
    #[serde(with = "text")]
    pub id: MessageId,
    /// For whom.
    #[serde(with = "text")]
    pub recipient: MemberId,
    /// How far.
    #[serde(with = "text")]
    pub rung: DeliveryRung,
}

/// A rung reached at a recipient's node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ack {
    /// Which delivery, how far.
    #[serde(flatten)]
    pub row: AckRef,
    /// When, by the node's clock.
    #[serde(with = "text")]
    pub at: Timestamp,
    /// When the recipient read it, if it did.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
}

/// A rung the broker has committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acked {
    /// Which delivery, how far.
    #[serde(flatten)]
    pub row: AckRef,
    /// Whether the ack also said that it was read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read: bool,
}

/// A row that cannot be stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Nack {
    /// The message.
    #[serde(with = "text")]
    pub id: MessageId,
    /// For whom.
    #[serde(with = "text")]
    pub recipient: MemberId,
    /// Why.
    pub code: String,
}

/// A rung of a message that a member at home here sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReceiptRow {
    /// Which delivery, how far.
    #[serde(flatten)]
    pub row: AckRef,
    /// Who sent it.
    #[serde(with = "text")]
    pub sender: MemberId,
    /// Under which id.
    #[serde(with = "text")]
    pub client_message_id: ClientMessageId,
    /// When.
    #[serde(with = "text")]
    pub at: Timestamp,
    /// Why it ended, when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_code: Option<String>,
}

/// The code a refused row means.
pub fn refusal_code(status: u16, error: &ErrorBody) -> ErrorCode {
    crate::status::code_of(status, Some(&error.error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log;
    use crate::message::MessageFields;

    const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
    const ROW: &str = "01M7GH3C2R6V0D9QK1TJX4N8YE";

    fn to_broker_and_back(frame: ToBroker) -> (String, ToBroker) {
        let text = frame.text();
        let back = ToBroker::parse(&text).unwrap();
        assert_eq!(back.text(), text);
        (text, back)
    }

    fn to_node_and_back(frame: ToNode) -> (String, ToNode) {
        let text = frame.text();
        let back = ToNode::parse(&text).unwrap();
        assert_eq!(back.text(), text);
        (text, back)
    }

    fn fields() -> MessageFields {
        serde_json::from_str(r##"{"client_message_id":"a","to":"#alerts","body":"hi","meta":{"a":1}}"##)
            .unwrap()
    }

    #[test]
    fn a_send_frame_carries_its_messages_untouched_and_a_malformed_one_does_not_spoil_it() {
        let item = SendItem {
            row: ROW.parse().unwrap(),
            request_fingerprint: Fingerprint::from_bytes([1; 32]),
            send_deadline: Timestamp::from_micros(1),
            deliver_by: None,
            message: RawValue::from_string(serde_json::to_string(&fields()).unwrap()).unwrap(),
        };
        let good = RawValue::from_string(serde_json::to_string(&item).unwrap()).unwrap();
        let bad = RawValue::from_string(format!(r#"{{"row":"{ROW}","message":7}}"#)).unwrap();
        let frame =
            ToBroker::Send(Send { n: 1, sender: ID.parse().unwrap(), messages: vec![good.clone(), bad] });
        let (text, back) = to_broker_and_back(frame);
        assert!(text.starts_with(r#"{"type":"send","n":1,"#), "{text}");
        let ToBroker::Send(send) = back else { panic!("a send frame") };
        assert_eq!(send.messages[0].get(), good.get());
        assert!(serde_json::from_str::<SendItem>(send.messages[1].get()).is_err());
        assert_eq!(serde_json::from_str::<SendItemRow>(send.messages[1].get()).unwrap().row.to_string(), ROW);
    }

    #[test]
    fn every_other_frame_survives_the_way() {
        let ack =
            AckRef { id: ID.parse().unwrap(), recipient: ID.parse().unwrap(), rung: DeliveryRung::Delivered };
        let at = Timestamp::from_micros(1);
        to_broker_and_back(ToBroker::Ack(Rows {
            rows: vec![Ack { row: ack.clone(), at, read_at: Some(at) }],
        }));
        to_broker_and_back(ToBroker::ReceiptsAck(Rows { rows: vec![ack.clone()] }));
        let nack = Nack { id: ack.id, recipient: ack.recipient, code: "poison".into() };
        to_broker_and_back(ToBroker::Nack(Rows { rows: vec![nack] }));
        let question = Question::TopicHistory {
            topic: "alerts".parse().unwrap(),
            page: log::PageRequest { before: None, limit: Some(3) },
        };
        let (text, _) = to_broker_and_back(ToBroker::Ask(Ask { n: 2, asker: ack.recipient, question }));
        assert!(text.contains(r#""what":"topic_history""#), "{text}");
        let receipt = ReceiptRow {
            row: ack.clone(),
            sender: ack.recipient,
            client_message_id: "a".parse().unwrap(),
            at,
            ended_code: Some("poison".into()),
        };
        to_node_and_back(ToNode::Receipts(Rows { rows: vec![receipt] }));
        let (text, _) =
            to_node_and_back(ToNode::Acked(Rows { rows: vec![Acked { row: ack.clone(), read: false }] }));
        assert!(!text.contains("read"), "what is not said costs no bytes: {text}");
        let ok = AnswerResult::Ok(RawValue::from_string("[1,2]".into()).unwrap());
        to_node_and_back(ToNode::Answer(Answer { n: 2, result: ok }));
        let error = crate::Refused::plain(ErrorCode::TopicNotFound).with("retry_after_ms", 5).into();
        let refused = AnswerResult::Refused { status: 404, error };
        let (text, _) = to_node_and_back(ToNode::Answer(Answer { n: 2, result: refused }));
        assert!(text.contains(r#""error":"topic_not_found""#), "{text}");
        let message = Message {
            id: ack.id,
            conversation: ID.parse().unwrap(),
            conversation_name: Some("#alerts".into()),
            history_id: 1,
            sender: "jane".parse().unwrap(),
            created_at: at,
            cursor: "c".into(),
            redelivered: false,
            fields: fields(),
        };
        let mail = MailRow {
            recipient: ack.recipient,
            sender_id: ack.recipient,
            deliver_by: None,
            read_at: Some(at),
            message,
        };
        let (text, back) = to_node_and_back(ToNode::Mail(Rows { rows: vec![mail] }));
        assert!(text.contains(r#""body":"hi""#), "{text}");
        let ToNode::Mail(mail) = back else { panic!("a mail frame") };
        assert_eq!(mail.rows[0].message.fields.meta, fields().meta);
    }

    #[test]
    fn each_outcome_of_a_row_survives_the_way() {
        let accepted = SendOutcome::Accepted(AcceptedRow {
            status: 201,
            request_fingerprint: Fingerprint::from_bytes([1; 32]),
            broker_message_id: ID.parse().unwrap(),
            conversation: ID.parse().unwrap(),
            history_id: 7,
            created_at: Timestamp::from_micros(1),
            duplicate: false,
            history_available: true,
        });
        let error = crate::Refused::plain(ErrorCode::RateLimited).with("retry_after_ms", 250).into();
        let outcomes = [accepted, SendOutcome::Refused { status: 429, error }, SendOutcome::NotTried];
        let results =
            outcomes.into_iter().map(|outcome| SendResult { row: ROW.parse().unwrap(), outcome }).collect();
        let (text, back) = to_node_and_back(ToNode::Sent(Sent { n: 1, results }));
        assert!(text.contains(r#""outcome":"not_tried""#), "{text}");
        let ToNode::Sent(sent) = back else { panic!("a sent frame") };
        let SendOutcome::Refused { status, error } = &sent.results[1].outcome else { panic!("refused") };
        assert_eq!(refusal_code(*status, error), ErrorCode::RateLimited);
        assert_eq!(error.more["retry_after_ms"], 250);
    }

    #[test]
    fn unknown_fields_are_passed_over_and_unknown_types_named() {
        assert!(ToNode::parse(r#"{"type":"acked","rows":[],"from_the_future":1}"#).is_ok());
        assert!(
            matches!(ToNode::parse(r#"{"type":"novel"}"#), Err(BadFrame::UnknownType(name)) if name == "novel")
        );
        assert!(matches!(ToNode::parse("nonsense"), Err(BadFrame::Shape(_))));
    }
}
