//! Answers that are slow, endless, huge, or no answers at all.

use std::time::Duration;

use model::DeliveryRung;
use model::limits::WEBHOOK_ANSWER_BYTES_MAX;

use super::receiver::{Receiver, Reply, status};
use super::scene::Scene;

/// Short for a test, long for a loaded machine.
const SHORT: Duration = Duration::from_millis(500);
/// A deadline that no test waits for.
const LONG: Duration = Duration::from_secs(60);

fn again(answer: &str) -> (DeliveryRung, Option<String>) {
    (DeliveryRung::Accepted, Some(answer.to_owned()))
}

const TAKEN: (DeliveryRung, Option<String>) = (DeliveryRung::Delivered, None);

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    let receiver = Receiver::start(vec![Reply::Silence]).await;
    assert_eq!(Scene::open().await.one_call(&receiver, SHORT).await, again("timeout"));
    assert_eq!(receiver.calls().len(), 1);
}

#[tokio::test]
async fn a_head_that_never_ends_is_no_answer() {
    let endless =
        Reply::Endless { first: "HTTP/1.1 200 OK\r\n".into(), then: format!("x: {}\r\n", "y".repeat(1_000)) };
    let receiver = Receiver::start(vec![endless]).await;
    assert_eq!(Scene::open().await.one_call(&receiver, LONG).await, again("broken"));
}

#[tokio::test]
async fn a_huge_body_is_not_read() {
    let huge = Reply::Endless {
        first: "HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n".into(),
        then: "z".repeat(64 * 1024),
    };
    let receiver = Receiver::start(vec![huge]).await;
    assert_eq!(Scene::open().await.one_call(&receiver, LONG).await, TAKEN);
    // What the kernel buffers on the way is not ours; it is far from a gigabyte.
    assert!(receiver.written() < 64 * 1024 * 1024, "{}", receiver.written());
}

#[tokio::test]
async fn a_body_without_end_is_left_after_its_first_bytes() {
    let chunk = format!("{:x}\r\n{}\r\n", WEBHOOK_ANSWER_BYTES_MAX, "z".repeat(WEBHOOK_ANSWER_BYTES_MAX));
    let endless =
        Reply::Endless { first: "HTTP/1.1 201 OK\r\ntransfer-encoding: chunked\r\n\r\n".into(), then: chunk };
    let receiver = Receiver::start(vec![endless]).await;
    assert_eq!(Scene::open().await.one_call(&receiver, LONG).await, TAKEN);
}

#[tokio::test]
async fn a_status_counts_although_its_body_never_comes() {
    let held = Reply::Held("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n".into());
    let receiver = Receiver::start(vec![held]).await;
    assert_eq!(Scene::open().await.one_call(&receiver, SHORT).await, TAKEN);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Receiver::start(vec![status(200, &[])]).await;
    for code in [301, 302, 303, 307, 308] {
        let location = format!("location: {}", elsewhere.url());
        let receiver = Receiver::start(vec![status(code, &[&location])]).await;
        assert_eq!(Scene::open().await.one_call(&receiver, LONG).await, again(&format!("http_{code}")));
        assert_eq!(receiver.calls().len(), 1);
    }
    assert!(elsewhere.calls().is_empty());
}

#[tokio::test]
async fn what_is_not_http_and_what_is_not_there_is_no_answer() {
    let receiver = Receiver::start(vec![Reply::Text("SSH-2.0-OpenSSH_9.2\r\n\r\n".into())]).await;
    assert_eq!(Scene::open().await.one_call(&receiver, LONG).await, again("broken"));
    let hangs_up = Receiver::start(vec![Reply::Text(String::new())]).await;
    assert_eq!(Scene::open().await.one_call(&hangs_up, LONG).await, again("broken"));
    let mut scene = Scene::open().await;
    let url = {
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}/", closed.local_addr().unwrap())
    };
    scene.webhooks.timeout = LONG;
    scene.hook(&url).await;
    let receipt = scene.send("@hook", "m", "hi").await;
    scene.push_due().await;
    assert_eq!(scene.last_answer(&receipt).await.as_deref(), Some("unreachable"));
}

#[tokio::test]
async fn every_status_but_success_and_gone_is_tried_again() {
    for code in [400, 401, 403, 404, 408, 409, 422, 425, 429, 500, 502, 503, 504] {
        let receiver = Receiver::start(vec![status(code, &[])]).await;
        assert_eq!(Scene::open().await.one_call(&receiver, LONG).await, again(&format!("http_{code}")));
    }
    for code in [200, 201, 202, 204, 299] {
        let receiver = Receiver::start(vec![status(code, &[])]).await;
        assert_eq!(Scene::open().await.one_call(&receiver, LONG).await, TAKEN, "{code}");
    }
}
