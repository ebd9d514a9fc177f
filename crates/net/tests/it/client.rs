//! The client and the server, talking to each other.

use axum::Router;
use axum::routing::{get, post};
use model::ErrorCode;
use net::client::{Ask, Client, ClientError, Target};
use net::respond::{Json, Refusal};
use net::serve::{Bounds, Connection};
use net::socket::{self, Close, Ended, Upgrade};
use net::{Secret, local};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::scene::{Line, Scene};

fn router() -> Router {
    Router::new()
        .route("/echo", post(async |Json(body): Json<Value>| net::respond::json(http::StatusCode::OK, &body)))
        .route("/never", get(std::future::pending::<()>))
        .route(
            "/busy",
            get(async || Refusal::plain(ErrorCode::RateLimited).retry_after(Duration::from_millis(1_500))),
        )
        .route("/socket", get(upgraded))
}

async fn upgraded(upgrade: Upgrade) -> Result<axum::response::Response, Refusal> {
    if upgrade.ticket()?.reveal() != "RIGHT" {
        return Err(Refusal::plain(ErrorCode::TicketAlreadyUsed));
    }
    Ok(upgrade.accept(async |socket| {
        let (mut reader, writer) = socket.split();
        while let Ok(text) = reader.next().await {
            match text.as_str() {
                "close" => writer.close(Close::new(4003, "replaced")),
                _ => writer.send(format!("<{text}>")).await.unwrap(),
            }
        }
    }))
}

#[tokio::test]
async fn a_request_and_its_answer_are_json() {
    let scene = Scene::guarded(router(), Bounds::default()).await;
    let answer: Value = scene.client().post("/echo", &json!({"a": [1, "é"]})).await.unwrap();
    assert_eq!(answer, json!({"a": [1, "é"]}));
}

#[tokio::test]
async fn a_refusal_comes_back_as_the_door_said_it() {
    let scene = Scene::guarded(router(), Bounds::default()).await;
    let error = scene.client().get::<Value>("/busy").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::RateLimited));
    let ClientError::Refused { status, body, retry_after } = error else { panic!("{error}") };
    assert_eq!((status, retry_after), (429, Some(Duration::from_secs(2))));
    assert_eq!(body.more["retry_after_ms"], 1_500);
    let error = scene.client().get::<Value>("/nowhere").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    let error = scene.client().delete::<Value>("/echo").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::MethodNotAllowed));
}

#[tokio::test]
async fn a_door_that_is_not_there_is_not_running_and_one_that_is_silent_times_out() {
    let gone = Scene::guarded(router(), Bounds::default()).await;
    let client = gone.client();
    gone.stopped().await;
    assert!(matches!(client.get::<Value>("/echo").await, Err(ClientError::NotRunning { .. })));
    let nowhere = Client::new(Target::Unix("/nonexistent/sock".into()));
    assert!(matches!(nowhere.get::<Value>("/echo").await, Err(ClientError::NotRunning { .. })));

    let scene = Scene::guarded(router(), Bounds { drain_timeout: Duration::ZERO, ..Bounds::default() }).await;
    let ask = Ask::new(http::Method::GET, "/never").timeout(Duration::from_millis(50));
    assert!(matches!(scene.client().ask(ask).await, Err(ClientError::Timeout)));
}

#[tokio::test]
async fn a_unix_door_serves_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let lock = local::lock_exclusive(&folder.path().join("lock")).unwrap();
    let path = folder.path().join("d/sock");
    let door = net::serve::Door::unix(local::bind_unix(&path, &lock).unwrap());
    let stop = CancellationToken::new();
    let router = router().route("/who", get(async |from: Connection| format!("{:?}", from.caller())));
    let served = tokio::spawn(net::serve::serve(door, router, stop.clone()));
    let client = Client::new(Target::Unix(path));
    let who = client.ask(Ask::new(http::Method::GET, "/who")).await.unwrap();
    let who = String::from_utf8(who.body.to_vec()).unwrap();
    assert_eq!(who, format!("Unix {{ pid: Some({}) }}", std::process::id()));
    drop(client);
    stop.cancel();
    assert_eq!(served.await.unwrap().cut, 0);
}

#[tokio::test]
async fn an_upgrade_needs_its_ticket_and_a_refusal_comes_before_101() {
    let scene = Scene::guarded(router(), Bounds::default()).await;
    let wrong =
        scene.client().upgrade("/socket", &Secret::from("WRONG".to_owned()), socket::Bounds::default()).await;
    assert_eq!(wrong.err().unwrap().code(), Some(ErrorCode::TicketAlreadyUsed));
    let elsewhere =
        scene.client().upgrade("/echo", &Secret::from("RIGHT".to_owned()), socket::Bounds::default()).await;
    assert_eq!(elsewhere.err().unwrap().code(), Some(ErrorCode::MethodNotAllowed));
}

/// A server that answers whatever it is asked with `answer`, once.
async fn answering(answer: &'static str) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(Target::of_url(&format!("http://{}", listener.local_addr().unwrap())).unwrap());
    tokio::spawn(async move {
        let mut line = Line(listener.accept().await.unwrap().0);
        line.until("\r\n\r\n").await;
        line.say(answer).await;
    });
    client
}

#[tokio::test]
async fn an_upgrade_that_does_not_prove_it_read_the_key_is_none() {
    let client = answering(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nsec-websocket-protocol: postrider.v1\r\n\r\n",
    )
    .await;
    let opened =
        client.upgrade("/socket", &Secret::from("RIGHT".to_owned()), socket::Bounds::default()).await;
    assert!(matches!(opened.err(), Some(ClientError::NoUpgrade)));
}

#[tokio::test]
async fn an_answer_of_something_in_between_still_has_a_code() {
    let client = answering("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>").await;
    let error = client.get::<Value>("/").await.unwrap_err();
    assert_eq!((error.code(), error.class()), (Some(ErrorCode::Internal), model::Class::Transient));
}

#[tokio::test]
async fn an_answer_over_its_bound_or_cut_short_is_no_answer() {
    let client = answering("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n\"1234567\"").await;
    let over = client.with_answer_bytes_max(8).get::<Value>("/").await;
    assert!(matches!(over, Err(ClientError::Unreadable(_))), "{over:?}");
    let client = answering("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n\"1234").await;
    let cut = client.get::<Value>("/").await;
    assert!(matches!(cut, Err(ClientError::Broken(_))), "{cut:?}");
}

#[tokio::test]
async fn frames_go_both_ways_and_a_close_carries_its_code() {
    let scene = Scene::guarded(router(), Bounds::default()).await;
    let ticket = Secret::from("RIGHT".to_owned());
    let socket = scene.client().upgrade("/socket", &ticket, socket::Bounds::default()).await.unwrap();
    let (mut reader, writer) = socket.split();
    for text in ["a", "é", ""] {
        writer.send(text).await.unwrap();
        assert_eq!(reader.next().await.unwrap().as_str(), format!("<{text}>"));
    }
    writer.send("close").await.unwrap();
    let ended = reader.next().await.unwrap_err();
    assert!(
        matches!(&ended, Ended::Closed(close) if close.code == 4003 && close.reason == "replaced"),
        "{ended}"
    );
    assert_eq!(scene.stopped().await.cut, 0);
}
