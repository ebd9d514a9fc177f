//! Live traffic passes as it is.

use http::Method;
use net::Secret;
use relay::AuthMode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::stage::Stage;

#[tokio::test]
async fn headers_of_one_hop_stay_there_and_the_others_pass() {
    let stage = Stage::open().await;
    let headers = [("connection", "x-private"), ("x-private", "1"), ("te", "trailers"), ("x-kept", "1")];
    let told = stage.call(Method::GET, "/tasks/1?x=1", &headers, "").await;
    assert_eq!((told.status, told.header("statehub-relay")), (404, "forwarded"));
    let books = stage.upstream.books.lock().unwrap();
    let seen = books.seen.last().unwrap();
    assert_eq!((seen.header("x-private"), seen.header("te"), seen.header("x-kept")), (None, None, Some("1")));
    assert_eq!(seen.header("host"), Some(stage.upstream.address.to_string().as_str()));
}

#[tokio::test]
async fn an_upgrade_passes_and_bytes_go_both_ways() {
    let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = upstream.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = upstream.accept().await.unwrap();
        let mut head = vec![0; 4_096];
        let mut length = 0;
        while !head[..length].ends_with(b"\r\n\r\n") {
            length += stream.read(&mut head[length..]).await.unwrap();
        }
        let text = String::from_utf8_lossy(&head[..length]).to_ascii_lowercase();
        assert!(text.contains("upgrade: websocket"), "{text}");
        let switched =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
        stream.write_all(switched.as_bytes()).await.unwrap();
        let mut echoed = [0; 5];
        stream.read_exact(&mut echoed).await.unwrap();
        stream.write_all(&echoed).await.unwrap();
    });
    let stage = Stage::with(|config| {
        config.upstream = net::client::Target::of_url(&format!("http://{address}")).unwrap();
    })
    .await;
    let mut caller = TcpStream::connect(stage.address()).await.unwrap();
    let ask = "GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    caller.write_all(ask.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(caller.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    caller.write_all(b"hello").await.unwrap();
    let mut echoed = [0; 5];
    caller.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, b"hello");
}

#[tokio::test]
async fn the_relay_lends_its_credential_only_to_callers_that_show_the_local_one() {
    let stage = Stage::with(|config| {
        config.auth_mode = AuthMode::Relay;
        config.upstream_token = Some(Secret::from("upstream-credential".to_owned()));
        config.local_token = Some(Secret::from("local-credential".to_owned()));
    })
    .await;
    assert_eq!(stage.post("/progress/", "a", "{}").await.status, 401);
    let shown = [
        ("statehub-relay-token", "local-credential"),
        ("authorization", "Bearer callers-own"),
        ("idempotency-key", "b"),
    ];
    assert_eq!(stage.call(Method::POST, "/progress/", &shown, "{}").await.status, 201);
    {
        let books = stage.upstream.books.lock().unwrap();
        let seen = books.seen.last().unwrap();
        assert_eq!(seen.header("authorization"), Some("Bearer upstream-credential"));
        assert_eq!(seen.header("statehub-relay-token"), None);
    }
    stage.upstream.leave().await;
    let shown = [shown[0], shown[1], ("idempotency-key", "c")];
    assert_eq!(stage.call(Method::POST, "/progress/", &shown, "{}").await.status, 202);
    stage.upstream.come_back().await;
    stage.drained().await;
    let books = stage.upstream.books.lock().unwrap();
    let replayed = books.seen.iter().rfind(|copy| copy.header("idempotency-key") == Some("c")).unwrap();
    assert_eq!(replayed.header("authorization"), Some("Bearer upstream-credential"));
}
