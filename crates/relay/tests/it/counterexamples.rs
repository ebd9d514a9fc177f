//! CE18–CE23 of the model, each as it once went wrong.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use model::Timestamp;
use net::client::Target;
use serde_json::json;
use testkit::ManualClock;

use crate::stage::Stage;
use crate::upstream::{Fault, Upstream};

async fn seen(stage: &Stage) -> u64 {
    let version = stage.upstream.write("/tasks/1", json!({"n": 0}));
    assert_eq!(
        stage.call(Method::GET, "/tasks/1", &[], "").await.status,
        200,
        "its tag passes through the relay"
    );
    version
}

#[tokio::test]
async fn ce18_a_delayed_first_copy_cannot_overwrite_what_a_third_party_wrote() {
    let stage = Stage::open().await;
    let version = seen(&stage).await;
    stage.upstream.set(Fault::Hold);
    let told = stage.patch("/tasks/1", "mine", r#"{"n":1}"#).await;
    assert_eq!((told.status, told.body["outcome"].as_str()), (202, Some("unknown")));
    let condition = format!("\"{version}\"");
    {
        let books = stage.upstream.books.lock().unwrap();
        assert!(
            books.seen.iter().any(|copy| copy.header("if-match") == Some(&condition)),
            "also the first, live one"
        );
    }
    stage.upstream.write("/tasks/1", json!({"n": "theirs"}));
    assert_eq!(stage.upstream.release(), [409], "the delayed copy finds its condition broken");
    stage.upstream.come_back().await;
    let row = stage.until("mine", "conflict").await;
    assert_eq!(stage.upstream.record("/tasks/1"), Some(json!({"n": "theirs"})));
    assert_eq!((&row["mine"], &row["theirs"]), (&json!({"n": 1}), &json!({"n": "theirs"})));
    assert_eq!(row["precondition"], format!("match {condition}"));
}

#[tokio::test]
async fn ce19_an_envelope_that_ended_rejected_cannot_be_applied_by_an_older_copy() {
    let stage = Stage::open().await;
    stage.upstream.set(Fault::Hold);
    stage.post("/progress/", "a", r#"{"n":1}"#).await;
    stage.upstream.set(Fault::Status(422));
    stage.until("a", "rejected").await;
    stage.upstream.come_back().await;
    for status in stage.upstream.release() {
        assert_eq!(status, 409, "its key is retired");
    }
    assert_eq!(stage.upstream.applied("a"), 0, "rejected stays true");
}

#[tokio::test]
async fn ce20_a_cancelled_envelope_that_left_cannot_land_after_its_successor() {
    let stage = Stage::open().await;
    stage.upstream.set(Fault::Hold);
    let told = stage.post("/progress/", "one", r#"{"n":1}"#).await;
    let id = told.body["envelope_id"].as_str().unwrap().to_owned();
    stage.upstream.leave().await;
    let cancelling = loop {
        let told = stage.operate(Method::POST, &format!("/envelopes/{id}/cancel"), "{}").await;
        if told.code() != "row_inflight" {
            break told;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(cancelling.body["did"], "cancelling", "{cancelling:?}");
    assert_eq!(stage.post("/progress/", "two", r#"{"n":2}"#).await.status, 202, "it waits behind the first");
    stage.upstream.come_back().await;
    stage.drained().await;
    assert_eq!(stage.until("one", "cancelled").await["outcome"], "not_committed");
    assert!(stage.upstream.release().iter().all(|status| *status == 409));
    assert_eq!((stage.upstream.applied("one"), stage.upstream.applied("two")), (0, 1));
}

#[tokio::test]
async fn ce21_a_new_try_of_an_expired_envelope_that_was_committed_applies_nothing_twice() {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_800_000_000_000_000)));
    let upstream = Upstream::start().await;
    let target = Target::of_url(&format!("http://{}", upstream.address)).unwrap();
    let stage = Stage::before(upstream, target, clock.clone(), |_| {}).await;
    stage.upstream.set(Fault::CutAfter);
    let told = stage.post("/progress/", "a", "{}").await;
    assert_eq!((told.status, stage.upstream.applied("a")), (202, 1));
    stage.upstream.leave().await;
    let never = stage.post("/progress/", "b", "{}").await;
    assert_eq!(never.status, 202);
    clock.advance(Duration::from_secs(14 * 86_400));
    stage.upstream.come_back().await;
    // The upstream's word settles the first; the second never left.
    stage.until("a", "done").await;
    let expired = stage.until("b", "expired").await;
    assert_eq!(expired["outcome"], "not_sent");
    let id = expired["envelope_id"].as_str().unwrap();
    let again = stage.operate(Method::POST, &format!("/envelopes/{id}/retry"), "{}").await;
    assert_eq!(again.body["did"], "superseded", "{again:?}");
    let successor = again.body["successor"]["idempotency_key"].as_str().unwrap();
    stage.until(successor, "done").await;
    assert_eq!((stage.upstream.applied("a"), stage.upstream.applied("b")), (1, 0));
}

#[tokio::test]
async fn ce22_a_delete_a_large_and_a_secret_bearing_write_cannot_overtake_a_waiting_one() {
    let stage = Stage::open().await;
    seen(&stage).await;
    stage.upstream.leave().await;
    assert_eq!(stage.patch("/tasks/1", "mine", r#"{"n":1}"#).await.status, 202);
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(70_000));
    for (method, body) in [
        (Method::DELETE, ""),
        (Method::PATCH, large.as_str()),
        (Method::PATCH, r#"{"password":"x"}"#),
        (Method::PUT, "{}"),
    ] {
        let told = stage.call(method.clone(), "/tasks/1", &[], body).await;
        assert_eq!((told.status, told.code()), (503, "pending_writes"), "{method}");
    }
    stage.upstream.come_back().await;
    stage.drained().await;
    assert_eq!(stage.call(Method::DELETE, "/tasks/1", &[], "").await.status, 201);
    let books = stage.upstream.books.lock().unwrap();
    assert!(books.seen.last().unwrap().header("if-match").is_some(), "under the last tag that was seen");
}

#[tokio::test]
async fn ce23_a_stale_attempt_cannot_bring_a_cancelled_envelope_back() {
    // The race of two replayers over one lease is a test of the file; here the whole way.
    let stage = Stage::open().await;
    stage.upstream.leave().await;
    let told = stage.post("/progress/", "a", "{}").await;
    let id = told.body["envelope_id"].as_str().unwrap();
    let cancelled = stage.operate(Method::POST, &format!("/envelopes/{id}/cancel"), "{}").await;
    assert_eq!(cancelled.body["did"], "cancelled");
    stage.upstream.come_back().await;
    stage.drained().await;
    assert_eq!(
        (stage.until("a", "cancelled").await["outcome"].as_str(), stage.upstream.applied("a")),
        (Some("not_sent"), 0)
    );
}
