//! Tags: one for each resource, whatever path it was written by. A caller that is the only writer meets no conflict.

use http::Method;
use serde_json::{Value, json};
use testkit::seeded::Seeded;

use crate::stage::{Stage, Told};

async fn write(stage: &Stage, method: &Method, path: &str, body: Value) -> Told {
    stage.call(method.clone(), path, &[], &body.to_string()).await
}

#[tokio::test]
async fn writes_by_two_names_of_a_resource_are_each_under_the_last_tag() {
    for paths in [
        ["/workplans/1", "/workstreams/1", "/workplans/1"],
        ["/decisions/1", "/decisions/1/resolve", "/decisions/1"],
        ["/tasks/1", "/tasks/bulk-status-sync", "/tasks/1"],
    ] {
        let stage = Stage::open().await;
        for path in paths {
            let method = if path.ends_with("resolve") || path.ends_with("sync") {
                Method::POST
            } else {
                Method::PATCH
            };
            let told = write(&stage, &method, path, json!({"tasks": [{"id": "1", "status": "done"}]})).await;
            assert_eq!(told.status, 201, "{path} of {paths:?}: {told:?}");
        }
    }
}

#[tokio::test]
async fn the_tag_of_a_live_conflict_is_dropped_so_that_the_next_write_is_not_refused_for_it() {
    let stage = Stage::open().await;
    assert_eq!(write(&stage, &Method::PATCH, "/tasks/1", json!({"n": 1})).await.status, 201);
    stage.upstream.write("/tasks/1", json!({"n": "theirs"}));
    let first = write(&stage, &Method::PATCH, "/tasks/1", json!({"n": 2})).await;
    assert_eq!((first.status, first.code()), (409, "state_conflict"));
    let again = write(&stage, &Method::PATCH, "/tasks/1", json!({"n": 2})).await;
    assert_eq!(again.status, 201, "{again:?}");
}

#[tokio::test]
async fn a_write_that_waited_for_another_is_under_the_tag_that_one_left() {
    let stage = std::sync::Arc::new(Stage::open().await);
    assert_eq!(write(&stage, &Method::PATCH, "/tasks/1", json!({"n": 0})).await.status, 201);
    stage.upstream.set(crate::upstream::Fault::Slow(std::time::Duration::from_millis(50)));
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..4 {
        let stage = std::sync::Arc::clone(&stage);
        writers.spawn(async move { write(&stage, &Method::PATCH, "/tasks/1", json!({"n": n})).await });
    }
    for told in writers.join_all().await {
        assert_eq!(told.status, 201, "{told:?}");
    }
}

#[tokio::test]
async fn a_read_that_is_answered_after_a_write_does_not_bring_the_tag_from_before_it_back() {
    for (method, path) in [(Method::PATCH, "/tasks/1"), (Method::POST, "/tasks/bulk-status-sync")] {
        let stage = std::sync::Arc::new(Stage::open().await);
        stage.upstream.write("/tasks/1", json!({"n": 0}));
        stage.upstream.set(crate::upstream::Fault::LateReads);
        let reader = std::sync::Arc::clone(&stage);
        let reading = tokio::spawn(async move { reader.call(Method::GET, "/tasks/1", &[], "").await });
        while stage.upstream.books.lock().unwrap().seen.is_empty() {
            tokio::task::yield_now().await;
        }
        let first = write(&stage, &method, path, json!({"tasks": [{"id": "1"}]})).await;
        assert_eq!(first.status, 201, "{path}: {first:?}");
        stage.upstream.answer_reads();
        assert_eq!(reading.await.unwrap().header("etag"), "\"1\"", "{path}: what the read saw");
        let second = write(&stage, &Method::PATCH, "/tasks/1", json!({"n": 2})).await;
        assert_eq!(second.status, 201, "{path}: {second:?}");
    }
}

