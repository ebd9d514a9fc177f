//! The two windows: what is undelivered, what is untold.

use std::time::Duration;

use model::{Cursor, DeliveryRung, ErrorCode, MemberId, MemberKind};

use super::Bench;
use super::town::*;
use crate::*;

pub async fn mail_comes_oldest_first_with_everything_a_recipient_needs(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let mut first = text("@carl", "a", "one");
    first.deliver_by = Some(ledger.now().await.unwrap() + Duration::from_secs(60));
    let receipt = accepted(&*ledger, &jane, first.clone()).await;
    accepted(&*ledger, &jane, text("#t", "b", "nobody subscribed")).await;
    let by_topic = accepted(&*ledger, &jane, mentioning(text("#t", "c", "two"), &["carl"])).await;
    let rows = mail(&*ledger, &carl).await;
    let expected = MailRow {
        id: receipt.broker_message_id,
        recipient: carl.id(),
        sender: jane.id(),
        sender_name: member_name("jane"),
        client_message_id: "a".parse().unwrap(),
        place: Place { conversation: receipt.conversation, name: ConversationName::Dm(member_name("jane")) },
        history_id: 1,
        cursor: Cursor::After { at: receipt.accepted_at, id: receipt.broker_message_id, epoch: 0 },
        created_at: receipt.accepted_at,
        envelope: b"one".to_vec(),
        deliver_by: first.deliver_by,
        read_at: None,
        redelivered: false,
        again: None,
    };
    assert_eq!((rows.len(), &rows[0]), (2, &expected));
    let topic_place =
        Place { conversation: by_topic.conversation, name: ConversationName::Topic(topic("t")) };
    assert_eq!((rows[1].history_id, &rows[1].place), (2, &topic_place));
    assert_eq!(mail(&*ledger, &jane).await, [], "a sender is no recipient of its topic message");
}

pub async fn a_window_leaves_out_what_is_unacked_and_stops_at_its_limit(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let bot = ledger.register_member(&carl.link, &member_name("bot"), MemberKind::Agent).await.unwrap();
    for n in 0..6 {
        let to = if n % 2 == 0 { "@carl" } else { "@bot" };
        accepted(&*ledger, &jane, text(to, &format!("m{n}"), &n.to_string())).await;
    }
    let take = async |unacked: &[(model::MessageId, MemberId)], limit| -> Vec<String> {
        let rows = ledger.mail(&carl.link, unacked, limit).await.unwrap();
        rows.into_iter().map(|row| String::from_utf8(row.envelope).unwrap()).collect()
    };
    assert_eq!(take(&[], 4).await, ["0", "1", "2", "3"]);
    let rows = mail(&*ledger, &carl).await;
    let unacked: Vec<_> = rows.iter().take(3).map(|row| (row.id, row.recipient)).collect();
    assert_eq!(take(&unacked, 2).await, ["3", "4"]);
    let other_recipient = [(rows[0].id, bot.member().id)];
    assert_eq!(take(&other_recipient, 1).await, ["0"], "a row is named by message and recipient");
    assert_eq!(take(&[], 0).await, [""; 0]);
}

pub async fn acked_rows_leave_the_window_and_rungs_only_rise(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("@carl", "a", "hi")).await;
    let row = mail(&*ledger, &carl).await.remove(0);
    let order = [
        (DeliveryRung::Delivered, DeliveryRung::Delivered),
        (DeliveryRung::Engaged, DeliveryRung::Engaged),
        (DeliveryRung::Notified, DeliveryRung::Engaged),
        (DeliveryRung::Expired, DeliveryRung::Engaged),
        (DeliveryRung::Delivered, DeliveryRung::Engaged),
        (DeliveryRung::Processed, DeliveryRung::Processed),
    ];
    for (told, held) in order {
        let acked = ledger.ack(&carl.via(), vec![ack(&row, told)]).await.unwrap();
        assert_eq!(acked, [AckedRow { id: row.id, recipient: row.recipient, rung: told }]);
        assert_eq!(rungs(&*ledger, receipt.broker_message_id).await[0].1, held, "told {told}");
        assert_eq!(mail(&*ledger, &carl).await, []);
    }
    let facts = ledger.explain(&Wanted::Message(row.id)).await.unwrap().remove(0).accepted.unwrap();
    let delivery = &facts.deliveries[0];
    let at = Some(row.created_at);
    assert_eq!(
        [delivery.delivered_at, delivery.notified_at, delivery.engaged_at, delivery.processed_at],
        [at; 4]
    );
    assert_eq!((delivery.ended_at, &delivery.ended_code), (None, &None));
}

