//! Hostile requests and the answers they get, over a real connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use http::StatusCode;
use net::guard::{self, Hosts, Origins, Policy};
use net::respond::{self, Json};
use net::serve::Bounds;
use net::{Secret, TokenHash};
use serde_json::Value;
use tokio::net::TcpSocket;
use tokio::sync::Notify;

use crate::scene::{Line, Scene, parsed};

/// A door that counts what gets through to its handlers.
struct Guarded {
    scene: Scene,
    reached: Arc<AtomicUsize>,
}

impl Guarded {
    async fn new() -> Self {
        let reached = Arc::new(AtomicUsize::new(0));
        let (reads, writes) = (reached.clone(), reached.clone());
        let router = Router::new()
            .route("/read", get(async move || count(&reads)))
            .route("/write", post(async move |Json(_): Json<Value>| count(&writes)))
            .route("/panic", get(panics));
        Self { scene: Scene::guarded(router, Bounds::default()).await, reached }
    }

    async fn raw(&self, request: &str) -> (u16, Value) {
        parsed(&self.scene.exchange(request).await)
    }

    async fn write(&self, lines: &[&str], body: &str) -> (u16, Value) {
        let length = format!("content-length: {}", body.len());
        let lines: Vec<&str> = lines.iter().copied().chain([length.as_str()]).collect();
        self.raw(&(self.scene.head("POST /write", &lines) + body)).await
    }

    fn reached(&self) -> usize {
        self.reached.load(Ordering::SeqCst)
    }
}

fn count(reached: &AtomicUsize) -> &'static str {
    reached.fetch_add(1, Ordering::SeqCst);
    "through"
}

async fn panics() -> &'static str {
    panic!("on purpose")
}

const JSON: &str = "content-type: application/json";

#[tokio::test]
async fn a_host_that_is_not_the_doors_is_refused_before_any_work() {
    let door = Guarded::new().await;
    let port = door.scene.address.port();
    for (hosts, status, error) in [
        (vec!["evil.com".to_owned()], 403, "host_refused"),
        (vec![format!("evil.com:{port}")], 403, "host_refused"),
        (vec![format!("127.0.0.1.evil.com:{port}")], 403, "host_refused"),
        (vec![String::new()], 403, "host_refused"),
        (vec![], 400, "invalid_request"),
        (vec![format!("127.0.0.1:{port}"); 2], 400, "invalid_request"),
        (vec![format!("127.0.0.1:{port}"), "evil.com".to_owned()], 400, "invalid_request"),
    ] {
        let lines: String = hosts.iter().map(|host| format!("host: {host}\r\n")).collect();
        let request = format!("GET /read HTTP/1.1\r\n{lines}connection: close\r\n\r\n");
        let (found, body) = door.raw(&request).await;
        assert_eq!((found, &body["error"]), (status, &error.into()), "{hosts:?}");
    }
    assert_eq!(door.reached(), 0);
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")] {
        let request = format!("GET /read HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        assert_eq!(door.raw(&request).await.0, 200, "{host}");
    }
}

