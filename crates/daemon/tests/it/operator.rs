//! Requeue and abort: never two messages out of one, unless a person insists.

use model::ErrorCode;
use serde_json::{Value, json};

use crate::broker::{Broker, Reply};
use crate::home::{Home, Said};

async fn row_of(home: &Home, id: &str) -> String {
    home.unix().get(&format!("/v1/messages/{id}")).await.body["id"].as_str().unwrap().to_owned()
}

async fn requeue(home: &Home, row: &str, more: Value) -> Said {
    let mut body = json!({"id": row});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    home.unix().post("/v1/outbox/requeue", &body).await
}

fn refused(said: &Said) -> (u16, &str) {
    (said.status, said.body["error"].as_str().unwrap_or("not refused"))
}

/// A home whose broker is away, with one row that never left.
async fn never_left() -> (Broker, Home, String) {
    let (broker, home) = Home::linked().await;
    broker.hang_up();
    home.until_link("away").await;
    home.unix().send("old", "@ci", "words").await;
    let row = row_of(&home, "old").await;
    (broker, home, row)
}

/// A home with one dead row the broker refused and fenced.
async fn dead() -> (Broker, Home, String) {
    let (broker, home) = Home::linked().await;
    broker.script(|_| Reply::Refuse(ErrorCode::TooLarge));
    home.unix().send("old", "@ci", "words").await;
    home.until_life("old", |life| life["outcome"] == "not_accepted").await;
    broker.script(|_| Reply::Accept);
    let row = row_of(&home, "old").await;
    (broker, home, row)
}

/// A row whose only copy was accepted and whose answer was lost, and a link on which it is held back.
async fn accepted_unknown() -> (Broker, Home, String) {
    let (broker, home) = Home::linked().await;
    broker.script(|_| Reply::AcceptSilently);
    home.unix().send("old", "@ci", "words").await;
    broker.until_accepted(1).await;
    broker.hang_up();
    home.until_life("old", |life| life["status"] == "pending" && life["attempts"] == 1).await;
    let row = row_of(&home, "old").await;
    (broker, home, row)
}

#[tokio::test]
async fn a_row_that_never_left_is_requeued_without_asking_anybody() {
    let (broker, home, row) = never_left().await;
    let said = requeue(&home, &row, json!({"new_client_message_id": "new"})).await;
    assert_eq!((said.status, &said.body["outcome"]), (200, &json!("not_sent")), "{said:?}");
    assert_eq!(
        (&said.body["aborted_row_id"], &said.body["new_client_message_id"]),
        (&json!(row), &json!("new"))
    );
    broker.listen().await;
    broker.until_accepted(1).await;
    let books = broker.books();
    assert_eq!(books.accepted[0].fields.client_message_id.as_str(), "new");
    assert_eq!(books.accepted.len(), 1);
}

#[tokio::test]
async fn a_dead_row_gets_a_successor_with_its_own_routing_and_the_chain_shows_both() {
    let (broker, home, row) = dead().await;
    let said = requeue(&home, &row, json!({"patch_body": "shorter"})).await;
    assert_eq!(said.status, 200, "{said:?}");
    let new = said.body["new_client_message_id"].as_str().unwrap();
    assert_eq!(new.len(), 26, "minted");
    assert_eq!(broker.until_accepted(1).await, ["shorter"]);
    assert_eq!(broker.books().accepted[0].fields.to.to_string(), "@ci", "the same destination");
    let inspected = home.unix().get(&format!("/v1/outbox/{row}")).await.body;
    assert_eq!(
        (&inspected["status"], &inspected["superseded_by"]),
        (&json!("aborted"), &said.body["new_row_id"])
    );
    assert_eq!(inspected["chain"].as_array().unwrap().len(), 2);
    assert_eq!(inspected["message"]["body"], "words");
    let again = requeue(&home, &row, json!({})).await;
    assert_eq!(refused(&again), (409, "row_aborted"));
    assert_eq!(again.body["superseded_by"], said.body["new_row_id"]);
    let reuse = home.unix().send("old", "@ci", "words").await;
    assert_eq!(reuse.body["conflict"], "outbox_aborted_fingerprint_match", "no id comes free");
}

#[tokio::test]
async fn a_row_the_broker_has_is_settled_and_not_sent_twice() {
    let (broker, home, row) = accepted_unknown().await;
    // The lane waits a moment after the loss; the operator is faster.
    broker.listen().await;
    home.until_live().await;
    let said = requeue(&home, &row, json!({})).await;
    assert_eq!(refused(&said), (409, "already_accepted"), "{said:?}");
    assert_eq!(said.body["history_id"], 1);
    let life = home.until_rung("old", "accepted").await;
    assert_eq!(life["status"], "done");
    assert_eq!(broker.books().accepted.len(), 1);
    assert_eq!(refused(&requeue(&home, &row, json!({})).await), (409, "already_accepted"));
}

