//! What is pushed until it is acknowledged.

use std::collections::HashSet;
use std::time::Duration;

use model::{DeliveryRung, limits};
use wire::link::{AckRef, Nack, ReceiptRow, Rows, ToBroker, ToNode};

use crate::node::{Link, accepted, item};
use crate::scene::Scene;

async fn fill(link: &mut Link, to: &str, count: usize) {
    for first in (0..count).step_by(limits::FRAME_MESSAGES_MAX) {
        let rows = first..count.min(first + limits::FRAME_MESSAGES_MAX);
        let messages = rows.map(|n| item(to, &format!("m{n}"), "hi").1).collect();
        for outcome in link.send(messages).await {
            accepted(outcome);
        }
    }
}

async fn receipts(link: &mut Link) -> Vec<ReceiptRow> {
    link.await_frame(|frame| match frame {
        ToNode::Receipts(rows) => Ok(rows.rows),
        other => Err(other.into()),
    })
    .await
}

#[tokio::test]
async fn what_is_not_acknowledged_comes_again_on_the_next_link_and_what_is_does_not() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let node = scene.joined("tom").await;
    let mut tom = node.link().await;
    fill(&mut jane, "@tom", 3).await;
    let mail = tom.mail_rows(3).await;
    tom.ack(&mail[..1], DeliveryRung::Delivered).await;
    drop(tom);
    let mut again = node.link().await;
    let ids: Vec<_> =
        again.mail_rows(2).await.iter().map(|row| row.message.fields.client_message_id.to_string()).collect();
    assert_eq!(ids, ["m1", "m2"]);
}

#[tokio::test]
async fn a_window_holds_256_rows_and_an_ack_makes_room_for_the_next() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    let total = limits::WINDOW_ROWS_MAX + 10;
    fill(&mut jane, "@tom", total).await;
    let mail = tom.mail_rows(limits::WINDOW_ROWS_MAX).await;
    assert_eq!(mail.len(), limits::WINDOW_ROWS_MAX);
    let places: Vec<u64> = mail.iter().map(|row| row.message.history_id).collect();
    assert_eq!(places, (1..=limits::WINDOW_ROWS_MAX as u64).collect::<Vec<_>>(), "in the order of the log");
    // A question answered after the window was filled shows that no further mail came before it.
    tom.ask::<serde_json::Value>(wire::ask::Question::Members).await.unwrap();
    tom.ack(&mail[..4], DeliveryRung::Delivered).await;
    let more = tom.mail_rows(4).await;
    assert_eq!(more.iter().map(|row| row.message.history_id).collect::<Vec<_>>(), [257, 258, 259, 260]);
}

#[tokio::test]
async fn a_full_window_without_an_ack_closes_the_link() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    fill(&mut jane, "@tom", limits::WINDOW_ROWS_MAX).await;
    tom.mail_rows(limits::WINDOW_ROWS_MAX).await;
    tokio::time::pause();
    let close = tom.close().await;
    assert_eq!(close.code, 4408);
    assert_eq!(close.reason, r#"{"kind":"stalled"}"#);
}

#[tokio::test]
async fn a_row_the_node_cannot_store_is_given_up_and_its_sender_told() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let node = scene.joined("tom").await;
    let mut tom = node.link().await;
    fill(&mut jane, "@tom", 2).await;
    let mail = tom.mail_rows(2).await;
    let nack = Nack { id: mail[0].message.id, recipient: mail[0].recipient, code: "poison".into() };
    tom.say(ToBroker::Nack(Rows { rows: vec![nack] })).await;
    let acked = tom
        .await_frame(|frame| match frame {
            ToNode::Acked(rows) => Ok(rows.rows),
            other => Err(other.into()),
        })
        .await;
    assert_eq!(acked[0].row.rung, DeliveryRung::DeadLetter);
    let told = receipts(&mut jane).await;
    assert_eq!((told[0].row.rung, told[0].ended_code.as_deref()), (DeliveryRung::DeadLetter, Some("poison")));
    drop(tom);
    let ids: Vec<_> = node.link().await.mail().await.iter().map(|row| row.message.id).collect();
    assert_eq!(ids, [mail[1].message.id], "poison stops nobody");
}