#[tokio::test]
async fn only_the_own_page_is_heard_from_a_browser() {
    let door = Guarded::new().await;
    let own = format!("origin: http://{}", door.scene.address);
    assert_eq!(door.raw(&door.scene.head("GET /read", &[&own])).await.0, 200);
    let port = door.scene.address.port();
    for origin in [
        "null".to_owned(),
        "http://localhost.evil".to_owned(),
        format!("https://127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
        String::new(),
    ] {
        let line = format!("origin: {origin}");
        let (status, body) = door.raw(&door.scene.head("GET /read", &[&line])).await;
        assert_eq!((status, &body["error"]), (403, &"origin_refused".into()), "{origin:?}");
    }
    let twice = door.raw(&door.scene.head("GET /read", &[&own, &own])).await;
    assert_eq!(twice.0, 403);
    assert_eq!(door.reached(), 1);
}

#[tokio::test]
async fn a_preflight_is_refused_and_no_answer_ever_names_another_origin() {
    let door = Guarded::new().await;
    let own = format!("origin: http://{}", door.scene.address);
    let asks = ["access-control-request-method: POST", own.as_str()];
    for head in [
        door.scene.head("OPTIONS /write", &asks),
        door.scene
            .head("OPTIONS /write", &["access-control-request-method: POST", "origin: http://evil.com"]),
        door.scene.head("GET /read", &[&own]),
        door.scene.head("GET /read", &["origin: http://evil.com"]),
    ] {
        let answer = door.scene.exchange(&head).await.to_ascii_lowercase();
        assert!(!answer.contains("access-control"), "{answer}");
        assert_eq!(answer.starts_with("http/1.1 403 "), !(head.starts_with("GET") && head.contains(&own)));
    }
}

#[tokio::test]
async fn the_local_door_hears_no_page_at_all_and_ignores_the_host() {
    let router = Router::new().route("/read", get(async || "through"));
    let policy = Policy::new(Hosts::Ignored, Origins::None);
    let scene = Scene::open(guard::protect(router, policy), Bounds::default()).await;
    let own = format!("origin: http://{}", scene.address);
    assert_eq!(parsed(&scene.exchange(&scene.head("GET /read", &[&own])).await).0, 403);
    let hostless = "GET /read HTTP/1.1\r\nhost: anything\r\nconnection: close\r\n\r\n";
    assert_eq!(parsed(&scene.exchange(hostless).await).0, 200);
}

#[tokio::test]
async fn a_credential_in_the_address_is_refused_and_not_repeated() {
    let door = Guarded::new().await;
    for address in ["/read?token=CANARY", "/read?access_token=CANARY", "/read?a=1&%74oken=CANARY"] {
        let answer = door.scene.exchange(&door.scene.head(&format!("GET {address}"), &[])).await;
        assert_eq!(
            (parsed(&answer).0, &parsed(&answer).1["error"]),
            (400, &"token_in_url".into()),
            "{address}"
        );
        assert!(!answer.contains("CANARY"));
    }
    assert_eq!(door.reached(), 0);
}

#[tokio::test]
async fn a_body_is_plain_json_or_refused() {
    let door = Guarded::new().await;
    assert_eq!(door.write(&[JSON], "{}").await.0, 200);
    for (lines, status) in [
        (&["content-type: text/plain"][..], 415),
        (&["content-type: application/x-www-form-urlencoded"], 415),
        (&[], 415),
        (&[JSON, "content-encoding: gzip"], 415),
    ] {
        let (found, body) = door.write(lines, "{}").await;
        assert_eq!((found, &body["error"]), (status, &"unsupported_media_type".into()), "{lines:?}");
    }
    assert_eq!(door.reached(), 1);
}

#[tokio::test]
async fn json_two_readers_could_read_differently_is_an_invalid_request() {
    let door = Guarded::new().await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for body in [
        "",
        "{",
        "{\"a\":1,\"a\":2}",
        deep.as_str(),
        "\"\\ud800\"",
        "1e400",
        "\u{feff}{}",
        "{} {}",
        "{\"a\":\"\0\"}",
    ] {
        let (status, answer) = door.write(&[JSON], body).await;
        assert_eq!((status, &answer["error"]), (400, &"invalid_request".into()), "{:.40}", body);
    }
    assert_eq!(door.reached(), 0);
}

#[tokio::test]
async fn a_body_over_the_bound_is_too_large_whether_announced_or_in_chunks() {
    let door = Guarded::new().await;
    let max = model::limits::REQUEST_BYTES_MAX;
    let fits = format!("\"{}\"", "x".repeat(max - 2));
    assert_eq!(door.write(&[JSON], &fits).await.0, 200);
    let over = format!("\"{}\"", "x".repeat(max - 1));
    let (status, body) = door.write(&[JSON], &over).await;
    assert_eq!((status, &body["error"]), (413, &"too_large".into()), "announced");

    let head = door.scene.head("POST /write", &[JSON, "transfer-encoding: chunked"]);
    let (status, body) = door.raw(&format!("{head}{:x}\r\n{over}\r\n0\r\n\r\n", over.len())).await;
    assert_eq!((status, &body["error"]), (413, &"too_large".into()), "in chunks");

    // Announced to be far over: refused without reading it.
    let length = format!("content-length: {}", 1_u64 << 40);
    let (status, body) = door.raw(&door.scene.head("POST /write", &[JSON, &length])).await;
    assert_eq!((status, &body["error"]), (413, &"too_large".into()), "far over");
    assert_eq!(door.reached(), 1);
}

#[tokio::test]
async fn a_caller_that_first_sends_everything_can_send_it_and_hears_the_refusal() {
    // Buffers too small to hold what the door does not read.
    let small = |socket: TcpSocket| {
        socket.set_recv_buffer_size(4_096).unwrap();
        socket.set_send_buffer_size(4_096).unwrap();
        socket
    };
    let listening = small(TcpSocket::new_v4().unwrap());
    listening.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let router = Router::new().route("/write", post(async |Json(_): Json<Value>| "through"));
    let scene = Scene::guarded_on(listening.listen(8).unwrap(), router, Bounds::default());
    let mut line = Line(small(TcpSocket::new_v4().unwrap()).connect(scene.address).await.unwrap());
    let body = "x".repeat(2 * model::limits::REQUEST_BYTES_MAX);
    let length = format!("content-length: {}", body.len());
    line.say(&(scene.head("POST /write", &[JSON, &length]) + &body)).await;
    assert_eq!(parsed(&line.rest().await).0, 413);
}

#[tokio::test]
async fn a_caller_that_asks_before_sending_too_much_is_refused_before_it_sends() {
    let door = Guarded::new().await;
    let length = format!("content-length: {}", model::limits::REQUEST_BYTES_MAX + 1);
    let answer =
        door.scene.exchange(&door.scene.head("POST /write", &[JSON, &length, "expect: 100-continue"])).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn a_body_that_trickles_is_a_request_timeout() {
    let router = Router::new().route("/write", post(async |Json(_): Json<Value>| "through"));
    let policy =
        Policy { body_timeout: Duration::from_millis(100), ..Policy::new(Hosts::Ignored, Origins::None) };
    let scene = Scene::open(guard::protect(router, policy), Bounds::default()).await;
    let (status, body) =
        parsed(&scene.exchange(&scene.head("POST /write", &[JSON, "content-length: 100"])).await);
    assert_eq!((status, &body["error"]), (408, &"request_timeout".into()));
}

#[tokio::test]
async fn two_lengths_for_one_body_smuggle_no_second_request() {
    let door = Guarded::new().await;
    for lines in [
        [JSON, "content-length: 4", "transfer-encoding: chunked"],
        [JSON, "transfer-encoding: chunked", "content-length: 4"],
    ] {
        // Without `connection: close`: the door itself must end the line.
        let head = door.scene.head("POST /write", &lines).replace("connection: close\r\n", "");
        let smuggled = format!("GET /read HTTP/1.1\r\nhost: {}\r\n\r\n", door.scene.address);
        let answer = door.scene.exchange(&format!("{head}2\r\n{{}}\r\n0\r\n\r\n{smuggled}")).await;
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "one answer, then the end: {answer}");
    }
    let head = door.scene.head("POST /write", &[JSON, "content-length: 2", "content-length: 3"]);
    assert_eq!(door.raw(&format!("{head}{{}} ")).await.0, 400, "two different lengths");
}

#[tokio::test]
async fn a_panic_is_one_refused_request() {
    let door = Guarded::new().await;
    let mut line = door.scene.line().await;
    let head = door.scene.head("GET /panic", &[]).replace("connection: close\r\n", "");
    line.say(&head).await;
    let answer = line.until("}").await;
    assert_eq!((parsed(&answer).0, &parsed(&answer).1["error"]), (500, &"internal".into()));
    line.say(&door.scene.head("GET /read", &[])).await;
    assert!(line.rest().await.ends_with("through"), "the same connection goes on");
}

#[tokio::test]
async fn what_is_not_there_is_refused_in_json() {
    let door = Guarded::new().await;
    let (status, body) = door.raw(&door.scene.head("GET /nowhere", &[])).await;
    assert_eq!((status, &body["error"]), (404, &"not_found".into()));
    let answer = door.scene.exchange(&door.scene.head("DELETE /read", &[])).await;
    assert_eq!((parsed(&answer).0, &parsed(&answer).1["error"]), (405, &"method_not_allowed".into()));
    assert!(answer.to_ascii_lowercase().contains("allow: get,head"), "{answer}");
}

#[tokio::test]
async fn more_requests_than_the_door_takes_are_told_it_is_busy() {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes) = (begun.clone(), go.clone());
    let router = Router::new().route(
        "/",
        get(async move || {
            begins.notify_one();
            goes.notified().await;
        }),
    );
    let scene = Scene::open(guard::with_in_flight_max(router, 1), Bounds::default()).await;
    let mut first = scene.line().await;
    first.say(&scene.head("GET /", &[])).await;
    begun.notified().await;
    let answer = scene.exchange(&scene.head("GET /", &[])).await;
    assert_eq!((parsed(&answer).0, &parsed(&answer).1["error"]), (429, &"daemon_busy".into()));
    assert!(answer.contains("retry-after: 1"), "{answer}");
    go.notify_one();
    assert!(first.rest().await.starts_with("HTTP/1.1 200 "));
    go.notify_one();
    assert!(
        scene.exchange(&scene.head("GET /", &[])).await.starts_with("HTTP/1.1 200 "),
        "there is room again"
    );
}

