//! The one way in.

use std::time::Duration;

use model::{ErrorCode, OsEntropy, limits};
use net::client::ClientError;
use net::handshake::mint_nonce;
use wire::auth::{AUDIENCE_LINK, ExchangeAnswer};

use crate::node::{Link, negotiation};
use crate::scene::{Props, Scene};

fn code(result: Result<impl Sized, ClientError>) -> ErrorCode {
    match result {
        Ok(_) => panic!("refused"),
        Err(error) => error.code().expect("a refusal with a code"),
    }
}

#[tokio::test]
async fn a_node_joins_by_invite_and_comes_back_by_challenge() {
    let scene = Scene::open().await;
    let node = scene.stranger("lab");
    let invite = scene.broker.owner_invite().await.unwrap();
    assert_eq!(invite.issuer_key, scene.broker.issuer_key());
    let ticket = node.ticket_by_invite(&invite.token).await.unwrap();
    let (reader, writer) = node.upgrade(&ticket).await.unwrap();
    let link = Link::negotiate(reader, writer, negotiation()).await.ok().unwrap();
    assert_eq!((link.hello.mesh.slug.as_str(), link.epoch), ("home", 1));
    assert_eq!(link.hello.members[0].name.as_str(), "lab");
    assert!(!scene.broker.wants_owner().await.unwrap());
    let again = node.link().await;
    assert_eq!(again.epoch, 2);
    assert_eq!(again.person, link.person);
}

#[tokio::test]
async fn the_exchange_answers_at_the_seeds_path_too() {
    let scene = Scene::open().await;
    let node = scene.stranger("lab");
    let invite = scene.broker.create_invite(None).await.unwrap();
    let request = node.request(&invite.token, true, "n1");
    let answer: ExchangeAnswer = scene.client().post("/ansible/auth/exchange", &request).await.unwrap();
    assert_eq!(answer.mesh, *scene.broker.mesh());
    assert!(answer.rooms.is_empty() && answer.member.is_none());
    assert!(answer.expires_at > answer.now);
}

#[tokio::test]
async fn a_ticket_opens_one_link_however_many_try_at_once() {
    let scene = Scene::open().await;
    let node = scene.stranger("lab");
    let invite = scene.broker.create_invite(None).await.unwrap();
    let ticket = node.ticket_by_invite(&invite.token).await.unwrap();
    let tries = (0..limits::UNAUTHENTICATED_PER_ADDRESS_MAX - 1).map(|_| node.upgrade(&ticket));
    let results = futures_util::future::join_all(tries).await;
    let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1);
    for result in lost {
        assert_eq!(code(result.map(drop)), ErrorCode::TicketAlreadyUsed);
    }
}

#[tokio::test]
async fn of_two_tickets_of_one_invite_the_second_is_told_that_it_was_used() {
    let scene = Scene::open().await;
    let (one, two) = (scene.stranger("lab"), scene.stranger("vps"));
    let invite = scene.broker.create_invite(None).await.unwrap();
    let first = one.ticket_by_invite(&invite.token).await.unwrap();
    let second = two.ticket_by_invite(&invite.token).await.unwrap();
    drop(one.upgrade(&first).await.unwrap());
    assert_eq!(code(two.upgrade(&second).await.map(drop)), ErrorCode::TokenAlreadyUsed);
    assert_eq!(code(two.ticket_by_invite(&invite.token).await), ErrorCode::TokenAlreadyUsed);
}

#[tokio::test]
async fn an_exchange_is_refused_by_the_first_rule_it_breaks() {
    let scene = Scene::open().await;
    let node = scene.stranger("lab");
    let invite = scene.broker.create_invite(Some("lab".parse().unwrap())).await.unwrap();
    assert_eq!(code(node.ticket_by_invite("nonsense").await), ErrorCode::InvalidToken);
    let other = scene.stranger("vps");
    assert_eq!(code(other.ticket_by_invite(&invite.token).await), ErrorCode::NodeMismatch);
    let mut forged = node.request(&invite.token, true, "n1");
    forged.nonce = "n2".into();
    assert_eq!(code(node.exchange(&forged).await), ErrorCode::NodeProofInvalid);
    let mut stolen = node.request(&invite.token, true, "n1");
    stolen.public_key = other.keys.public();
    assert_eq!(code(node.exchange(&stolen).await), ErrorCode::NodeProofInvalid);
    let good = node.request(&invite.token, true, "n1");
    assert!(node.exchange(&good).await.is_ok(), "a refused exchange consumes nothing");
    assert_eq!(code(node.exchange(&good).await), ErrorCode::ReplayDetected);
    let fresh = node.request(&invite.token, true, "n3");
    assert!(node.exchange(&fresh).await.is_ok());
}

