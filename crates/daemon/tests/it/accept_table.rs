//! The eleven cells of the accept table, on both listeners, to the letter.

use mailbox::ClaimRequest;
use model::outbox::AbortedBy;
use model::{Clock, ErrorCode, RowId, SystemClock};
use serde_json::{Value, json};
use std::time::Duration;

use crate::broker::{Broker, Reply};
use crate::home::{Caller, Home, Said};

const FINGERPRINT_PREFIX_CHARS: usize = 16;

/// A home with one row in each state: ids `pending`, `inflight`, `done`, `dead` and `aborted`.
async fn home_with_every_state() -> (Broker, Home) {
    let (broker, mut home) = Home::linked().await;
    broker.script(|fields| match fields.client_message_id.as_str() {
        "dead" => Reply::Refuse(ErrorCode::TooLarge),
        _ => Reply::Accept,
    });
    let caller = home.unix();
    for id in ["done", "dead"] {
        assert_eq!(caller.send(id, &format!("@{id}"), "words").await.status, 202);
        home.until_rung(id, "accepted").await;
    }
    broker.hang_up();
    home.until_link("away").await;
    let aborted: RowId = {
        let said = caller.send("aborted", "@aborted", "words").await;
        said.body["row"].as_str().unwrap().parse().unwrap()
    };
    home.stop().await;
    let mailbox = home.mailbox();
    mailbox.abort(aborted, AbortedBy::Operator, SystemClock::start().now()).await.unwrap();
    mailbox.close().await;
    home.start().await;
    assert_eq!(home.unix().send("pending", "@pending", "words").await.status, 202);
    (broker, home)
}

/// What each cell says: status, `error` or `status`, `conflict`.
fn cell(said: &Said) -> (u16, Option<&str>, Option<&str>) {
    let word = said.body.get("error").or_else(|| said.body.get("status")).and_then(Value::as_str);
    (said.status, word, said.body.get("conflict").and_then(Value::as_str))
}

async fn check(caller: &Caller, id: &str, same: (u16, &str, Option<&str>), other: (u16, &str, Option<&str>)) {
    let to = format!("@{id}");
    let said = caller.send(id, &to, "words").await;
    assert_eq!(cell(&said), (same.0, Some(same.1), same.2), "{id}, same words: {said:?}");
    let said = caller.send(id, &to, "other words").await;
    assert_eq!(cell(&said), (other.0, Some(other.1), other.2), "{id}, other words: {said:?}");
    let prefix = said.body["daemon_fingerprint_prefix"].as_str().unwrap();
    assert_eq!(prefix.len(), FINGERPRINT_PREFIX_CHARS);
}

const REUSED: &str = "idempotency_key_reused";

#[tokio::test]
async fn each_cell_answers_its_status_and_its_words_on_both_listeners() {
    let (_broker, home) = home_with_every_state().await;
    for (name, caller) in [("unix", home.unix()), ("tcp", home.tcp())] {
        let fresh = caller.send(&format!("fresh-{name}"), "@ci", "words").await;
        assert_eq!(cell(&fresh), (202, Some("queued"), None), "{fresh:?}");
        assert_eq!(fresh.body["client_message_id"], format!("fresh-{name}"));
        let reused = |conflict| (409, REUSED, Some(conflict));
        check(&caller, "pending", (202, "queued", None), reused("outbox_pending_fingerprint_mismatch")).await;
        check(&caller, "done", (200, "done", None), reused("outbox_done_fingerprint_mismatch")).await;
        check(
            &caller,
            "dead",
            reused("outbox_dead_fingerprint_match"),
            reused("outbox_dead_fingerprint_mismatch"),
        )
        .await;
        check(
            &caller,
            "aborted",
            reused("outbox_aborted_fingerprint_match"),
            reused("outbox_aborted_fingerprint_mismatch"),
        )
        .await;
    }
}

#[tokio::test]
async fn a_row_on_the_wire_answers_inflight_or_refuses_other_words() {
    let (broker, home) = Home::linked().await;
    broker.script(|_| Reply::Silence);
    assert_eq!(home.unix().send("inflight", "@inflight", "words").await.status, 202);
    broker.until("the frame", |books| (!books.sends.is_empty()).then_some(())).await;
    for caller in [home.unix(), home.tcp()] {
        let conflict = (409, REUSED, Some("outbox_inflight_fingerprint_mismatch"));
        check(&caller, "inflight", (202, "inflight", None), conflict).await;
    }
}

#[tokio::test]
async fn done_and_dead_rows_say_what_is_known_of_them() {
    let (broker, home) = home_with_every_state().await;
    let accepted = broker.books().accepted[0].row.clone();
    let caller = home.tcp();
    let done = caller.send("done", "@done", "words").await.body;
    assert_eq!(done["duplicate"], true);
    assert_eq!(done["broker_message_id"], accepted.broker_message_id.to_string());
    assert_eq!(
        (&done["history_id"], &done["conversation"]),
        (&json!(1), &json!(accepted.conversation.to_string()))
    );
    assert_eq!(done["receipt"]["rung"], "accepted");
    let other = caller.send("done", "@done", "other words").await.body;
    assert_eq!(other["broker_message_id"], accepted.broker_message_id.to_string());
    let dead = caller.send("dead", "@dead", "words").await.body;
    assert_eq!(dead["reason"], "413 too_large");
    assert!(caller.send("dead", "@dead", "other words").await.body.get("reason").is_none());
}