/// The last push was stored, its ack came after the row had ended.
pub async fn ce7_a_late_ack_is_truth_from_any_state(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let first = accepted(&*ledger, &jane, text("@carl", "a", "expires")).await;
    let second = accepted(&*ledger, &jane, text("@carl", "b", "poison")).await;
    let rows = mail(&*ledger, &carl).await;
    ledger.ack(&carl.via(), vec![ack(&rows[0], DeliveryRung::Expired)]).await.unwrap();
    let poison = Nack { id: rows[1].id, recipient: rows[1].recipient, code: "too_large".into() };
    let ended = ledger.nack(&carl.link, vec![poison.clone()]).await.unwrap();
    assert_eq!(ended[0].rung, DeliveryRung::DeadLetter);
    assert_eq!(mail(&*ledger, &carl).await, []);
    let told: Vec<_> =
        receipts(&*ledger, &jane).await.into_iter().map(|row| (row.rung, row.ended_code)).collect();
    let poisoned = (DeliveryRung::DeadLetter, Some("too_large".to_owned()));
    assert_eq!(told, [(DeliveryRung::Expired, None), poisoned]);
    for row in &rows {
        ledger.ack(&carl.via(), vec![ack(row, DeliveryRung::Delivered)]).await.unwrap();
    }
    ledger.nack(&carl.link, vec![poison]).await.unwrap();
    for receipt in [first, second] {
        let held = rungs(&*ledger, receipt.broker_message_id).await;
        assert_eq!(held, [("carl".to_owned(), DeliveryRung::Delivered)]);
    }
    let told = receipts(&*ledger, &jane).await;
    assert!(
        told.iter().all(|row| row.rung == DeliveryRung::Delivered && row.ended_code.is_none()),
        "{told:?}"
    );
}

pub async fn an_ack_counts_only_for_members_at_home(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("@carl", "a", "hi")).await;
    let row = mail(&*ledger, &carl).await.remove(0);
    let foreign = vec![ack(&row, DeliveryRung::Delivered)];
    assert_eq!(ledger.ack(&jane.via(), foreign.clone()).await.unwrap(), []);
    assert_eq!(ledger.ack(&Via::Broker, foreign).await.unwrap(), []);
    let nack = Nack { id: row.id, recipient: row.recipient, code: "x".into() };
    assert_eq!(ledger.nack(&jane.link, vec![nack]).await.unwrap(), []);
    assert_eq!(rungs(&*ledger, receipt.broker_message_id).await[0].1, DeliveryRung::Accepted);
    // A row the ledger lost: confirmed, or the node would tell it for ever.
    let lost = Ack { id: model::MessageId::from_bytes([9; 16]), ..ack(&row, DeliveryRung::Processed) };
    let confirmed = ledger.ack(&carl.via(), vec![lost]).await.unwrap();
    assert_eq!(confirmed, [AckedRow { id: lost.id, recipient: lost.recipient, rung: lost.rung }]);
}

pub async fn the_broker_acks_for_the_members_it_hosts(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let ci = ledger.host_member(&member_name("ci"), MemberKind::Service).await.unwrap();
    let receipt = accepted(&*ledger, &jane, text("@ci", "a", "hi")).await;
    let row = Ack {
        id: receipt.broker_message_id,
        recipient: ci.member().id,
        rung: DeliveryRung::Notified,
        at: receipt.accepted_at,
        read_at: Some(receipt.accepted_at),
        place: None,
    };
    assert_eq!(ledger.ack(&jane.via(), vec![row]).await.unwrap(), []);
    assert_eq!(ledger.ack(&Via::Broker, vec![row]).await.unwrap().len(), 1);
    assert_eq!(rungs(&*ledger, receipt.broker_message_id).await[0].1, DeliveryRung::Notified);
}

pub async fn instants_from_the_future_are_cut_to_now(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    accepted(&*ledger, &jane, text("@carl", "a", "hi")).await;
    let row = mail(&*ledger, &carl).await.remove(0);
    let late = ledger.now().await.unwrap() + Duration::from_secs(3600);
    let lie = Ack { at: late, read_at: Some(late), ..ack(&row, DeliveryRung::Delivered) };
    ledger.ack(&carl.via(), vec![lie]).await.unwrap();
    let facts = ledger.explain(&Wanted::Message(row.id)).await.unwrap().remove(0).accepted.unwrap();
    assert!(facts.deliveries[0].delivered_at.unwrap() < late);
    assert!(facts.deliveries[0].read_at.unwrap() < late);
}

