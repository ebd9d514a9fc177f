//! What a node tells its broker about a message.

use model::{ClientMessageId, DeliveryRung, MemberId, MessageId};
use serde_json::json;
use wire::ask::{AnswerResult, NodeQuestion, NodeRecord};
use wire::link::{NodeAsk, Rows, ToNode};

use crate::broker::Broker;
use crate::home::Home;

async fn held(
    broker: &Broker,
    n: u64,
    id: &str,
    sender: Option<MemberId>,
    message: Option<MessageId>,
) -> Vec<NodeRecord> {
    let client_message_id: ClientMessageId = id.parse().unwrap();
    let question = NodeQuestion::Explain { client_message_id, sender, broker_message_id: message };
    broker.push(ToNode::Ask(NodeAsk { n, question })).await;
    let text = broker
        .until("an answer", |books| {
            let answer = books.answers_heard.iter().find(|answer| answer.n == n)?;
            match &answer.result {
                AnswerResult::Ok(value) => Some(value.get().to_owned()),
                AnswerResult::Refused { error, .. } => panic!("{}", error.error),
            }
        })
        .await;
    assert!(!text.contains("secret words"), "bodies stay on the node: {text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_node_tells_its_rows_about_an_id_and_never_a_body() {
    let (broker, home) = Home::linked().await;
    let sent = json!({"to": "@tom", "body": "secret words", "client_message_id": "out1"});
    home.unix().post("/v1/send", &sent).await;
    broker.until_accepted(1).await;
    let mail = broker.mail("in1", "secret words");
    let (message, person) = (mail.message.id, broker.books().person.id);
    broker.push(ToNode::Mail(Rows { rows: vec![mail] })).await;
    broker.until("an ack", |books| (!books.acks.is_empty()).then_some(())).await;
    let records = held(&broker, 1, "out1", Some(person), None).await;
    let [NodeRecord::Outbox { sender, attempts: 1, last_error: None, .. }] = records.as_slice() else {
        panic!("one row of the outbox, not {records:?}");
    };
    assert_eq!(sender.as_str(), broker.books().person.name.as_str());
    let records = held(&broker, 2, "in1", None, Some(message)).await;
    let [NodeRecord::Inbox { rung: DeliveryRung::Delivered, .. }] = records.as_slice() else {
        panic!("one row of the inbox, not {records:?}");
    };
    assert_eq!(
        held(&broker, 3, "out1", Some(MemberId::from_bytes([7; 16])), None).await,
        [],
        "another sender's id"
    );
    assert_eq!(held(&broker, 4, "never", None, Some(MessageId::from_bytes([7; 16]))).await, []);
}
