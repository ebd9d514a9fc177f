//! The accept loop: timeouts that fire, bounds that hold, a drain that ends.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use model::limits;
use net::serve::{Bounds, Connection, Door, Ended, serve};
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::scene::{Line, Scene, parsed};

/// Shortened, so that a test need not wait for the real ones; far enough apart to be told apart on a busy machine.
const SHORT: Bounds = Bounds {
    header_timeout: Duration::from_millis(300),
    idle_timeout: Duration::from_secs(2),
    stall_timeout: Duration::from_millis(300),
    drain_timeout: Duration::from_millis(300),
    connections_max: 4,
    unauthenticated_per_address_max: 2,
};
/// Nothing in a test takes this long unless it hangs.
const LONG: Duration = Duration::from_secs(60);

fn bounds() -> Bounds {
    Bounds { drain_timeout: LONG, ..Bounds::default() }
}

fn hello() -> Router {
    Router::new().route("/", get(async || "hello")).route(
        "/proven",
        get(async |from: Connection| {
            from.authenticated();
            "hello"
        }),
    )
}

/// How long until the door closes the line.
async fn closed_after(line: &mut Line) -> Duration {
    let start = Instant::now();
    let rest = line.rest().await;
    assert_eq!(rest, "", "closed without a word");
    start.elapsed()
}

#[tokio::test]
async fn a_head_that_does_not_come_is_closed_at_the_header_timeout() {
    let scene = Scene::open(hello(), SHORT).await;
    let mut mute = scene.line().await;
    let elapsed = closed_after(&mut mute).await;
    assert!(elapsed >= SHORT.header_timeout && elapsed < SHORT.idle_timeout, "{elapsed:?}");
}

#[tokio::test]
async fn a_head_that_trickles_is_closed_at_the_header_timeout() {
    let scene = Scene::open(hello(), SHORT).await;
    let mut line = scene.line().await;
    let start = Instant::now();
    let mut pause = tokio::time::interval(Duration::from_millis(20));
    line.say("GET / HTTP/1.1\r\nhost: x\r\n").await;
    let ended = loop {
        tokio::select! {
            _ = pause.tick() => {
                // The write fails once the door has closed, which the read shows too.
                let _ = tokio::io::AsyncWriteExt::write_all(&mut line.0, b"a: b\r\n").await;
            }
            ready = line.0.readable() => {
                ready.unwrap();
                break start.elapsed();
            }
        }
    };
    assert!(ended >= SHORT.header_timeout && ended < SHORT.idle_timeout, "{ended:?}");
}

