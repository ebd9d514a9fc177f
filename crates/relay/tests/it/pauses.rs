//! A pause: what meets it, what ends it, and what outlives it.

use std::time::Duration;

use serde_json::Value;

use crate::stage::{PATIENCE, Stage};
use crate::upstream::Fault;

/// More than are replayed at once, each in an order of its own.
const WAITING: usize = 24;

/// Writes of different sessions that wait, before an upstream that refuses the relay's credential.
async fn refused_with(status: u16) -> Stage {
    let stage = Stage::open().await;
    stage.upstream.leave().await;
    for place in 0..WAITING {
        let (key, session) = (format!("k{place}"), format!("s{place}"));
        let headers = [("idempotency-key", key.as_str()), ("statehub-session", session.as_str())];
        assert_eq!(stage.call(http::Method::POST, "/progress/", &headers, "{}").await.status, 202);
    }
    stage.upstream.come_back().await;
    stage.upstream.set(Fault::Status(status));
    stage
}

/// Writes that reached the upstream so far.
fn met(stage: &Stage) -> usize {
    stage.upstream.books.lock().unwrap().seen.len()
}

async fn paused(stage: &Stage) -> Value {
    let look = async {
        loop {
            let status = stage.status().await;
            if !status["paused"].is_null() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.expect("the replay is paused")
}

#[tokio::test]
async fn an_upstream_that_refuses_the_credential_meets_one_write_a_pause() {
    for status in [401, 403] {
        let stage = refused_with(status).await;
        for pauses in 1..=3 {
            stage.replay().await;
            paused(&stage).await;
            // Nothing more may come: there is no condition to wait for.
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert_eq!(met(&stage), pauses, "{status}: writes that met {pauses} pauses");
        }
        assert_eq!(stage.status().await["queued"], WAITING);
        stage.upstream.set(Fault::None);
        stage.drained().await;
        assert_eq!(stage.status().await["done"], WAITING);
    }
}

#[tokio::test]
async fn a_pause_outlives_the_process_and_ends_with_a_replay() {
    let mut stage = refused_with(401).await;
    stage.replay().await;
    let before = paused(&stage).await["paused"].clone();
    let met_before = met(&stage);
    stage.stop().await;
    stage.start().await;
    assert_eq!(stage.status().await["paused"], before);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(met(&stage), met_before, "a restart ends no pause");
    stage.upstream.set(Fault::None);
    stage.drained().await;
    assert_eq!(stage.status().await["paused"], Value::Null);
    stage.stop().await;
    stage.start().await;
    assert_eq!(stage.status().await["paused"], Value::Null, "a pause that ended stays ended");
}

#[tokio::test]
async fn a_drainer_with_much_to_send_ends_when_it_is_told_to() {
    for fault in [Fault::Status(401), Fault::Stall, Fault::None] {
        let stage = Stage::with(|config| config.drain_per_second = 1).await;
        stage.upstream.leave().await;
        for place in 0..WAITING {
            let (key, session) = (format!("k{place}"), format!("s{place}"));
            let headers = [("idempotency-key", key.as_str()), ("statehub-session", session.as_str())];
            stage.call(http::Method::POST, "/progress/", &headers, "{}").await;
        }
        stage.upstream.come_back().await;
        stage.replay().await;
        stage.upstream.set(fault);
        let seen = async {
            while met(&stage) == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, seen).await.expect("the replay began");
        let ending = stage.drainer_ends();
        tokio::time::timeout(Duration::from_secs(5), ending)
            .await
            .unwrap_or_else(|_| panic!("{fault:?}: the drainer goes on 5 s after its stop"));
    }
}