#[tokio::test]
async fn a_row_nobody_can_tell_of_needs_force_and_then_waits_for_the_brokers_word() {
    let (broker, home, row) = accepted_unknown().await;
    let said = requeue(&home, &row, json!({})).await;
    assert_eq!(refused(&said), (503, "broker_unreachable"), "{said:?}");
    let forced = requeue(&home, &row, json!({"force_duplicate": true})).await;
    assert_eq!((forced.status, &forced.body["outcome"]), (200, &json!("unknown")), "{forced:?}");
    broker.listen().await;
    home.until_live().await;
    // Once asked, the broker has it after all: the unchanged successor is retired instead of sent.
    let new = forced.body["new_client_message_id"].as_str().unwrap();
    let life = home.until_life(new, |life| life["status"] == "aborted").await;
    assert_eq!(life["attempts"], 0);
    assert_eq!(broker.books().accepted.len(), 1, "nothing doubled");
}

#[tokio::test]
async fn a_row_on_the_wire_is_nobodys_to_touch() {
    let (broker, home) = Home::linked().await;
    broker.script(|_| Reply::Silence);
    home.unix().send("old", "@ci", "words").await;
    home.until_life("old", |life| life["status"] == "inflight").await;
    let row = row_of(&home, "old").await;
    assert_eq!(refused(&requeue(&home, &row, json!({})).await), (409, "row_inflight"));
    let said = home.unix().post("/v1/outbox/abort", &json!({"id": row})).await;
    assert_eq!(refused(&said), (409, "row_inflight"));
}

#[tokio::test]
async fn a_new_id_that_is_used_is_refused_and_the_row_stays_as_it_was() {
    let (_broker, home, row) = never_left().await;
    home.unix().send("taken", "@ops", "other").await;
    let said = requeue(&home, &row, json!({"new_client_message_id": "taken"})).await;
    assert_eq!(refused(&said), (409, "idempotency_key_reused"));
    let own = requeue(&home, &row, json!({"new_client_message_id": "old"})).await;
    assert_eq!(refused(&own), (409, "idempotency_key_reused"));
    assert_eq!(home.unix().get("/v1/messages/old").await.body["status"], "pending");
    let bad = requeue(&home, &row, json!({"patch_body": "x".repeat(65_537)})).await;
    assert_eq!(refused(&bad), (413, "too_large"));
    assert_eq!(requeue(&home, &row, json!({})).await.status, 200, "it is free again");
}

#[tokio::test]
async fn an_abort_is_recorded_at_once_and_its_outcome_is_learnt() {
    let (broker, home, row) = never_left().await;
    let said = home.unix().post("/v1/outbox/abort", &json!({"id": row})).await;
    assert_eq!((said.status, &said.body["outcome"]), (200, &json!("not_sent")));
    broker.listen().await;
    home.until_live().await;
    home.unix().send("next", "@ci", "after").await;
    assert_eq!(broker.until_accepted(1).await, ["after"]);
    let (_broker, home, row) = dead().await;
    let said = home.unix().post("/v1/outbox/abort", &json!({"id": row})).await;
    assert_eq!((said.status, &said.body["outcome"]), (200, &json!("not_accepted")));
    let unknown = home.unix().post("/v1/outbox/abort", &json!({"id": "01M7GH3C2R6V0D9QK1TJX4N8YE"})).await;
    assert_eq!(refused(&unknown), (404, "not_found"));
    let malformed = home.unix().post("/v1/outbox/abort", &json!({"id": "x"})).await;
    assert_eq!(refused(&malformed), (400, "invalid_request"));
}

#[tokio::test]
async fn an_abort_of_a_row_the_broker_has_says_so() {
    let (broker, home, row) = accepted_unknown().await;
    let said = home.unix().post("/v1/outbox/abort", &json!({"id": row})).await;
    assert_eq!((said.status, &said.body["outcome"]), (200, &json!("unknown")), "offline nobody knows");
    broker.listen().await;
    let life = home.until_life("old", |life| life["outcome"] == "accepted").await;
    assert_eq!(life["status"], "aborted", "a person's word stands, the fact is noted beside it");
}

/// The prefix of a refused row's fingerprint, as its inspection shows it whole.
async fn prefix_of(home: &Home, row: &str) -> Value {
    let whole = home.unix().get(&format!("/v1/outbox/{row}")).await.body["request_fingerprint"].clone();
    json!(whole.as_str().unwrap()[..16])
}