#[tokio::test]
async fn no_answer_changes_the_row_it_speaks_of() {
    let (_broker, home) = home_with_every_state().await;
    let before = home.unix().get("/v1/outbox").await.body;
    for id in ["pending", "done", "dead", "aborted"] {
        home.unix().send(id, &format!("@{id}"), "words").await;
        home.unix().send(id, "@elsewhere", "other words").await;
    }
    assert_eq!(home.unix().get("/v1/outbox").await.body, before);
}

#[tokio::test]
async fn sixty_four_concurrent_sends_of_one_id_make_one_row() {
    let broker = Broker::deaf();
    broker.reserve_address().await;
    broker.listen().await;
    let home = Home::of(&broker).await;
    home.until_live().await;
    broker.hang_up();
    home.until_link("away").await;
    let sends = (0..64).map(|n| {
        let caller = if n % 2 == 0 { home.unix() } else { home.tcp() };
        // Every fourth asks something else under the same id.
        let body = if n % 4 == 3 { "other words" } else { "words" };
        tokio::spawn(async move { (body, caller.send("one", "@ci", body).await) })
    });
    let mut said = Vec::new();
    for send in sends.collect::<Vec<_>>() {
        said.push(send.await.unwrap());
    }
    let list = home.unix().get("/v1/outbox").await.body;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(list["counts"]["pending"], 1);
    let winner = said.iter().find(|(_, said)| said.status == 202).map(|(body, _)| *body).unwrap();
    for (body, said) in &said {
        let expected = if *body == winner { 202 } else { 409 };
        assert_eq!(said.status, expected, "{said:?}");
    }
}

#[tokio::test]
async fn the_key_comes_from_the_header_or_the_body_and_both_must_agree() {
    let (_broker, home) = Home::linked().await;
    let caller = home.unix();
    let words = json!({"to": "@ci", "body": "words"});
    let said = caller.post_with("/v1/send", ("idempotency-key", "k1"), &words).await;
    assert_eq!((said.status, &said.body["client_message_id"]), (202, &json!("k1")));
    let keyed = json!({"to": "@ci", "body": "words", "client_message_id": "k2"});
    let said = caller.post_with("/v1/send", ("idempotency-key", "k1"), &keyed).await;
    assert_eq!((said.status, &said.body["error"]), (400, &json!("invalid_request")));
    let minted = caller.post("/v1/send", &words).await;
    assert_eq!(minted.body["client_message_id"].as_str().unwrap().len(), 26);
}

#[tokio::test]
async fn spelling_does_not_make_another_message_and_words_do() {
    let (broker, home) = Home::linked().await;
    broker.hang_up();
    let caller = home.unix();
    let send = |meta: Value| json!({"to": "@ci", "body": "é", "client_message_id": "one", "meta": meta});
    assert_eq!(caller.post("/v1/send", &send(json!({"a": 1, "b": 2}))).await.status, 202);
    let raw: Value = serde_json::from_str(
        r#"{"client_message_id":"one","meta":{"b":2.0,"a":1.0},"body":"\u00e9","to":"@ci"}"#,
    )
    .unwrap();
    assert_eq!(caller.post("/v1/send", &raw).await.status, 202);
    let said = caller.post("/v1/send", &send(json!({"a": 1, "b": "2"}))).await;
    assert_eq!((said.status, &said.body["conflict"]), (409, &json!("outbox_pending_fingerprint_mismatch")));
}

#[tokio::test]
async fn a_refused_request_uses_no_id() {
    let (_broker, home) = Home::linked().await;
    let caller = home.unix();
    for (bad, code) in [
        (json!({"to": "nowhere", "body": "x", "client_message_id": "a"}), "invalid_request"),
        (json!({"to": "@ci", "client_message_id": "a"}), "invalid_request"),
        (json!({"to": "@ci", "body": "x".repeat(65_537), "client_message_id": "a"}), "too_large"),
        (json!({"to": "@ci", "body": "x", "hops": 65, "client_message_id": "a"}), "hop_limit"),
        (json!({"to": "@ci", "body": "x", "bogus": 1, "client_message_id": "a"}), "invalid_request"),
        (json!({"to": "@ci", "body": "x", "client_message_id": "a b"}), "invalid_request"),
        (json!({"to": "@ci", "body": "x", "client_message_id": "a", "mesh": "nope"}), "mesh_not_attached"),
    ] {
        let said = caller.post("/v1/send", &bad).await;
        assert_eq!(said.body["error"], code, "{said:?}");
    }
    assert_eq!(home.unix().get("/v1/outbox").await.body["items"], json!([]));
    assert_eq!(caller.send("a", "@ci", "x").await.status, 202);
}

/// The claim and settle doors are the mailbox's; this only shows that a daemon takes up what they left.
#[tokio::test]
async fn what_the_last_process_had_on_the_wire_is_sent_by_the_next() {
    let (broker, mut home) = Home::linked().await;
    broker.hang_up();
    home.until_link("away").await;
    for n in 0..3 {
        assert_eq!(home.unix().send(&format!("m{n}"), "@ci", &format!("{n}")).await.status, 202);
    }
    home.stop().await;
    let (mailbox, now) = (home.mailbox(), SystemClock::start().now());
    let request = ClaimRequest {
        now,
        broker_now: now,
        max_age: Duration::from_secs(3600),
        lanes_max: 32,
        busy: Vec::new(),
        after: None,
    };
    let claimed = mailbox.claim(request).await.unwrap();
    assert_eq!(claimed.frames[0].rows.len(), 3);
    mailbox.close().await;
    broker.listen().await;
    home.start().await;
    assert_eq!(broker.until_accepted(3).await, ["0", "1", "2"]);
}
