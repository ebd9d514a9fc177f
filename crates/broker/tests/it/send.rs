//! A message over the link: accepted once, found again, refused by name.

use std::sync::Arc;
use std::time::Duration;

use model::{Clock, DeliveryRung, Timestamp};
use serde_json::json;
use wire::link::{SendOutcome, ToBroker, ToNode};

use crate::node::{FAR, accepted, item, item_of, item_with, raw, refused};
use crate::scene::{Props, Saturated, Scene};

#[tokio::test]
async fn a_message_is_accepted_pushed_acknowledged_and_its_sender_told() {
    let scene = Scene::open().await;
    let (mut jane, mut tom) =
        (scene.joined("jane").await.link().await, scene.joined("tom").await.link().await);
    let row = accepted(jane.send_one("@tom", "m1", "hi").await);
    assert_eq!((row.status, row.duplicate, row.history_id), (201, false, 1));
    let mail = tom.mail().await;
    assert_eq!(mail.len(), 1);
    let message = &mail[0].message;
    assert_eq!((message.id, message.conversation), (row.broker_message_id, row.conversation));
    assert_eq!((message.sender.as_str(), message.fields.body.as_str()), ("jane", "hi"));
    assert_eq!(message.conversation_name.as_deref(), Some("@jane"), "as the recipient calls it");
    assert_eq!(mail[0].sender_id, jane.person);
    assert!(!message.redelivered && !message.cursor.is_empty());
    let acked = tom.ack(&mail, DeliveryRung::Delivered).await;
    assert_eq!((acked[0].row.id, acked[0].row.rung), (row.broker_message_id, DeliveryRung::Delivered));
    let receipts = jane
        .await_frame(|frame| match frame {
            ToNode::Receipts(rows) => Ok(rows.rows),
            other => Err(other.into()),
        })
        .await;
    assert_eq!(receipts[0].client_message_id.as_str(), "m1");
    assert_eq!((receipts[0].row.recipient, receipts[0].row.rung), (tom.person, DeliveryRung::Delivered));
}

#[tokio::test]
async fn a_copy_is_a_duplicate_and_another_text_under_the_id_a_conflict() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let first = accepted(jane.send_one("#alerts", "m1", "hi").await);
    let again = accepted(jane.send_one("#alerts", "m1", "hi").await);
    assert_eq!((again.status, again.duplicate, again.history_available), (200, true, true));
    assert_eq!((again.broker_message_id, again.history_id), (first.broker_message_id, first.history_id));
    assert_eq!(again.created_at, first.created_at);
    let other = jane.send_one("#alerts", "m1", "ho").await;
    let (status, code, more) = refused(&other);
    assert_eq!((status, code), (409, "idempotency_key_reused"));
    assert_eq!(more["conflict"], "request_fingerprint_mismatch");
    assert_eq!(more["broker_fingerprint_prefix"], first.request_fingerprint.prefix());
    assert_eq!(more["client_message_id"], "m1");
}

#[tokio::test]
async fn two_senders_with_one_id_and_one_text_are_two_messages() {
    let scene = Scene::open().await;
    let (mut jane, mut tom) =
        (scene.joined("jane").await.link().await, scene.joined("tom").await.link().await);
    let one = accepted(jane.send_one("#alerts", "m1", "hi").await);
    let two = accepted(tom.send_one("#alerts", "m1", "hi").await);
    assert_eq!((one.status, two.status), (201, 201));
    assert_ne!(one.broker_message_id, two.broker_message_id);
    assert_eq!((one.history_id, two.history_id), (1, 2));
}