#[tokio::test]
async fn a_record_that_is_stamped_in_the_future_lets_no_write_of_another_overwrite() {
    let batch = json!({"tasks": [{"id": "2", "status": "mine"}]});
    for (method, path, mine) in [
        (Method::PATCH, "/tasks/2", json!({"status": "mine"})),
        (Method::POST, "/tasks/bulk-status-sync", batch),
    ] {
        let stage = Stage::open().await;
        stage.upstream.write("/tasks/1", json!({"n": 0}));
        stage.upstream.stamp_ahead("/tasks/1", std::time::Duration::from_secs(86_400));
        assert_eq!(stage.call(Method::GET, "/tasks/1", &[], "").await.status, 200);
        assert_eq!(write(&stage, &Method::PATCH, "/tasks/1", json!({"n": 1})).await.status, 201);
        stage.upstream.leave().await;
        let headers = [("idempotency-key", "mine")];
        let told = stage.call(method, path, &headers, &mine.to_string()).await;
        assert_eq!(told.status, 202, "{path}: {told:?}");
        stage.upstream.write("/tasks/2", json!({"status": "theirs"}));
        stage.upstream.come_back().await;
        stage.drained().await;
        let row = stage.envelope("mine").await.unwrap();
        assert_eq!(row["status"], "conflict", "{path}: {row}");
        assert_eq!(stage.upstream.record("/tasks/2"), Some(json!({"status": "theirs"})), "{path}");
    }
}

/// A write of the only caller there is.
fn drawn(seeded: &mut Seeded) -> (Method, String, Value) {
    let id = seeded.below(4);
    match seeded.below(7) {
        0 => (Method::PATCH, format!("/workplans/{id}"), json!({"n": id})),
        1 => (Method::PATCH, format!("/workstreams/{id}"), json!({"n": id})),
        2 => (Method::PATCH, format!("/decisions/{id}"), json!({"n": id})),
        3 => (Method::POST, format!("/decisions/{id}/resolve"), json!({"n": id})),
        4 | 5 => (Method::PATCH, format!("/tasks/{id}"), json!({"n": id})),
        _ => {
            let tasks: Vec<Value> =
                (0..4).filter(|_| seeded.chance(50)).map(|id| json!({"id": id.to_string()})).collect();
            (Method::POST, "/tasks/bulk-status-sync".to_owned(), json!({"tasks": tasks}))
        }
    }
}

#[tokio::test]
async fn a_thousand_writes_of_one_caller_over_other_names_and_batches_make_no_conflict() {
    let (stage, mut seeded) = (Stage::open().await, Seeded::new(3));
    for place in 0..1_000 {
        let (method, path, body) = drawn(&mut seeded);
        let told = write(&stage, &method, &path, body).await;
        assert_eq!(told.status, 201, "{place}: {method} {path}: {told:?}");
    }
    assert_eq!(stage.upstream.books.lock().unwrap().applied.len(), 1_000);
}

#[tokio::test]
async fn a_thousand_writes_of_one_caller_over_ten_outages_make_no_conflict() {
    let (mut stage, mut seeded) = (Stage::open().await, Seeded::new(5));
    for round in 0..10 {
        for place in 0..100 {
            if place == 50 {
                stage.upstream.leave().await;
            }
            let (method, path, body) = drawn(&mut seeded);
            let told = write(&stage, &method, &path, body).await;
            assert!(matches!(told.status, 201 | 202), "{round}-{place}: {method} {path}: {told:?}");
        }
        if seeded.chance(30) {
            stage.stop().await;
            stage.start().await;
        }
        stage.upstream.come_back().await;
        let status = stage.drained().await;
        let clashed = stage.operate(Method::GET, "/envelopes?status=conflict&bodies=true", "").await.body;
        assert_eq!(status["conflict"], 0, "{round}: {clashed}");
    }
    assert_eq!(stage.upstream.books.lock().unwrap().applied.len(), 1_000);
}