#[tokio::test]
async fn an_invite_a_challenge_and_a_ticket_end_in_time() {
    let (props, clock) = Props::with_manual_clock();
    let scene = Scene::with(props).await;
    let node = scene.stranger("lab");
    let late = scene.broker.create_invite(None).await.unwrap();
    clock.advance(limits::INVITE_TTL);
    assert_eq!(code(node.ticket_by_invite(&late.token).await), ErrorCode::ExpiredToken);
    let invite = scene.broker.create_invite(None).await.unwrap();
    let ticket = node.ticket_by_invite(&invite.token).await.unwrap();
    clock.advance(limits::TICKET_TTL);
    assert_eq!(code(node.upgrade(&ticket).await.map(drop)), ErrorCode::ExpiredTicket);
    let ticket = node.ticket_by_invite(&invite.token).await.unwrap();
    drop(node.upgrade(&ticket).await.unwrap());
    let challenge = node.challenge().await.unwrap();
    clock.advance(limits::CHALLENGE_TTL);
    let request = node.request(&challenge.challenge, false, "n9");
    assert_eq!(code(node.exchange(&request).await), ErrorCode::ExpiredToken);
}

#[tokio::test]
async fn a_return_needs_the_key_that_joined_and_an_unknown_node_is_told_so() {
    let scene = Scene::open().await;
    let node = scene.joined("lab").await;
    let thief = scene.stranger("lab");
    let challenge = thief.challenge().await.unwrap();
    let request = thief.request(&challenge.challenge, false, &mint_nonce(&OsEntropy));
    assert_eq!(code(thief.exchange(&request).await), ErrorCode::NodeProofInvalid);
    assert_eq!(code(scene.stranger("vps").challenge().await), ErrorCode::UnknownNode);
    let challenge = node.challenge().await.unwrap();
    let request = node.request(&challenge.challenge, false, &mint_nonce(&OsEntropy));
    assert!(node.exchange(&request).await.is_ok());
    assert!(node.exchange(&request).await.is_err(), "a challenge is signed once");
}

#[tokio::test]
async fn an_upgrade_without_a_ticket_of_this_surface_is_an_http_refusal() {
    let scene = Scene::open().await;
    let node = scene.stranger("lab");
    assert_eq!(code(node.upgrade(&"nonsense".to_owned().into()).await.map(drop)), ErrorCode::InvalidTicket);
    let invite = scene.broker.create_invite(None).await.unwrap();
    let mut request = node.request(&invite.token, true, "n1");
    assert_eq!(request.aud.as_deref(), Some(AUDIENCE_LINK));
    request.aud = None;
    assert_eq!(
        code(node.exchange(&request).await),
        ErrorCode::NodeProofInvalid,
        "the proof names the surface"
    );
    let answer = scene.client().get::<serde_json::Value>("/v1/link").await;
    assert_eq!(code(answer), ErrorCode::InvalidRequest);
}

#[tokio::test]
async fn the_thirty_first_knock_of_a_minute_waits() {
    let (props, clock) = Props::with_manual_clock();
    let scene = Scene::with(props).await;
    let node = scene.stranger("lab");
    for _ in 0..limits::EXCHANGES_PER_WINDOW_MAX {
        assert_eq!(code(node.ticket_by_invite("nonsense").await), ErrorCode::InvalidToken);
    }
    let refused = node.ticket_by_invite("nonsense").await.unwrap_err();
    let ClientError::Refused { status: 429, body, retry_after: Some(wait) } = refused else {
        panic!("429 with Retry-After, not {refused:?}");
    };
    assert_eq!((body.error.as_str(), wait), ("rate_limited", limits::EXCHANGE_RATE_WINDOW));
    clock.advance(limits::EXCHANGE_RATE_WINDOW);
    assert_eq!(code(node.ticket_by_invite("nonsense").await), ErrorCode::InvalidToken);
}

#[tokio::test]
async fn a_body_over_the_handshakes_bound_or_with_unknown_fields_is_refused() {
    let scene = Scene::open().await;
    let client = scene.client().with_timeout(Duration::from_secs(5));
    let big = serde_json::json!({"nodeId": "lab", "x": "x".repeat(limits::EXCHANGE_BYTES_MAX)});
    let answer = client.post::<serde_json::Value>("/v1/auth/exchange", &big).await;
    assert_eq!(code(answer), ErrorCode::TooLarge);
    let unknown = serde_json::json!({"nodeId": "lab", "surprise": 1});
    let answer = client.post::<serde_json::Value>("/v1/auth/challenge", &unknown).await;
    assert_eq!(code(answer), ErrorCode::InvalidRequest);
    let odd = serde_json::json!({"nodeId": "lab\u{202e}"});
    let answer = client.post::<serde_json::Value>("/v1/auth/challenge", &odd).await;
    assert_eq!(code(answer), ErrorCode::InvalidRequest);
}