#[tokio::test]
async fn a_link_speaks_for_its_own_members_only() {
    let scene = Scene::open().await;
    let (mut jane, tom) = (scene.joined("jane").await.link().await, scene.joined("tom").await.link().await);
    accepted(jane.send_one("#alerts", "m1", "hi").await);
    let mut eve = scene.joined("eve").await.link().await;
    for member in [jane.person, tom.person, model::MemberId::from_bytes([9; 16])] {
        let n =
            eve.start_send(member, vec![item("#alerts", "m1", "hi").1, item("#alerts", "m2", "hi").1]).await;
        for result in eve.sent(n).await {
            let (status, code, more) = refused(&result.outcome);
            assert_eq!((status, code), (403, "not_at_home"));
            assert!(more.is_empty(), "nothing is told about ids of others: {more:?}");
        }
    }
}

#[tokio::test]
async fn a_malformed_message_is_refused_by_row_and_its_neighbours_go_on() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let (row, mut broken) = (item("#a", "x", "").0, Vec::new());
    for fields in [
        json!({"row": row.to_string()}),
        json!({"row": row.to_string(), "request_fingerprint": "00", "send_deadline": "2027-01-01T00:00:00Z", "message": {}}),
        json!({"row": row.to_string(), "request_fingerprint": "ab".repeat(32), "send_deadline": "2027-01-01T00:00:00Z",
            "message": {"client_message_id": "x", "to": "#a", "body": "hi"}}),
        json!({"row": row.to_string(), "request_fingerprint": "ab".repeat(32), "send_deadline": "2027-01-01T00:00:00Z",
            "message": {"client_message_id": "x", "to": "#a", "body": "x".repeat(65_537)}}),
    ] {
        broken.push(raw(&fields));
    }
    let (good, last) = (item("#a", "m1", "hi"), item("#a", "m2", "hi"));
    let mut messages = vec![good.1];
    messages.extend(broken);
    messages.push(last.1);
    let person = jane.person;
    let n = jane.start_send(person, messages).await;
    let results = jane.sent(n).await;
    assert_eq!(results[0].row, good.0);
    assert_eq!(results[5].row, last.0);
    let mut outcomes = results.into_iter().map(|result| result.outcome);
    accepted(outcomes.next().unwrap());
    for expected in
        [(400, "invalid_request"), (400, "invalid_request"), (400, "fingerprint_invalid"), (413, "too_large")]
    {
        let outcome = outcomes.next().unwrap();
        let (status, code, _) = refused(&outcome);
        assert_eq!((status, code), expected);
    }
    accepted(outcomes.next().unwrap());
}

