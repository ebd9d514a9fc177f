//! One link a node: epochs, policies, stops.

use ledger::ConnectionPolicy;
use net::socket::Ended;

use crate::node::{accepted, close_of, item, next, refused};
use crate::scene::{Props, Scene};

#[tokio::test]
async fn a_newer_link_of_the_node_closes_the_older_one() {
    let scene = Scene::open().await;
    let node = scene.joined("lab").await;
    let mut older = node.link().await;
    let mut newer = node.link().await;
    assert!(newer.epoch > older.epoch);
    let close = older.close().await;
    assert_eq!((close.code, close.reason.as_str()), (4003, r#"{"kind":"replaced_by_newer_connection"}"#));
    accepted(newer.send_one("#a", "m1", "hi").await);
}

#[tokio::test]
async fn a_link_fenced_by_another_process_is_closed_at_its_next_transaction() {
    let scene = Scene::open().await;
    let node = scene.joined("lab").await;
    let mut older = node.link().await;
    // Another broker process redeems: this one's registry knows nothing of it.
    let ticket = node.ticket_by_challenge().await.unwrap();
    let hash = ledger::SecretHash(*ticket.token_hash().as_bytes());
    scene.ledger.redeem(hash, wire::auth::AUDIENCE_LINK).await.unwrap();
    let person = older.person;
    older.start_send(person, vec![item("#a", "m1", "hi").1]).await;
    assert_eq!(older.close().await.code, 4003);
    let mut newer = node.link().await;
    assert_eq!(accepted(newer.send_one("#a", "m1", "hi").await).status, 201, "the fenced link wrote nothing");
}

#[tokio::test]
async fn with_prefer_oldest_the_newcomer_is_refused_and_its_ticket_not_used() {
    let mut props = Props::default();
    props.policies.connections = ConnectionPolicy::PreferOldest;
    let scene = Scene::with(props).await;
    let node = scene.joined("lab").await;
    let mut older = node.link().await;
    let ticket = node.ticket_by_challenge().await.unwrap();
    let (mut reader, _writer) = node.upgrade(&ticket).await.unwrap();
    let close = close_of(&mut reader).await;
    assert_eq!((close.code, close.reason.as_str()), (4004, r#"{"kind":"member_already_connected"}"#));
    accepted(older.send_one("#a", "m1", "hi").await);
}

#[tokio::test]
async fn a_removed_node_is_closed_with_4002_and_cannot_come_back() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let node = scene.joined("tom").await;
    let mut tom = node.link().await;
    let removed = wire::ask::Question::MemberRemove { name: "tom".parse().unwrap() };
    owner.ask::<wire::ask::Done>(removed).await.unwrap();
    assert_eq!(tom.close().await.code, 4002);
    assert!(node.ticket_by_challenge().await.is_err());
    let outcome = owner.send_one("@tom", "m1", "hi").await;
    assert!(matches!(refused(&outcome).1, "revoked" | "member_not_found"), "{outcome:?}");
}

#[tokio::test]
async fn a_stop_answers_what_was_read_and_closes_links_with_1001() {
    let scene = Scene::open().await;
    let node = scene.joined("lab").await;
    let mut link = node.link().await;
    let person = link.person;
    let n = link.start_send(person, vec![item("#a", "m1", "hi").1]).await;
    link.sent(n).await;
    let stopping = tokio::spawn(scene.stop());
    assert_eq!(link.close().await.code, 1001);
    drop(link);
    assert_eq!(stopping.await.unwrap(), 0, "nothing had to be cut");
}

#[tokio::test]
async fn a_socket_that_never_negotiates_is_closed_after_five_seconds() {
    let scene = Scene::open().await;
    let node = scene.joined("lab").await;
    let ticket = node.ticket_by_challenge().await.unwrap();
    let (mut reader, _writer) = node.upgrade(&ticket).await.unwrap();
    tokio::time::pause();
    match next(&mut reader).await {
        Ok(wire::link::ToNode::Error(error)) => assert_eq!(error.error, "invalid_request"),
        other => panic!("an error frame first, not {other:?}"),
    }
    match next(&mut reader).await {
        Err(Ended::Closed(close)) => assert_eq!(close.code, 1002),
        other => panic!("a close, not {other:?}"),
    }
}