#[tokio::test]
async fn every_conflict_about_a_row_carries_the_prefix_of_its_fingerprint() {
    let (broker, home) = Home::linked().await;
    broker.script(|_| Reply::Silence);
    home.unix().send("old", "@ci", "words").await;
    home.until_life("old", |life| life["status"] == "inflight").await;
    let row = row_of(&home, "old").await;
    let prefix = prefix_of(&home, &row).await;
    let abort = |row: String| json!({"id": row});
    for said in [
        requeue(&home, &row, json!({})).await,
        home.unix().post("/v1/outbox/abort", &abort(row.clone())).await,
    ] {
        assert_eq!(refused(&said), (409, "row_inflight"));
        assert_eq!(said.body["daemon_fingerprint_prefix"], prefix, "{said:?}");
    }
    let (_broker, home, row) = never_left().await;
    home.unix().send("taken", "@ops", "other").await;
    let (taken, prefix) = (row_of(&home, "taken").await, prefix_of(&home, &row).await);
    for (id, holder, conflict) in [
        ("taken", &taken, "outbox_pending_fingerprint_mismatch"),
        ("old", &row, "outbox_pending_fingerprint_match"),
    ] {
        let said = requeue(&home, &row, json!({"new_client_message_id": id})).await;
        assert_eq!(refused(&said), (409, "idempotency_key_reused"));
        let told = (&said.body["row"], &said.body["conflict"], &said.body["client_message_id"]);
        assert_eq!(told, (&json!(holder), &json!(conflict), &json!(id)), "{said:?}");
        assert_eq!(said.body["daemon_fingerprint_prefix"], prefix_of(&home, holder).await, "{said:?}");
    }
    assert_eq!(home.unix().post("/v1/outbox/abort", &abort(row.clone())).await.status, 200);
    for said in [
        requeue(&home, &row, json!({})).await,
        home.unix().post("/v1/outbox/abort", &abort(row.clone())).await,
    ] {
        assert_eq!(refused(&said), (409, "row_aborted"));
        assert_eq!(said.body["daemon_fingerprint_prefix"], prefix, "{said:?}");
    }
    let (broker, home, row) = accepted_unknown().await;
    let prefix = prefix_of(&home, &row).await;
    broker.listen().await;
    home.until_live().await;
    // The first is told what the broker says, the second what the row says.
    for _ in 0..2 {
        let said = requeue(&home, &row, json!({})).await;
        assert_eq!(refused(&said), (409, "already_accepted"));
        assert_eq!(said.body["daemon_fingerprint_prefix"], prefix, "{said:?}");
    }
}

#[tokio::test]
async fn who_retired_a_row_and_that_it_was_accepted_after_all_is_shown_wherever_the_row_is() {
    let (broker, home, row) = accepted_unknown().await;
    let forced = requeue(&home, &row, json!({"force_duplicate": true})).await.body;
    let aborted = home.unix().get(&format!("/v1/outbox/{row}")).await.body;
    assert_eq!((&aborted["aborted_by"], &aborted["late_ack_at"]), (&json!("operator"), &Value::Null));
    assert_eq!(aborted["aborted_at"], aborted["receipt"]["at"]);
    broker.listen().await;
    home.until_live().await;
    let new = forced["new_client_message_id"].as_str().unwrap();
    home.until_life(new, |life| life["status"] == "aborted").await;
    let message = broker.books().accepted[0].row.broker_message_id.to_string();
    let list = home.unix().get("/v1/outbox?status=aborted").await.body["items"].clone();
    for (place, id, by) in
        [(1, row.as_str(), "operator"), (0, forced["new_row_id"].as_str().unwrap(), "policy")]
    {
        let inspected = home.unix().get(&format!("/v1/outbox/{id}")).await.body;
        let life = home.unix().get(&format!("/v1/messages/{id}")).await.body;
        for shown in [&inspected, &life, &list[place]] {
            assert_eq!((&shown["id"], &shown["aborted_by"]), (&json!(id), &json!(by)), "{shown}");
            let accepted = by == "operator";
            assert_eq!(shown["late_ack_at"].is_string(), accepted, "{shown}");
            assert_eq!(
                shown["broker_message_id"],
                if accepted { json!(message) } else { Value::Null },
                "{shown}"
            );
            assert_eq!(shown["history_id"], if accepted { json!(1) } else { Value::Null }, "{shown}");
        }
    }
    let old = home.unix().get("/v1/explain/old").await.body;
    let told = (&old["aborted_by"], &old["message_id"], &old["history_id"]);
    assert_eq!(told, (&json!("operator"), &json!(message), &json!(1)), "{old}");
    assert!(old["sentence"].as_str().unwrap().contains("a person retired it"), "{old}");
    assert!(old["next"].as_str().unwrap().contains(&message), "{old}");
    let new = home.unix().get(&format!("/v1/explain/{new}")).await.body;
    assert_eq!((&new["aborted_by"], &new["message_id"]), (&json!("policy"), &Value::Null), "{new}");
    assert!(!new["sentence"].as_str().unwrap().contains("a person"), "{new}");
}
