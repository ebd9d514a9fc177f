//! What a person sees and does.

use http::Method;
use serde_json::json;

use crate::stage::Stage;

/// A conflict at `/tasks/1`, with another write waiting behind it.
async fn conflict(stage: &Stage) -> String {
    stage.upstream.write("/tasks/1", json!({"n": 0}));
    stage.call(Method::GET, "/tasks/1", &[], "").await;
    stage.upstream.leave().await;
    stage.patch("/tasks/1", "mine", r#"{"n":"mine"}"#).await;
    let behind = stage.patch("/tasks/1", "later", r#"{"n":"later"}"#).await;
    assert_eq!(behind.body["queued_behind"], 1);
    stage.upstream.write("/tasks/1", json!({"n": "theirs"}));
    stage.upstream.come_back().await;
    let status = stage.drained().await;
    assert_eq!((&status["conflict"], &status["blocked"]), (&json!(1), &json!(1)));
    stage.until("mine", "conflict").await["envelope_id"].as_str().unwrap().to_owned()
}

async fn resolve(stage: &Stage, id: &str, choice: &str) -> crate::stage::Told {
    stage.operate(Method::POST, &format!("/envelopes/{id}/resolve"), choice).await
}

#[tokio::test]
async fn keeping_mine_goes_on_the_version_that_was_seen_and_frees_what_waits_behind() {
    let stage = Stage::open().await;
    let id = conflict(&stage).await;
    let acted = resolve(&stage, &id, r#"{"choice":"keep"}"#).await;
    assert_eq!(acted.body["successor"]["precondition"], "match \"2\"");
    stage.drained().await;
    let order: Vec<_> =
        stage.upstream.books.lock().unwrap().applied.iter().map(|(_, body)| body.clone()).collect();
    assert_eq!(order[0], json!({"n": "mine"}), "in its old place, before the one that waited");
    assert_eq!(stage.until("mine", "superseded").await["resolution"], "kept mine");
}

#[tokio::test]
async fn dropping_mine_leaves_theirs_and_an_edit_is_sent_in_its_place() {
    let stage = Stage::open().await;
    let id = conflict(&stage).await;
    let refused = resolve(&stage, &id, r#"{"choice":"edit","body":{"password":"x"}}"#).await;
    assert_eq!(refused.code(), "secret_in_payload");
    resolve(&stage, &id, r#"{"choice":"edit","body":{"n":"both"}}"#).await;
    stage.drained().await;
    assert!(
        stage.upstream.books.lock().unwrap().applied.iter().any(|(_, body)| *body == json!({"n": "both"}))
    );

    let stage = Stage::open().await;
    let id = conflict(&stage).await;
    assert_eq!(resolve(&stage, &id, r#"{"choice":"drop"}"#).await.body["did"], "cancelled");
    assert_eq!(stage.until("mine", "cancelled").await["resolution"], "dropped mine");
    assert_eq!(stage.upstream.applied("mine"), 0);
}

#[tokio::test]
async fn a_conflict_is_found_by_the_tail_of_its_id_and_wrong_words_are_refused() {
    let stage = Stage::open().await;
    let id = conflict(&stage).await;
    let tail = &id[id.len() - 6..];
    assert_eq!(stage.operate(Method::GET, &format!("/envelopes/{tail}"), "").await.body["envelope_id"], id);
    assert_eq!(resolve(&stage, tail, r#"{"choice":"later"}"#).await.status, 400);
    assert_eq!(stage.operate(Method::GET, "/envelopes/ZZZZZZ", "").await.status, 404);
    assert_eq!(stage.operate(Method::GET, "/envelopes?status=sent", "").await.status, 400);
}

#[tokio::test]
async fn readers_are_told_of_writes_that_wait_and_repeats_of_words_without_a_key_are_marked() {
    let stage = Stage::open().await;
    stage.upstream.leave().await;
    stage.patch("/tasks/1", "a", r#"{"n":1}"#).await;
    let first = stage.call(Method::POST, "/progress/", &[], r#"{"note":1}"#).await;
    let twin = stage.call(Method::POST, "/progress/", &[], r#"{"note":1}"#).await;
    assert_eq!(twin.body["possible_duplicate_of"], first.body["envelope_id"]);
    assert_ne!(twin.body["idempotency_key"], first.body["idempotency_key"], "two equal notes are legal");
    let again = stage.patch("/tasks/1", "a", r#"{"n":1}"#).await;
    assert_eq!(again.status, 202, "the same key and words: the same envelope");
    assert_eq!(stage.patch("/tasks/1", "a", r#"{"n":2}"#).await.code(), "idempotency_key_reused");
    assert_eq!(stage.status().await["queued"], 3);
}