#[tokio::test]
async fn receipts_climb_and_come_again_until_they_are_acknowledged() {
    let scene = Scene::open().await;
    let home = scene.joined("jane").await;
    let mut jane = home.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    fill(&mut jane, "@tom", 1).await;
    let mail = tom.mail().await;
    tom.ack(&mail, DeliveryRung::Delivered).await;
    let told = receipts(&mut jane).await;
    assert_eq!(told[0].row.rung, DeliveryRung::Delivered);
    drop(jane);
    let mut jane = home.link().await;
    assert_eq!(receipts(&mut jane).await[0].row, told[0].row, "not acknowledged, so told again");
    jane.say(ToBroker::ReceiptsAck(Rows { rows: vec![told[0].row.clone()] })).await;
    tom.ack(&mail, DeliveryRung::Processed).await;
    assert_eq!(receipts(&mut jane).await[0].row.rung, DeliveryRung::Processed);
}

#[tokio::test]
async fn what_was_read_is_told_up_with_a_rung_and_stands_in_the_books() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    fill(&mut jane, "@tom", 1).await;
    let mail = tom.mail().await;
    assert!(mail[0].read_at.is_none());
    let acked = tom.ack(&mail, DeliveryRung::Notified).await;
    assert!(!acked[0].read);
    let read_at = Some(mail[0].message.created_at);
    let acked = tom.ack_read(&mail, DeliveryRung::Notified, read_at).await;
    assert!(acked[0].read, "the node may forget that it must tell");
    let question = wire::ask::Question::Explain { id: mail[0].message.id.to_string() };
    let explained: wire::ask::BrokerExplained = tom.ask(question).await.unwrap();
    assert_eq!(explained.records[0].recipients[0].read_at, read_at);
}

#[tokio::test]
async fn an_ack_of_a_strangers_row_changes_nothing() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let node = scene.joined("tom").await;
    let mut tom = node.link().await;
    let mut eve = scene.joined("eve").await.link().await;
    fill(&mut jane, "@tom", 1).await;
    let mail = tom.mail().await;
    let row = AckRef { id: mail[0].message.id, recipient: mail[0].recipient, rung: DeliveryRung::Processed };
    let at = mail[0].message.created_at;
    eve.say(ToBroker::Ack(Rows { rows: vec![wire::link::Ack { row, at, read_at: None, place: None }] }))
        .await;
    eve.ask::<serde_json::Value>(wire::ask::Question::Members).await.unwrap();
    drop(tom);
    assert_eq!(node.link().await.mail().await[0].message.id, mail[0].message.id);
}

#[tokio::test]
async fn a_topics_subscribers_get_it_and_its_sender_does_not() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    let mut eve = scene.joined("eve").await.link().await;
    accepted(jane.send_one("#alerts", "m1", "hi").await);
    let topic = "alerts".parse().unwrap();
    tom.ask::<wire::ask::Done>(wire::ask::Question::TopicSubscribe { topic }).await.unwrap();
    accepted(jane.send_one("#alerts", "m2", "ho").await);
    let mail = tom.mail().await;
    assert_eq!(mail[0].message.conversation_name.as_deref(), Some("#alerts"));
    let ids: HashSet<_> = mail.iter().map(|row| row.message.fields.client_message_id.to_string()).collect();
    assert_eq!(ids, HashSet::from(["m2".to_owned()]), "from the subscription on");
    let quiet = tokio::time::timeout(Duration::from_millis(200), async {
        tokio::select! {
            rows = jane.mail() => rows,
            rows = eve.mail() => rows,
        }
    });
    assert!(quiet.await.is_err(), "nobody else is a recipient");
}