pub async fn receipts_are_told_until_they_are_acked_and_again_when_they_rise(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("@carl", "a", "hi")).await;
    assert_eq!(receipts(&*ledger, &jane).await, [], "accepted was told with the accept");
    let row = mail(&*ledger, &carl).await.remove(0);
    ledger.ack(&carl.via(), vec![ack(&row, DeliveryRung::Delivered)]).await.unwrap();
    let expected = ReceiptRow {
        id: receipt.broker_message_id,
        sender: jane.id(),
        client_message_id: "a".parse().unwrap(),
        recipient: carl.id(),
        rung: DeliveryRung::Delivered,
        at: row.created_at,
        ended_code: None,
    };
    assert_eq!(receipts(&*ledger, &jane).await, std::slice::from_ref(&expected));
    assert_eq!(receipts(&*ledger, &carl).await, []);
    let unacked = [(expected.id, expected.recipient)];
    assert_eq!(ledger.receipts(&jane.link, &unacked, 10).await.unwrap(), []);
    let told = |rung| ReceiptAck { id: receipt.broker_message_id, recipient: carl.id(), rung };
    ledger.receipts_ack(&carl.link, vec![told(DeliveryRung::Delivered)]).await.unwrap();
    assert_eq!(receipts(&*ledger, &jane).await.len(), 1, "only the sender's node can say it was told");
    ledger.receipts_ack(&jane.link, vec![told(DeliveryRung::Processed)]).await.unwrap();
    assert_eq!(receipts(&*ledger, &jane).await, []);
    ledger.ack(&carl.via(), vec![ack(&row, DeliveryRung::Notified)]).await.unwrap();
    assert_eq!(
        receipts(&*ledger, &jane).await.len(),
        1,
        "nobody can have been told a rung before it was reached"
    );
}

pub async fn topic_rungs_are_kept_and_not_told(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, mentioning(text("#t", "a", "hi"), &["carl"])).await;
    let row = mail(&*ledger, &carl).await.remove(0);
    ledger.ack(&carl.via(), vec![ack(&row, DeliveryRung::Delivered)]).await.unwrap();
    let expected = [("carl".to_owned(), DeliveryRung::Delivered)];
    assert_eq!(rungs(&*ledger, receipt.broker_message_id).await, expected);
    assert_eq!(receipts(&*ledger, &jane).await, []);
    let told = ReceiptAck { id: row.id, recipient: row.recipient, rung: DeliveryRung::Delivered };
    ledger.receipts_ack(&jane.link, vec![told]).await.unwrap();
    assert_eq!(receipts(&*ledger, &jane).await, []);
}

pub async fn a_fenced_link_sees_and_changes_nothing(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("@carl", "a", "hi")).await;
    let row = mail(&*ledger, &carl).await.remove(0);
    come_back(&*ledger, "carl", "1").await;
    let old = &carl.link;
    let nack = Nack { id: row.id, recipient: row.recipient, code: "x".into() };
    let told = ReceiptAck { id: row.id, recipient: row.recipient, rung: DeliveryRung::Delivered };
    let codes = [
        ledger.mail(old, &[], 1).await.unwrap_err().code(),
        ledger.receipts(old, &[], 1).await.unwrap_err().code(),
        ledger.ack(&carl.via(), vec![ack(&row, DeliveryRung::Delivered)]).await.unwrap_err().code(),
        ledger.nack(old, vec![nack]).await.unwrap_err().code(),
        ledger.receipts_ack(old, vec![told]).await.unwrap_err().code(),
        ledger.register_member(old, &member_name("bot"), MemberKind::Agent).await.unwrap_err().code(),
    ];
    assert_eq!(codes, [ErrorCode::LinkReplaced; 6]);
    assert_eq!(rungs(&*ledger, receipt.broker_message_id).await[0].1, DeliveryRung::Accepted);
}

/// A delivery that came without a word would wait for the safety poll, and nobody would see why.
pub async fn whatever_is_left_to_be_seen_to_stirs(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    ledger.create_topic(jane.id(), &topic("read")).await.unwrap();
    ledger.create_topic(jane.id(), &topic("pushed")).await.unwrap();
    ledger.subscribe(carl.id(), &topic("read")).await.unwrap();
    ledger.create_webhook(super::webhook::new("hook", &["pushed"])).await.unwrap();
    let mut question = text("#own", "question", "may I?");
    question.expects_input = true;
    let messages = [
        (&jane, text("#read", "subscriber", "hi")),
        (&jane, text("#pushed", "endpoint", "hi")),
        (&jane, text("@carl", "direct", "hi")),
        (&jane, mentioning(text("#own", "mention", "hi"), &["carl"])),
        (&jane, question),
        (&carl, text("#own", "answer", "yes")),
    ];
    let mut stirred = ledger.stirred();
    for (from, message) in messages {
        let id = message.client_message_id.clone();
        stirred.mark_unchanged();
        accepted(&*ledger, from, message).await;
        assert!(stirs(&mut stirred).await, "{id}");
    }
    let row = mail(&*ledger, &carl).await.remove(0);
    stirred.mark_unchanged();
    ledger.ack(&carl.via(), vec![ack(&row, DeliveryRung::Delivered)]).await.unwrap();
    assert!(stirs(&mut stirred).await, "a rung that climbed");
}

async fn stirs(stirred: &mut tokio::sync::watch::Receiver<()>) -> bool {
    // Another process's word takes a moment.
    matches!(tokio::time::timeout(Duration::from_secs(10), stirred.changed()).await, Ok(Ok(())))
}
