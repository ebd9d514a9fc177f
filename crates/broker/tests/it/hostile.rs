//! What a caller must not be able to do.

use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderName};
use http::{Method, StatusCode};
use model::limits;
use net::Secret;
use net::client::{Ask, Client, ClientError};
use serde_json::{Value, json};
use testkit::seeded::Seeded;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::ask::{Question, Scope, Token};
use wire::direct::AcceptAnswer;

use crate::node::{Link, accepted, item, negotiation};
use crate::scene::{Props, Scene};

const MESSAGES: &str = "/v1/meshes/home/messages";

async fn caller(scene: &Scene, owner: &mut Link, member: &str) -> (Client, String) {
    let scopes = vec![Scope::Send, Scope::Read];
    let token: Token =
        owner.ask(Question::TokenCreate { member: member.parse().unwrap(), scopes }).await.unwrap();
    (scene.client().with_bearer(&Secret::from(token.token.clone())), token.token)
}

/// The status of a request written byte by byte, as no polite client would.
async fn status_of(scene: &Scene, head: &str, body: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(scene.address()).await.unwrap();
    let length = body.len();
    let head = format!(
        "{head}\r\nhost: {}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n",
        scene.address()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    read.expect("an answer in time").unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).unwrap_or_else(|| panic!("a status line, not {answer:?}"));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    if head.contains("application/json") {
        assert!(serde_json::from_str::<Value>(body).is_ok(), "{answer}");
    }
    status.parse().unwrap()
}

#[tokio::test]
async fn json_that_two_readers_could_understand_differently_is_refused_at_every_address() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let (_, token) = caller(&scene, &mut owner, "cron").await;
    let deep = format!(r##"{{"to":"#a","body":"x","meta":{}1{}}}"##, "[".repeat(5_000), "]".repeat(5_000));
    let bodies: Vec<Vec<u8>> = vec![
        br##"{"to":"#a","body":"x","body":"y"}"##.to_vec(),
        br##"{"to":"#a","body":"\ud800"}"##.to_vec(),
        br##"{"to":"#a","body":"x","ttl":1e400}"##.to_vec(),
        b"\xef\xbb\xbf{}".to_vec(),
        b"{\"to\":\"\xff\"}".to_vec(),
        deep.into_bytes(),
        b"[]".to_vec(),
        b"null".to_vec(),
        Vec::new(),
    ];
    for path in [MESSAGES, "/v1/auth/exchange", "/v1/auth/challenge"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nauthorization: Bearer {token}\r\ncontent-type: application/json"
        );
        for body in &bodies {
            let status = status_of(&scene, &head, body).await;
            assert_eq!(status, 400, "{path} {}", String::from_utf8_lossy(&body[..body.len().min(60)]));
        }
    }
}

#[tokio::test]
async fn a_form_a_compressed_body_and_a_token_in_the_address_are_refused() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let (client, token) = caller(&scene, &mut owner, "cron").await;
    let body = json!({"to": "#a", "body": "hi"});
    let refused = |result: Result<net::client::Answer, ClientError>| match result {
        Err(ClientError::Refused { status, body, .. }) => (status, body.error),
        other => panic!("a refusal, not {other:?}"),
    };
    let plain = Ask::new(Method::POST, MESSAGES).json(&body).header(CONTENT_TYPE, "text/plain");
    assert_eq!(refused(client.ask(plain).await).0, 415);
    let zipped = HeaderName::from_static("content-encoding");
    let zipped = Ask::new(Method::POST, MESSAGES).json(&body).header(zipped, "gzip");
    assert_eq!(refused(client.ask(zipped).await).0, 415);
    let leaked = Ask::new(Method::GET, format!("/v1/conversations?token={token}"));
    assert_eq!(refused(scene.client().ask(leaked).await), (400, "token_in_url".to_owned()));
    let evil = HeaderName::from_static("origin");
    let evil = Ask::new(Method::POST, MESSAGES).json(&body).header(evil, "https://evil.example");
    assert_eq!(refused(client.ask(evil).await), (403, "origin_refused".to_owned()));
}