#[tokio::test]
async fn only_the_whole_token_opens_the_door() {
    let token = Secret::from("k3y".repeat(14));
    let kept = token.token_hash();
    let router =
        Router::new().route("/", get(async move |headers: http::HeaderMap| answer_to(&headers, kept)));
    let scene = Scene::open(router, Bounds::default()).await;
    let right = token.reveal();
    for (line, status) in [
        (format!("authorization: Bearer {right}"), 200),
        (format!("authorization: Bearer {}x", &right[..right.len() - 1]), 401),
        (format!("authorization: Bearer {}", &right[1..]), 401),
        (format!("authorization: Basic {right}"), 401),
        (format!("authorization: Bearer {}", "x".repeat(60_000)), 401),
        (String::from("x-nothing: 1"), 401),
    ] {
        assert_eq!(parsed(&scene.exchange(&scene.head("GET /", &[&line])).await).0, status, "{line:.60}");
    }
}

fn answer_to(headers: &http::HeaderMap, kept: TokenHash) -> axum::response::Response {
    use axum::response::IntoResponse;
    match guard::bearer(headers) {
        Some(token) if kept.matches(token.reveal()) => respond::json(StatusCode::OK, &"in"),
        Some(_) | None => respond::Refusal::plain(model::ErrorCode::Unauthorized).into_response(),
    }
}
