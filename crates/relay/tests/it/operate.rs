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
async fn a_conflict_shows_what_was_there_what_was_asked_and_what_is_there_now() {
    let stage = Stage::open().await;
    let id = conflict(&stage).await;
    let shown = stage.operate(Method::GET, &format!("/envelopes/{id}"), "").await.body;
    assert_eq!(
        (&shown["base"], &shown["mine"], &shown["theirs"]),
        (&json!({"n": 0}), &json!({"n": "mine"}), &json!({"n": "theirs"}))
    );
    assert!(shown.get("base_unknown").is_none(), "{shown}");
    resolve(&stage, &id, r#"{"choice":"keep"}"#).await;
    let shown = stage.operate(Method::GET, &format!("/envelopes/{id}"), "").await.body;
    let path = format!("/envelopes/{}", shown["superseded_by"].as_str().unwrap());
    let next = stage.operate(Method::GET, &path, "").await.body;
    // Once it is done nothing of it is kept; until then it stands on what its person saw.
    assert!(next["status"] == "done" || next["base"] == json!({"n": "theirs"}), "{next}");
}

#[tokio::test]
async fn a_base_that_did_not_pass_or_must_not_be_kept_is_said_to_be_unknown() {
    let stage = Stage::open().await;
    stage.upstream.write("/tasks/1", json!({"password": "hunter2"}));
    stage.call(Method::GET, "/tasks/1", &[], "").await;
    stage.upstream.leave().await;
    stage.patch("/tasks/1", "secret", r#"{"n":1}"#).await;
    stage.patch("/tasks/2", "unseen", r#"{"n":1}"#).await;
    let headers = [("idempotency-key", "named"), ("if-match", "\"7\"")];
    stage.call(Method::PATCH, "/tasks/3", &headers, r#"{"n":1}"#).await;
    stage.post("/progress/", "added", r#"{"n":1}"#).await;
    for (key, word) in
        [("secret", "not kept"), ("unseen", "the time it was asked"), ("named", "did not pass")]
    {
        let row = stage.envelope(key).await.unwrap();
        assert!(row.get("base").is_none(), "{row}");
        assert!(row["base_unknown"].as_str().unwrap().contains(word), "{row}");
    }
    assert!(stage.envelope("added").await.unwrap().get("base_unknown").is_none(), "it adds something");
    let bytes = std::fs::read(stage.folder.path().join("outbox.db-wal")).unwrap_or_default();
    assert!(!bytes.windows(7).any(|part| part == b"hunter2"), "it never reached the disk");
}

#[tokio::test]
async fn a_callers_instant_is_its_condition_as_http_writes_it_and_with_microseconds() {
    let stage = Stage::open().await;
    stage.upstream.leave().await;
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (task, key, line) in [("1", "date", date), ("2", "exact", "1994-11-06T08:49:37.000001Z")] {
        let headers = [("idempotency-key", key), ("if-unmodified-since", line)];
        let told = stage.call(Method::PATCH, &format!("/tasks/{task}"), &headers, r#"{"n":1}"#).await;
        assert_eq!(told.status, 202, "{told:?}");
    }
    let headers = [("idempotency-key", "unreadable"), ("if-unmodified-since", "yesterday")];
    let told = stage.call(Method::PATCH, "/tasks/3", &headers, r#"{"n":1}"#).await;
    assert_eq!((told.status, told.code()), (503, "upstream_unreachable_online_only"));
    let kept = stage.envelope("date").await.unwrap()["precondition"].clone();
    assert!(kept.as_str().unwrap().starts_with("unmodified-since 1994-11-06T08:49:37"), "{kept}");
    stage.upstream.come_back().await;
    stage.drained().await;
    let books = stage.upstream.books.lock().unwrap();
    for line in [date, "1994-11-06T08:49:37.000001Z"] {
        assert!(books.seen.iter().any(|copy| copy.header("if-unmodified-since") == Some(line)), "{line}");
    }
}

#[tokio::test]
async fn the_standing_says_when_the_upstream_last_answered_and_what_went_unanswered_since() {
    let stage = Stage::open().await;
    let unasked = stage.status().await;
    assert_eq!((&unasked["last_answered_at"], &unasked["unanswered_since"]), (&json!(null), &json!(0)));
    stage.call(Method::GET, "/tasks/1", &[], "").await;
    let answered = stage.status().await;
    assert!(answered["last_answered_at"].is_string() && answered["reachable"] == true, "{answered}");
    stage.upstream.leave().await;
    stage.call(Method::GET, "/tasks/1", &[], "").await;
    let refused = stage.status().await;
    assert_eq!(
        (&refused["reachable"], &refused["unanswered_since"]),
        (&json!(false), &json!(1)),
        "{refused}"
    );
    assert_eq!(refused["last_answered_at"], answered["last_answered_at"]);
    assert!(refused["away_seconds"].is_null(), "one is not an outage yet: {refused}");
    assert!(refused["unanswered_because"].as_str().unwrap().contains("refused"), "{refused}");
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