#[tokio::test]
async fn only_a_frame_that_cannot_be_read_closes_the_link() {
    let scene = Scene::open().await;
    let node = scene.joined("jane").await;
    for unreadable in [
        "nonsense",
        r#"{"type":"send","n":1}"#,
        r#"{"type":"send","n":1,"sender":"01890a5d-ac96-774b-bcce-b302099a8057","messages":[{"no":"row"}]}"#,
        r#"{"type":"ack","rows":[{"id":"x"}]}"#,
    ] {
        let mut link = node.link().await;
        link.say_text(unreadable).await;
        let close = link.close().await;
        assert_eq!(close.code, 1007, "{unreadable}");
        let reason: serde_json::Value = serde_json::from_str(&close.reason).unwrap();
        assert_eq!(reason["kind"], "unreadable");
    }
    let mut link = node.link().await;
    link.say_text(r#"{"type":"from_the_future","x":1}"#).await;
    accepted(link.send_one("#a", "m1", "hi").await);
}

#[tokio::test]
async fn a_known_id_is_answered_while_the_limiter_lets_nothing_pass() {
    let scene = Scene::with(Props { limiter: Some(Arc::new(Saturated)), ..Props::default() }).await;
    let node = scene.joined("jane").await;
    let mut jane = node.link().await;
    let denied = jane.send_one("#a", "m1", "hi").await;
    let (status, code, more) = refused(&denied);
    assert_eq!((status, code, &more["retry_after_ms"]), (429, "rate_limited", &json!(1500)));
    // Committed as if the answer had been lost before the budget ran out.
    let draft: wire::MessageFields =
        serde_json::from_value(json!({"client_message_id": "m1", "to": "#a", "body": "hi"})).unwrap();
    let draft = draft.into_draft(Timestamp::from_micros(0)).unwrap();
    let submission = ledger::Submission {
        client_message_id: draft.client_message_id.clone(),
        fingerprint: model::Fingerprint::of(&draft),
        to: draft.to.clone(),
        mentions: vec![],
        expects_input: false,
        send_deadline: None,
        deliver_by: None,
        envelope: b"{}".to_vec(),
    };
    let lane =
        ledger::LaneSubmission { via: ledger::Via::Broker, sender: jane.person, messages: vec![submission] };
    ledger::Ledger::accept(scene.ledger.as_ref(), lane).await.unwrap();
    let known = accepted(jane.send_one("#a", "m1", "hi").await);
    assert_eq!((known.status, known.duplicate), (200, true));
}

#[tokio::test]
async fn a_copy_past_its_deadline_is_refused_but_a_committed_one_still_found() {
    let (props, clock) = Props::with_manual_clock();
    let scene = Scene::with(props).await;
    let mut jane = scene.joined("jane").await.link().await;
    let deadline = clock.now() + Duration::from_secs(60);
    let message =
        |id: &str| item_with(json!({"client_message_id": id, "to": "#a", "body": "hi"}), deadline).1;
    accepted(jane.send(vec![message("m1")]).await.remove(0));
    clock.advance(Duration::from_secs(60));
    assert_eq!(accepted(jane.send(vec![message("m1")]).await.remove(0)).status, 200);
    let late = jane.send(vec![message("m2")]).await;
    assert_eq!((refused(&late[0]).0, refused(&late[0]).1), (422, "send_deadline_passed"));
    let stale =
        json!({"client_message_id": "m3", "to": "#a", "body": "hi", "deliver_by": clock.now().to_string()});
    let stale = jane.send(vec![item_of(stale).1]).await;
    assert_eq!((refused(&stale[0]).0, refused(&stale[0]).1), (422, "deliver_by_passed"));
}

#[tokio::test]
async fn mail_carries_every_field_the_sender_asked_for() {
    let scene = Scene::open().await;
    let (mut jane, mut tom) =
        (scene.joined("jane").await.link().await, scene.joined("tom").await.link().await);
    let fields = json!({"client_message_id": "m1", "to": "@tom", "kind": "reply", "body": "hé\u{1F680}", "body_version": 1,
        "meta": {"b": 1, "a": {"c": [true, null]}}, "mentions": ["tom"], "reply_to": "r1", "corr_id": "c1",
        "priority": "now", "expects_input": true, "ttl": 3600, "hops": 3});
    accepted(jane.send(vec![item_of(fields.clone()).1]).await.remove(0));
    let mail = tom.mail().await;
    assert_eq!(serde_json::to_value(&mail[0].message.fields).unwrap(), fields);
    assert_eq!(mail[0].deliver_by, Some(FAR + Duration::from_secs(3600)), "the instant its node made");
}

#[tokio::test]
async fn a_mention_of_nobody_and_a_stranger_as_destination_are_refused_by_name() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let mention = json!({"client_message_id": "m1", "to": "#a", "body": "hi", "mentions": ["nobody"]});
    let outcome = jane.send(vec![item_of(mention).1]).await.remove(0);
    assert_eq!((refused(&outcome).0, refused(&outcome).1), (422, "mention_unknown"));
    let outcome = jane.send_one("@nobody", "m2", "hi").await;
    assert_eq!((refused(&outcome).0, refused(&outcome).1), (404, "member_not_found"));
    let SendOutcome::Refused { error, .. } = outcome else { unreachable!("matched above") };
    assert!(error.message.contains("nobody"), "{}", error.message);
    assert!(matches!(jane.send_one("@me", "m3", "hi").await, SendOutcome::Accepted(_)));
    jane.say(ToBroker::ReceiptsAck(wire::link::Rows { rows: vec![] })).await;
}
