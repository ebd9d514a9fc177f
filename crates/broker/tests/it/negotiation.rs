//! The first frames of a link.

use model::{ClientMessageId, MessageId, limits};
use wire::auth::MemberRef;
use wire::link::{DoneWitness, NegotiationRequest, ToBroker};

use crate::node::{Link, accepted, close_of, negotiation, next};
use crate::scene::Scene;

#[tokio::test]
async fn the_broker_names_its_features_its_time_and_the_members_at_home() {
    let scene = Scene::open().await;
    let link = scene.joined("lab").await.link().await;
    let hello = &link.hello;
    let params = |feature: &str| serde_json::to_value(&hello.supported[feature].params).unwrap();
    assert_eq!(params("client_message_id_dedupe")["mode"], "retention_scoped");
    assert_eq!(params("client_message_id_dedupe")["dedupe_retention_days"], limits::DEDUPE_DAYS_DEFAULT);
    assert_eq!(params("client_message_id_dedupe")["request_fingerprint"], true);
    assert_eq!(params("client_message_id_dedupe")["version"], 2);
    assert_eq!(params("concurrent_connection_policy")["version"], 1);
    assert_eq!(params("max_payload")["inline_bytes"], 65_536);
    assert_eq!(hello.mesh, *scene.broker.mesh());
    assert_eq!((hello.restored, hello.members.len(), hello.version.as_str()), (false, 1, "test"));
    assert!(hello.now.as_micros() > 0);
}

#[tokio::test]
async fn a_missing_feature_is_named_and_closes_with_4010() {
    let scene = Scene::open().await;
    let node = scene.joined("lab").await;
    let ticket = node.ticket_by_challenge().await.unwrap();
    let (reader, writer) = node.upgrade(&ticket).await.unwrap();
    let mut request = negotiation();
    request.require.push("key_epoch".into());
    let refused = Link::negotiate(reader, writer, request).await.err().expect("refused");
    let (mut reader, hello) = *refused;
    assert_eq!(hello.missing_required, ["key_epoch"]);
    let close = close_of(&mut reader).await;
    assert_eq!(close.code, 4010);
    assert_eq!(close.reason, r#"{"feature":"key_epoch","kind":"feature_unavailable"}"#);
}

#[tokio::test]
async fn an_optional_feature_nobody_has_is_no_reason_to_close() {
    let scene = Scene::open().await;
    let node = scene.joined("lab").await;
    let ticket = node.ticket_by_challenge().await.unwrap();
    let (reader, writer) = node.upgrade(&ticket).await.unwrap();
    let mut request = negotiation();
    request.optional.push("mcp_host".into());
    let mut link = Link::negotiate(reader, writer, request).await.ok().unwrap();
    assert!(!link.hello.supported.contains_key("mcp_host"));
    accepted(link.send_one("#a", "m1", "hi").await);
}

#[tokio::test]
async fn an_inbox_epoch_that_is_none_closes_with_4011_and_traffic_before_negotiation_with_1002() {
    let scene = Scene::open().await;
    let node = scene.joined("lab").await;
    for (first, code) in [
        (ToBroker::FeatureNegotiationRequest(NegotiationRequest::default()).text(), 4011),
        (r#"{"type":"ack","rows":[]}"#.to_owned(), 1002),
        ("nonsense".to_owned(), 1007),
    ] {
        let ticket = node.ticket_by_challenge().await.unwrap();
        let (mut reader, writer) = node.upgrade(&ticket).await.unwrap();
        writer.send(first).await.unwrap();
        match next(&mut reader).await {
            Ok(wire::link::ToNode::Error(_)) => {}
            other => panic!("an error frame says the whole, not {other:?}"),
        }
        assert_eq!(close_of(&mut reader).await.code, code);
    }
}

#[tokio::test]
async fn rows_the_node_knows_and_the_ledger_lost_are_noticed() {
    let scene = Scene::open().await;
    let node = scene.joined("lab").await;
    let mut link = node.link().await;
    let kept = accepted(link.send_one("#a", "m1", "hi").await);
    let witness = |id: &str, message: MessageId| DoneWitness {
        sender: link.person,
        client_message_id: id.parse::<ClientMessageId>().unwrap(),
        broker_message_id: message,
        accepted_at: None,
    };
    let held = vec![witness("m1", kept.broker_message_id)];
    let lost = vec![witness("m1", kept.broker_message_id), witness("m2", MessageId::from_bytes([7; 16]))];
    for (done, restored) in [(held, false), (lost, true)] {
        let ticket = node.ticket_by_challenge().await.unwrap();
        let (reader, writer) = node.upgrade(&ticket).await.unwrap();
        let request = NegotiationRequest { done, ..negotiation() };
        let hello = Link::negotiate(reader, writer, request).await.ok().unwrap().hello;
        assert_eq!(hello.restored, restored);
    }
}

#[tokio::test]
async fn members_a_restored_ledger_lacks_come_back_with_their_node() {
    let scene = Scene::open().await;
    let node = scene.joined("lab").await;
    let ticket = node.ticket_by_challenge().await.unwrap();
    let (reader, writer) = node.upgrade(&ticket).await.unwrap();
    let agent = MemberRef {
        id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(),
        name: "ci".parse().unwrap(),
        kind: "agent".into(),
    };
    let request = NegotiationRequest { members: vec![agent.clone()], ..negotiation() };
    let mut link = Link::negotiate(reader, writer, request).await.ok().unwrap();
    assert!(link.hello.members.contains(&agent), "{:?}", link.hello.members);
    let n = link.start_send(agent.id, vec![crate::node::item("#a", "m1", "hi").1]).await;
    accepted(link.sent(n).await.remove(0).outcome);
}

#[tokio::test]
async fn a_row_pushed_to_a_new_inbox_is_marked_redelivered() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let node = scene.joined("tom").await;
    let mut tom = node.link().await;
    accepted(jane.send_one("@tom", "m1", "hi").await);
    assert!(!tom.mail().await[0].message.redelivered);
    drop(tom);
    let ticket = node.ticket_by_challenge().await.unwrap();
    let (reader, writer) = node.upgrade(&ticket).await.unwrap();
    let request = NegotiationRequest { inbox_epoch: "e2".into(), ..negotiation() };
    let mut tom = Link::negotiate(reader, writer, request).await.ok().unwrap();
    assert!(tom.mail().await[0].message.redelivered);
    accepted(jane.send_one("@tom", "m2", "ho").await);
    assert!(!tom.mail().await[0].message.redelivered, "committed after the new inbox");
}
