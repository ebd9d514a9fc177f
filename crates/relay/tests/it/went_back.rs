//! An older copy of the outbox that was put back: what waits in it may have been sent since the copy was made.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use mailbox::relay::Envelopes;
use model::{OsEntropy, Timestamp};
use net::client::Target;
use serde_json::json;
use testkit::ManualClock;

use crate::stage::Stage;
use crate::upstream::Upstream;

const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// A relay whose write `k` was committed, and whose outbox is of before that; then so many days go by.
async fn put_back_for(days: u32) -> Stage {
    let clock = Arc::new(ManualClock::at(START));
    let upstream = Upstream::start().await;
    upstream.by(clock.clone());
    let target = Target::of_url(&format!("http://{}", upstream.address)).unwrap();
    let mut stage = Stage::before(upstream, target, clock.clone(), |_| {}).await;
    stage.replay().await;
    stage.upstream.leave().await;
    let told = stage.post("/progress/", "k", r#"{"n":1}"#).await;
    assert_eq!((told.status, told.body["outcome"].as_str()), (202, Some("not_sent")));
    stage.stop().await;
    // As after days of running: the file knows how far its clock is borne out.
    let envelopes = Envelopes::open(&stage.config.outbox, Arc::new(OsEntropy), START).unwrap();
    envelopes.look_at_clock(START, None).await.unwrap();
    envelopes.close().await;
    let copy = std::fs::read(&stage.config.outbox).unwrap();
    stage.start().await;
    stage.upstream.come_back().await;
    stage.drained().await;
    stage.until("k", "done").await;
    stage.upstream.leave().await;
    stage.stop().await;
    put_back(&stage.config.outbox, &copy);
    clock.advance(Duration::from_secs(86_400) * days);
    stage.start().await;
    stage
}

fn put_back(outbox: &Path, copy: &[u8]) {
    for beside in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{beside}", outbox.display()));
    }
    std::fs::write(outbox, copy).unwrap();
}

#[tokio::test]
async fn what_waits_in_an_outbox_that_went_back_goes_again_under_its_key() {
    let stage = put_back_for(1).await;
    let row = stage.envelope("k").await.unwrap();
    assert_eq!((&row["status"], &row["outcome"]), (&json!("queued"), &json!("unknown")));
    let status = stage.status().await;
    assert!(status["went_back"].as_str().unwrap().contains("may have been sent since"), "{status}");
    stage.upstream.come_back().await;
    stage.drained().await;
    stage.until("k", "done").await;
    assert_eq!(stage.upstream.applied("k"), 1);
}

#[tokio::test]
async fn what_waits_in_an_outbox_that_went_back_is_not_applied_twice_once_its_key_was_forgotten() {
    // A hub refuses what is so old; another API does not know that it had the key.
    for takes_old in [false, true] {
        let stage = put_back_for(14).await;
        stage.upstream.forget_keys();
        stage.upstream.books.lock().unwrap().takes_old = takes_old;
        stage.upstream.come_back().await;
        stage.drained().await;
        let row = stage.envelope("k").await.unwrap();
        let retry = format!("/envelopes/{}/retry", row["envelope_id"].as_str().unwrap());
        let told = stage.operate(Method::POST, &retry, "{}").await;
        stage.drained().await;
        let applied = stage.upstream.books.lock().unwrap().applied.len();
        assert_eq!(applied, 1, "takes old {takes_old}: {row}, then {told:?}");
        assert_eq!((&row["status"], &row["outcome"]), (&json!("expired"), &json!("unknown")));
        assert_eq!(told.code(), "outcome_unknown");
        let forced = stage.operate(Method::POST, &retry, r#"{"force_duplicate":true}"#).await;
        assert_eq!(forced.body["did"], "superseded", "a person may accept it: {forced:?}");
    }
}
