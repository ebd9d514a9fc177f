//! What a relay says about an id: an envelope's, its key's, or one it never stored.

use http::Method;
use serde_json::{Value, json};

use crate::stage::{PATIENCE, Stage};
use crate::upstream::Fault;

async fn explained(stage: &Stage, id: &str) -> Value {
    let told = stage.operate(Method::GET, &format!("/explain/{id}"), "").await;
    assert_eq!(told.status, 200, "{id}: {}", told.body);
    told.body
}

fn steps(found: &Value) -> Vec<&str> {
    found["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_write_is_told_from_queued_to_done_by_its_key_its_id_and_its_tail() {
    let stage = Stage::open().await;
    stage.upstream.leave().await;
    let receipt = stage.post("/progress/", "note-1", r#"{"n":1}"#).await;
    for other in 0..model::limits::BREAKER_FAILURES_MAX {
        stage.post("/progress/", &format!("other-{other}"), r#"{"n":2}"#).await;
    }
    let told = explained(&stage, "note-1").await;
    assert_eq!(told["found"]["verdict"], "queued");
    assert_eq!(told["found"]["sentence"], "queued at the relay; the upstream is away");
    assert_eq!((&told["found"]["needs_person"], &told["found"]["fix"]), (&json!(false), &json!([])));
    let id = receipt.body["envelope_id"].as_str().unwrap();
    for name in [id, &id[id.len() - 6..]] {
        assert_eq!(explained(&stage, name).await["found"], told["found"], "{name}");
    }
    stage.upstream.come_back().await;
    stage.drained().await;
    let found = explained(&stage, "note-1").await["found"].clone();
    assert_eq!((&found["verdict"], steps(&found)), (&json!("done"), vec!["queued", "tried", "done"]));
    assert_eq!(found["envelope"]["mine"], Value::Null, "an explanation shows no body");
}

#[tokio::test]
async fn a_conflict_and_what_waits_behind_it_name_what_a_person_does() {
    let stage = Stage::open().await;
    stage.upstream.write("/tasks/1", json!({"n": 0}));
    stage.call(Method::GET, "/tasks/1", &[], "").await;
    stage.upstream.leave().await;
    stage.patch("/tasks/1", "mine", r#"{"n":"mine"}"#).await;
    stage.patch("/tasks/1", "later", r#"{"n":"later"}"#).await;
    stage.upstream.write("/tasks/1", json!({"n": "theirs"}));
    stage.upstream.come_back().await;
    stage.drained().await;
    let mine = explained(&stage, "mine").await["found"].clone();
    assert_eq!((&mine["verdict"], &mine["needs_person"]), (&json!("conflict"), &json!(true)));
    let id = mine["envelope"]["envelope_id"].as_str().unwrap();
    assert_eq!(mine["fix"][0], format!("postrider relay outbox inspect {id}"));
    let later = explained(&stage, "later").await["found"].clone();
    assert_eq!((&later["verdict"], &later["needs_person"]), (&json!("queued"), &json!(true)));
    assert_eq!(later["sentence"], "queued at the relay behind a conflict");
    stage.operate(Method::POST, &format!("/envelopes/{id}/resolve"), r#"{"choice":"keep"}"#).await;
    stage.drained().await;
    let mine = explained(&stage, "mine").await["found"].clone();
    assert_eq!((&mine["verdict"], &mine["needs_person"]), (&json!("superseded"), &json!(false)));
}

#[tokio::test]
async fn a_withdrawn_write_says_that_it_never_left() {
    let stage = Stage::open().await;
    stage.upstream.leave().await;
    stage.post("/progress/", "gone", r#"{"n":1}"#).await;
    stage.operate(Method::POST, "/envelopes/gone/cancel", "{}").await;
    let found = explained(&stage, "gone").await["found"].clone();
    assert_eq!(
        (&found["verdict"], steps(&found)),
        (&json!("cancelled"), vec!["queued", "tried", "cancelled"])
    );
    assert_eq!(found["next"], "No byte of it left this host.");
}

#[tokio::test]
async fn a_key_that_was_refused_here_or_there_is_told_although_nothing_is_stored() {
    let stage = Stage::open().await;
    stage.upstream.set(Fault::Status(422));
    assert_eq!(stage.post("/progress/", "wrong", r#"{"n":1}"#).await.status, 422);
    // First the upstream is asked about the key, then the envelope is forgotten: its caller heard the answer.
    let forgotten = async {
        while stage.envelope("wrong").await.is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, forgotten).await.unwrap();
    let found = explained(&stage, "wrong").await["found"].clone();
    assert_eq!((&found["verdict"], &found["code"]), (&json!("rejected"), &json!("422")));
    stage.upstream.set(Fault::None);
    stage.upstream.leave().await;
    let secret = stage.post("/progress/", "secret", r#"{"password":"hunter2"}"#).await;
    assert_eq!(secret.code(), "secret_in_payload");
    let found = explained(&stage, "secret").await["found"].clone();
    assert_eq!((&found["verdict"], &found["code"]), (&json!("refused"), &json!("secret_in_payload")));
    assert_eq!((&found["envelope"], steps(&found)), (&Value::Null, vec!["refused"]));
}

#[tokio::test]
async fn an_id_the_relay_never_saw_is_answered_with_its_upstream_and_nothing_found() {
    let stage = Stage::open().await;
    for id in ["never", "01M7GHXX7R3TQ9V0B2C8K604ZK", "ZZZZZZ", "a%2Fb%20c"] {
        let told = explained(&stage, id).await;
        assert_eq!(told["found"], Value::Null, "{id}");
        assert!(told["upstream"].as_str().unwrap().starts_with("http://127.0.0.1"), "{told}");
    }
}
