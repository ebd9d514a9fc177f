//! Input that is wrong on purpose: the named answer each, and memory stays flat.

use axum::body::Body;
use futures_util::{StreamExt, stream};
use http::{Method, Request};
use http_body_util::BodyExt;

use crate::stage::{Stage, told};

#[tokio::test]
async fn paths_that_climb_or_are_encoded_twice_are_refused_and_never_sent_on() {
    let stage = Stage::open().await;
    for path in [
        "/a/../progress/",
        "/%2e%2e/progress/",
        "/%252e%252e/x",
        "/tasks/%2541",
        "/tasks/a%2Fb",
        "/tasks/%zz",
    ] {
        for method in [Method::GET, Method::POST, Method::PATCH] {
            let answer = stage.call(method, path, &[], "{}").await;
            assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{path}");
        }
    }
    assert!(stage.upstream.books.lock().unwrap().seen.is_empty());
}

#[tokio::test]
async fn a_method_override_is_ignored_here_and_taken_away_for_the_upstream() {
    let stage = Stage::open().await;
    let headers = [("x-http-method-override", "DELETE"), ("idempotency-key", "a")];
    assert_eq!(stage.call(Method::PATCH, "/tasks/1", &headers, "{}").await.status, 201);
    let books = stage.upstream.books.lock().unwrap();
    assert_eq!(books.seen.last().unwrap().header("x-http-method-override"), None);
    assert!(books.records.contains_key("/tasks/1"));
}

#[tokio::test]
async fn a_chunked_body_over_the_bound_passes_live_whole_and_is_refused_when_it_would_have_to_wait() {
    let stage = Stage::open().await;
    let chunked = || {
        let begin =
            stream::once(async { Ok::<_, std::io::Error>(bytes::Bytes::from_static(b"{\"text\":\"")) });
        let middle = stream::repeat_with(|| Ok(bytes::Bytes::from(vec![b'x'; 10_000]))).take(20);
        let end = stream::once(async { Ok(bytes::Bytes::from_static(b"\"}")) });
        Request::builder()
            .method(Method::POST)
            .uri("/progress/")
            .header("content-type", "application/json")
            .body(Body::from_stream(begin.chain(middle).chain(end)))
            .unwrap()
    };
    assert_eq!(told(stage.raw(chunked()).await).await.status, 201);
    {
        let books = stage.upstream.books.lock().unwrap();
        let (_, body) = books.applied.last().unwrap();
        assert_eq!(body["text"].as_str().unwrap().len(), 200_000, "not a byte was lost");
    }
    stage.upstream.leave().await;
    let refused = told(stage.raw(chunked()).await).await;
    assert_eq!((refused.status, refused.code()), (413, "payload_too_large_to_queue"));
}

#[tokio::test]
async fn keys_and_bodies_that_are_none_are_refused_or_passed_but_never_stored() {
    let stage = Stage::open().await;
    let long = "k".repeat(129);
    for key in ["a b", long.as_str()] {
        let answer = stage.post("/progress/", key, "{}").await;
        assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{key}");
    }
    stage.upstream.leave().await;
    let deep = "[".repeat(5_000);
    for body in ["", "{", "{} {}", "nope", deep.as_str()] {
        let answer = stage.post("/progress/", "k", body).await;
        assert_eq!((answer.status, answer.code()), (503, "upstream_unreachable_online_only"), "{body:.20}");
    }
    assert_eq!(stage.status().await["queued"], 0);
}

#[tokio::test]
async fn an_endless_answer_is_streamed_and_not_gathered() {
    let stage = Stage::open().await;
    let request = Request::builder().uri("/endless").body(Body::empty()).unwrap();
    let mut body = stage.raw(request).await.into_body();
    let before = resident_kib();
    let mut read = 0;
    while read < 256 * 1024 * 1024 {
        let frame = body.frame().await.unwrap().unwrap();
        read += frame.data_ref().map_or(0, |data| data.len());
    }
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB more for {read} bytes that passed");
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