#[tokio::test]
async fn one_text_in_another_spelling_is_a_duplicate() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let (_, token) = caller(&scene, &mut owner, "cron").await;
    let head = format!(
        "POST {MESSAGES} HTTP/1.1\r\nauthorization: Bearer {token}\r\ncontent-type: application/json"
    );
    for (spelling, expected) in [
        (r##"{"client_message_id":"k","to":"#a","body":"é","meta":{"a":1,"b":2.5}}"##, 201),
        (r##"{"meta":{"b":2.5,"a":1.0},"body":"\u00e9","to":"#a","client_message_id":"k"}"##, 200),
        (
            r##"{ "client_message_id" : "k", "to":"#a","priority":"next","mentions":[],"body":"é","meta":{"b":25e-1,"a":1e0}}"##,
            200,
        ),
        (r##"{"client_message_id":"k","to":"#a","body":"e\u0301","meta":{"a":1,"b":2.5}}"##, 409),
    ] {
        assert_eq!(status_of(&scene, &head, spelling.as_bytes()).await, expected, "{spelling}");
    }
}

#[tokio::test]
async fn an_idempotency_key_is_the_callers_own() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let (one, _) = caller(&scene, &mut owner, "one").await;
    let (two, _) = caller(&scene, &mut owner, "two").await;
    let key = HeaderName::from_static("idempotency-key");
    let ask = |value: &str| {
        Ask::new(Method::POST, MESSAGES).json(&json!({"to": "#a", "body": "hi"})).header(key.clone(), value)
    };
    for (client, status) in [(&one, StatusCode::CREATED), (&two, StatusCode::CREATED), (&one, StatusCode::OK)]
    {
        assert_eq!(client.ask(ask("k1")).await.unwrap().status, status);
    }
    let elsewhere: AcceptAnswer = one.ask(ask("k2")).await.unwrap().json().unwrap();
    let path = format!("/v1/conversations/{}/messages", elsewhere.conversation);
    let again = Ask::new(Method::POST, path).json(&json!({"body": "hi"})).header(key.clone(), "k2");
    assert_eq!(
        one.ask(again).await.unwrap().status,
        StatusCode::OK,
        "one message, whichever address it came by"
    );
    for bad in ["", "a b", &"k".repeat(10_000)] {
        assert!(
            matches!(one.ask(ask(bad)).await, Err(ClientError::Refused { status: 400, .. })),
            "{bad:.20}"
        );
    }
}

/// A value near `valid` that is probably not.
fn bent(valid: &Value, seeded: &mut Seeded) -> Vec<u8> {
    let mut value = valid.clone();
    let strange = [
        json!(null),
        json!(-1),
        json!(1e308),
        json!(""),
        json!("\u{0}"),
        json!("\u{202e}"),
        json!("#"),
        json!([[]]),
        json!({"a": {}}),
        json!("x".repeat(70_000)),
    ];
    let entries = value.as_object_mut().expect("requests are objects");
    let names: Vec<String> = entries.keys().cloned().collect();
    for _ in 0..=seeded.below(2) {
        let name = names[seeded.index(names.len())].clone();
        match seeded.below(3) {
            0 => drop(entries.remove(&name)),
            1 => drop(entries.insert(name, strange[seeded.index(strange.len())].clone())),
            _ => drop(entries.insert(format!("{name}_"), strange[seeded.index(strange.len())].clone())),
        }
    }
    let mut bytes = serde_json::to_vec(&value).unwrap();
    if seeded.chance(20) && !bytes.is_empty() {
        let place = seeded.index(bytes.len());
        bytes[place] ^= 1 << seeded.below(8);
    }
    bytes
}

#[tokio::test]
async fn no_bent_request_is_a_fault_of_ours() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let (_, token) = caller(&scene, &mut owner, "cron").await;
    let message = json!({"to": "#a", "body": "hi", "client_message_id": "m1", "kind": "message", "meta": {"a": 1}, "mentions": [],
        "reply_to": "r", "corr_id": "c", "priority": "now", "expects_input": true, "ttl": 60, "hops": 1, "mesh": "home"});
    let exchange = serde_json::to_value(scene.stranger("lab").request("nonsense", true, "n1")).unwrap();
    let mut seeded = Seeded::new(11);
    for round in 0..300 {
        for (path, valid) in [(MESSAGES, &message), ("/v1/auth/exchange", &exchange)] {
            let head = format!(
                "POST {path} HTTP/1.1\r\nauthorization: Bearer {token}\r\ncontent-type: application/json"
            );
            let body = bent(valid, &mut seeded);
            let status = status_of(&scene, &head, &body).await;
            assert!(
                status < 500,
                "round {round} {path} {status}: {}",
                String::from_utf8_lossy(&body[..body.len().min(200)])
            );
        }
    }
}

#[tokio::test]
async fn no_bent_frame_harms_anybody_but_its_link() {
    let (props, clock) = Props::with_manual_clock();
    let scene = Scene::with(props).await;
    let node = scene.joined("lab").await;
    let mut other = scene.joined("vps").await.link().await;
    let mut seeded = Seeded::new(12);
    let member = other.person;
    let (row, raw) = item("#a", "m1", "hi");
    let message: Value = serde_json::from_str(raw.get()).unwrap();
    let frames = [
        json!({"type": "send", "n": 1, "sender": member.to_string(), "messages": [message]}),
        json!({"type": "ack", "rows": [{"id": member.to_string(), "recipient": member.to_string(), "rung": "delivered", "at": "2027-01-01T00:00:00Z"}]}),
        json!({"type": "nack", "rows": [{"id": member.to_string(), "recipient": member.to_string(), "code": row.to_string()}]}),
        json!({"type": "receipts_ack", "rows": []}),
        json!({"type": "ask", "n": 1, "as": member.to_string(), "what": "topic_history", "topic": "a", "limit": 10}),
        serde_json::to_value(wire::link::ToBroker::FeatureNegotiationRequest(negotiation())).unwrap(),
    ];
    for _ in 0..60 {
        clock.advance(limits::EXCHANGE_RATE_WINDOW);
        let mut link = node.link().await;
        for _ in 0..5 {
            let frame = bent(&frames[seeded.index(frames.len())], &mut seeded);
            // A link that was closed for the frame before takes no more.
            if let Ok(text) = String::from_utf8(frame)
                && !link.try_say_text(&text).await
            {
                break;
            }
        }
        drop(link);
    }
    accepted(other.send_one("#still", "here", "hi").await);
    let mut link = node.link().await;
    accepted(link.send_one("#still", "here", "too").await);
}
