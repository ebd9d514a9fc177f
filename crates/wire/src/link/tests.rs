use model::{DeliveryRung, ErrorCode, Fingerprint, Timestamp};
use serde_json::value::RawValue;

use super::*;
use crate::log;
use crate::message::{Message, MessageFields};

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
    serde_json::from_str(r##"{"client_message_id":"a","to":"#alerts","body":"hi","meta":{"a":1}}"##).unwrap()
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
    let frame = ToBroker::Send(Send { n: 1, sender: ID.parse().unwrap(), messages: vec![good.clone(), bad] });
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
    let told = Ack { row: ack.clone(), at, read_at: Some(at), place: Some(7) };
    to_broker_and_back(ToBroker::Ack(Rows { rows: vec![told] }));
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
        again: Some(DeliveryRung::Notified),
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
