//! Requests handed on: which connection they leave on, and what becomes of it.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use http::{Method, Request};
use http_body_util::BodyExt;
use model::limits;
use net::client::{ClientError, Pass, Target};
use net::serve::{Bounds, Caller, Connection};
use tokio::net::TcpListener;

use crate::scene::{Line, Scene};

/// More than comes with a head.
const LONG: usize = 3 * 1024 * 1024;

async fn port(connection: Connection) -> String {
    match connection.caller() {
        Caller::Tcp { remote, .. } => remote.port().to_string(),
        Caller::Unix { .. } => String::new(),
    }
}

fn router() -> Router {
    Router::new()
        .route("/port", get(port))
        .route("/long", get(async || "x".repeat(LONG)))
        .route("/count", post(async |body: String| body.len().to_string()))
        .layer(axum::extract::DefaultBodyLimit::disable())
}

fn to(address: std::net::SocketAddr) -> Pass {
    Pass::to(Target::of_url(&format!("http://{address}")).unwrap(), None)
}

async fn asked(pass: &Pass, method: Method, path: &str, body: impl Into<Body>) -> String {
    let request = Request::builder().method(method).uri(path).body(body.into()).unwrap();
    let answer = pass.send(request, limits::ANSWER_TIMEOUT).await.unwrap();
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn one_connection_serves_one_request_after_another() {
    let scene = Scene::open(router(), Bounds::default()).await;
    let pass = to(scene.address);
    let first = asked(&pass, Method::GET, "/port", "").await;
    for _ in 0..3 {
        assert_eq!(asked(&pass, Method::GET, "/port", "").await, first);
    }
    let (one, other) =
        tokio::join!(asked(&pass, Method::GET, "/port", ""), asked(&pass, Method::GET, "/port", ""));
    assert_ne!(one, other, "two at once need two");
}

#[tokio::test]
async fn bodies_of_any_length_pass_and_their_connections_come_back() {
    let scene = Scene::open(router(), Bounds::default()).await;
    let pass = to(scene.address);
    let first = asked(&pass, Method::GET, "/port", "").await;
    assert_eq!(asked(&pass, Method::GET, "/long", "").await.len(), LONG);
    assert_eq!(asked(&pass, Method::POST, "/count", "y".repeat(LONG)).await, LONG.to_string());
    // Each may have found the one before it still being read to its end: then a second one was opened.
    let mut ports = std::collections::BTreeSet::from([first]);
    for _ in 0..4 {
        ports.insert(asked(&pass, Method::GET, "/port", "").await);
    }
    assert!(ports.len() <= 3, "{ports:?}");
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_costs_the_next_request_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pass = to(listener.local_addr().unwrap());
    let served = async {
        for _ in 0..2 {
            let mut line = Line(listener.accept().await.unwrap().0);
            line.until("\r\n\r\n").await;
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        }
    };
    let asking = async {
        assert_eq!(asked(&pass, Method::GET, "/", "").await, "ok");
        // A round trip elsewhere: whatever the system knew before it is known here after it.
        let scene = Scene::open(router(), Bounds::default()).await;
        asked(&to(scene.address), Method::GET, "/port", "").await;
        assert_eq!(asked(&pass, Method::GET, "/", "").await, "ok");
    };
    tokio::join!(served, asking);
}

#[tokio::test]
async fn nobody_there_is_told_apart_from_an_answer_that_did_not_come() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pass = to(listener.local_addr().unwrap());
    let request = || Request::builder().uri("/").body(Body::empty()).unwrap();
    let cut = async { drop(Line(listener.accept().await.unwrap().0)) };
    let (lost, ()) = tokio::join!(pass.send(request(), limits::ANSWER_TIMEOUT), cut);
    assert!(matches!(lost, Err(ClientError::Broken(_))), "{lost:?}");
    drop(listener);
    let nobody = pass.send(request(), limits::ANSWER_TIMEOUT).await;
    assert!(matches!(nobody, Err(ClientError::NotRunning { .. })), "{nobody:?}");
}

#[tokio::test]
async fn an_answer_that_does_not_begin_in_time_is_waited_for_no_longer_on_a_new_connection_or_a_kept_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pass = to(listener.local_addr().unwrap());
    let request = || Request::builder().uri("/").body(Body::empty()).unwrap();
    let silent = async {
        let mut kept = Line(listener.accept().await.unwrap().0);
        kept.until("\r\n\r\n").await;
        kept.say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        // Two requests are heard and not answered, on this connection and on another.
        kept.until("\r\n\r\n").await;
        let mut new = Line(listener.accept().await.unwrap().0);
        new.until("\r\n\r\n").await;
        (kept, new)
    };
    let asking = async {
        assert_eq!(asked(&pass, Method::GET, "/", "").await, "ok");
        for _ in 0..2 {
            let late = pass.send(request(), Duration::from_millis(50)).await;
            assert!(matches!(late, Err(ClientError::Timeout)), "{late:?}");
        }
    };
    let (_open, ()) = tokio::join!(silent, asking);
}