#[tokio::test]
async fn a_kept_connection_may_be_idle_longer_than_a_head_may_take_and_is_then_closed() {
    let scene = Scene::open(hello(), SHORT).await;
    let mut line = scene.line().await;
    line.say("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    line.until("hello").await;
    let elapsed = closed_after(&mut line).await;
    assert!(elapsed >= SHORT.idle_timeout, "{elapsed:?}");
}

#[tokio::test]
async fn a_second_head_that_was_begun_has_the_header_timeout_again() {
    let scene = Scene::open(hello(), SHORT).await;
    let mut line = scene.line().await;
    line.say("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    line.until("hello").await;
    line.say("GET / HT").await;
    let elapsed = closed_after(&mut line).await;
    assert!(elapsed >= SHORT.header_timeout && elapsed < SHORT.idle_timeout, "{elapsed:?}");
}

#[tokio::test]
async fn a_kept_connection_answers_again_after_a_pause_longer_than_the_header_timeout() {
    let scene = Scene::open(hello(), SHORT).await;
    let mut line = scene.line().await;
    line.say("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    line.until("hello").await;
    // Nothing may arrive in the meantime: the door keeps the line.
    let quiet = tokio::time::timeout(SHORT.header_timeout * 3 / 2, line.0.read_u8()).await;
    assert!(quiet.is_err(), "the line was kept");
    line.say("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    line.until("hello").await;
}

#[tokio::test]
async fn an_answer_nobody_reads_is_given_up() {
    let ended = Arc::new(Notify::new());
    let told = ended.clone();
    let router = Router::new().route(
        "/",
        get(async move || {
            struct Tell(Arc<Notify>);
            impl Drop for Tell {
                fn drop(&mut self) {
                    self.0.notify_one();
                }
            }
            let tell = Tell(told.clone());
            let chunk = bytes::Bytes::from(vec![b'x'; 1 << 20]);
            let endless = futures_util::stream::repeat_with(move || {
                let _ = &tell;
                Ok::<_, std::io::Error>(chunk.clone())
            });
            axum::body::Body::from_stream(endless)
        }),
    );
    let scene = Scene::open(router, SHORT).await;
    let mut line = scene.line().await;
    line.say("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    tokio::time::timeout(LONG, ended.notified()).await.expect("the answer was dropped");
}

#[tokio::test]
async fn strangers_over_the_bound_are_closed_and_the_proven_make_room() {
    let scene = Scene::open(hello(), Bounds { header_timeout: LONG, ..SHORT }).await;
    let (mut first, _second) = (scene.line().await, scene.line().await);
    closed_after(&mut scene.line().await).await;
    first.say("GET /proven HTTP/1.1\r\nhost: x\r\n\r\n").await;
    first.until("hello").await;
    let (status, _) = parsed(&scene.exchange(&scene.head("GET /", &[])).await);
    assert_eq!(status, 200, "a proven connection makes room for another");
}

#[tokio::test]
async fn a_door_has_no_more_connections_than_its_bound() {
    let scene = Scene::open(hello(), Bounds { header_timeout: LONG, idle_timeout: LONG, ..SHORT }).await;
    let mut kept = Vec::new();
    for _ in 0..SHORT.connections_max {
        let mut line = scene.line().await;
        line.say("GET /proven HTTP/1.1\r\nhost: x\r\n\r\n").await;
        line.until("hello").await;
        kept.push(line);
    }
    closed_after(&mut scene.line().await).await;
}

#[tokio::test]
async fn a_caller_of_another_account_is_closed_without_a_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sock");
    let another = rustix::process::geteuid().as_raw() + 1;
    let door = Door::unix_for(UnixListener::bind(&path).unwrap(), another);
    let stop = CancellationToken::new();
    let served = tokio::spawn(serve(door, hello(), stop.clone()));
    let mut line = UnixStream::connect(&path).await.unwrap();
    let _ = tokio::io::AsyncWriteExt::write_all(&mut line, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let mut answer = Vec::new();
    let _ = line.read_to_end(&mut answer).await;
    assert_eq!(answer, b"");
    stop.cancel();
    assert_eq!(served.await.unwrap(), Ended { cut: 0 });
}

#[tokio::test]
async fn stop_lets_the_answer_in_flight_end_and_closes_idle_lines() {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes) = (begun.clone(), go.clone());
    let router = hello().route(
        "/slow",
        get(async move || {
            begins.notify_one();
            goes.notified().await;
            "done"
        }),
    );
    let scene = Scene::open(router, bounds()).await;
    let (mut mute, mut idle, mut busy) = (scene.line().await, scene.line().await, scene.line().await);
    idle.say("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    idle.until("hello").await;
    busy.say("GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await;
    begun.notified().await;
    let address = scene.address;
    let stopping = tokio::spawn(scene.stopped());
    closed_after(&mut idle).await;
    closed_after(&mut mute).await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody new is let in");
    assert!(!stopping.is_finished(), "the answer in flight is awaited");
    go.notify_one();
    assert!(busy.rest().await.ends_with("done"));
    assert_eq!(stopping.await.unwrap(), Ended { cut: 0 });
}

#[tokio::test]
async fn what_does_not_end_within_the_drain_timeout_is_cut() {
    let begun = Arc::new(Notify::new());
    let begins = begun.clone();
    let router = Router::new().route(
        "/",
        get(async move || {
            begins.notify_one();
            std::future::pending::<()>().await
        }),
    );
    let scene = Scene::open(router, SHORT).await;
    let mut line = scene.line().await;
    line.say("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    begun.notified().await;
    assert_eq!(scene.stopped().await, Ended { cut: 1 });
    assert_eq!(line.rest().await, "");
}

#[tokio::test]
async fn a_caller_that_resets_before_reading_harms_nobody() {
    let scene = Scene::open(hello(), bounds()).await;
    for _ in 0..20 {
        let mut line = scene.line().await;
        line.say("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        line.reset();
    }
    let (status, _) = parsed(&scene.exchange(&scene.head("GET /", &[])).await);
    assert_eq!(status, 200);
    assert_eq!(scene.stopped().await, Ended { cut: 0 });
}

#[tokio::test]
async fn heads_over_their_bound_are_refused_by_name_and_the_line_is_closed() {
    let scene = Scene::open(hello(), bounds()).await;
    let over = format!("authorization: Bearer {}", "x".repeat(limits::HEADER_BYTES_MAX));
    let mut line = scene.line().await;
    line.say(&scene.head("GET /", &[&over])).await;
    let answer = line.rest().await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert!(answer.contains(r#""error":"head_too_large""#), "{answer}");
    let under = format!("authorization: Bearer {}", "x".repeat(limits::HEADER_BYTES_MAX - 1024));
    let (status, _) = parsed(&scene.exchange(&scene.head("GET /", &[&under])).await);
    assert_eq!(status, 200);
    let large = format!("authorization: Bearer {}", "x".repeat(limits::HEADER_BYTES_READ_MAX * 2));
    let mut line = scene.line().await;
    let head = scene.head("GET /", &[&large]);
    // The door stops reading somewhere inside.
    let _ = tokio::io::AsyncWriteExt::write_all(&mut line.0, head.as_bytes()).await;
    let answer = line.rest().await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}
