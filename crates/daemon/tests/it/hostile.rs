//! Hostile inputs at the local door, on both listeners: each has its answer, and none leaves a row.

use std::net::SocketAddr;

use model::limits;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::broker::SOON;
use crate::home::Home;

const MESSAGE: &str = r#"{"to":"@ci","body":"x"}"#;

/// Which listener.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Socket,
    Tcp,
}

/// What a door says to bytes, wherever they come from.
struct Door {
    home: Home,
    address: SocketAddr,
    bearer: String,
}

impl Door {
    async fn open() -> Self {
        let (_broker, home) = Home::linked().await;
        let address = home.daemon().http().unwrap();
        let token = home.files().read_token().unwrap();
        let bearer = format!("authorization: Bearer {}\r\n", token.reveal());
        Self { home, address, bearer }
    }

    /// A send with these header lines instead of the usual ones; the usual host when none is among them.
    fn post(&self, by: By, lines: &str, body: &str) -> String {
        let host = if lines.to_ascii_lowercase().contains("host:") {
            String::new()
        } else {
            format!("host: {}\r\n", self.address)
        };
        let kind = if lines.contains("content-type") { "" } else { "content-type: application/json\r\n" };
        let length = if lines.contains("transfer-encoding: chunked\r\ncontent-length") {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        let bearer = if by == By::Tcp { self.bearer.as_str() } else { "" };
        format!(
            "POST /v1/send HTTP/1.1\r\n{host}{bearer}{kind}{length}{lines}connection: close\r\n\r\n{body}"
        )
    }

    async fn say(&self, by: By, request: &str) -> String {
        match by {
            By::Socket => {
                exchange(UnixStream::connect(self.home.daemon().socket()).await.unwrap(), request).await
            }
            By::Tcp => exchange(TcpStream::connect(self.address).await.unwrap(), request).await,
        }
    }

    async fn rows(&self) -> usize {
        self.home.unix().get("/v1/outbox").await.body["items"].as_array().unwrap().len()
    }
}

/// Everything the other side says until it closes, or cuts the line.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> String {
    // A door that refuses early may stop reading; what it said is still to be read.
    let _cut = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _cut = tokio::time::timeout(SOON, stream.read_to_end(&mut answer)).await.expect("the door closes");
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or(answer)
}

fn error(answer: &str) -> Value {
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str::<Value>(body).map_or(Value::Null, |body| body["error"].clone())
}

#[tokio::test]
async fn a_host_that_is_foreign_missing_or_told_twice_is_refused_on_tcp_and_ignored_on_the_socket() {
    let door = Door::open().await;
    let own = format!("host: {}\r\n", door.address);
    for (host, refused) in [
        ("host: evil.com\r\n".to_owned(), ["403", "400"]),
        ("host: 127.0.0.1.evil.com\r\n".to_owned(), ["403", "400"]),
        ("host:\r\n".to_owned(), ["403", "400"]),
        (format!("{own}{own}"), ["403", "400"]),
        (format!("{own}host: evil.com\r\n"), ["403", "400"]),
    ] {
        let answer = door.say(By::Tcp, &door.post(By::Tcp, &host, MESSAGE)).await;
        assert!(refused.contains(&status(&answer)), "{host:?}: {answer}");
    }
    let absent = door.post(By::Tcp, "", MESSAGE).replace(&own, "");
    let answer = door.say(By::Tcp, &absent).await;
    assert!(["400", "403"].contains(&status(&answer)), "no host: {answer}");
    assert_eq!(door.rows().await, 0, "nothing of it was stored");
    let answer = door.say(By::Socket, &door.post(By::Socket, "host: evil.com\r\n", MESSAGE)).await;
    assert_eq!(status(&answer), "202", "the socket's own rights say who calls: {answer}");
}

#[tokio::test]
async fn pages_forms_and_compressed_bodies_are_refused_on_both_listeners() {
    let door = Door::open().await;
    for by in [By::Socket, By::Tcp] {
        for (lines, expected) in [
            ("origin: null\r\n".to_owned(), "403"),
            ("origin: http://localhost.evil\r\n".to_owned(), "403"),
            (format!("origin: http://{}\r\n", door.address), "403"),
            ("content-type: text/plain\r\n".to_owned(), "415"),
            ("content-type: application/x-www-form-urlencoded\r\n".to_owned(), "415"),
            ("content-encoding: gzip\r\n".to_owned(), "415"),
        ] {
            let answer = door.say(by, &door.post(by, &lines, MESSAGE)).await;
            assert_eq!(status(&answer), expected, "{by:?} {lines:?}: {answer}");
            assert!(!answer.to_ascii_lowercase().contains("access-control"), "{answer}");
        }
    }
    assert_eq!(door.rows().await, 0);
}

#[tokio::test]
async fn a_credential_in_the_address_is_refused_and_not_repeated_on_both_listeners() {
    let door = Door::open().await;
    for by in [By::Socket, By::Tcp] {
        for name in ["token", "access_token"] {
            let request =
                door.post(by, "", MESSAGE).replace("/v1/send", &format!("/v1/send?{name}=s3cr3t-value"));
            let answer = door.say(by, &request).await;
            assert_eq!(status(&answer), "400", "{by:?} {name}: {answer}");
            assert!(!answer.contains("s3cr3t-value"), "{answer}");
        }
    }
    assert_eq!(door.rows().await, 0);
}

#[tokio::test]
async fn json_that_is_ambiguous_bottomless_or_no_text_is_refused_on_both_listeners() {
    let door = Door::open().await;
    let deep =
        format!(r#"{{"to":"@ci","body":"x","meta":{}1{}}}"#, r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    for by in [By::Socket, By::Tcp] {
        for body in [
            r#"{"to":"@ci","body":"x","body":"y"}"#,
            r#"{"to":"@ci","body":"x","meta":{"a":1,"a":2}}"#,
            r#"{"to":"@ci","body":"\ud800"}"#,
            r#"{"to":"@ci","body":"x","meta":{"a":1e400}}"#,
            "\u{feff}{\"to\":\"@ci\",\"body\":\"x\"}",
            r#"{"to":"@ci","body":"a\u0000b"}"#,
            r#"{"to":"@ci","body":"x","unknown":1}"#,
            &deep,
        ] {
            let answer = door.say(by, &door.post(by, "", body)).await;
            assert_eq!(status(&answer), "400", "{by:?} {}: {answer}", &body[..body.len().min(60)]);
            assert_eq!(error(&answer), "invalid_request", "{answer}");
        }
    }
    assert_eq!(door.rows().await, 0);
}

#[tokio::test]
async fn two_lengths_for_one_body_store_no_second_request_on_both_listeners() {
    let door = Door::open().await;
    for by in [By::Socket, By::Tcp] {
        let smuggled = format!("0\r\n\r\n{}", door.post(by, "", MESSAGE));
        let lines = format!("transfer-encoding: chunked\r\ncontent-length: {}\r\n", smuggled.len());
        let request = door.post(by, &lines, &smuggled).replace("connection: close\r\n\r\n0", "\r\n0");
        let answer = door.say(by, &request).await;
        assert_ne!(status(&answer), "202", "{by:?}: {answer}");
        assert!(!answer[9..].contains("HTTP/1.1 202"), "{by:?}: {answer}");
    }
    assert_eq!(door.rows().await, 0, "the second message was never asked for");
}

#[tokio::test]
async fn a_bearer_that_is_almost_right_or_a_megabyte_long_is_no_bearer() {
    let door = Door::open().await;
    let token = door.home.files().read_token().unwrap();
    let almost = format!("{}x", &token.reveal()[..token.reveal().len() - 1]);
    for (bearer, expected) in [(almost, ["401", "401"]), ("a".repeat(1 << 20), ["431", "401"])] {
        for by in [By::Socket, By::Tcp] {
            let lines = format!("authorization: Bearer {bearer}\r\n");
            let request = door.post(By::Socket, &lines, MESSAGE);
            let answer = door.say(by, &request).await;
            // A head over its bound may be cut off instead of answered.
            assert!(answer.is_empty() || expected.contains(&status(&answer)), "{by:?}: {answer}");
        }
    }
    assert_eq!(door.rows().await, 0);
}

#[tokio::test]
async fn a_caller_that_resets_before_reading_or_sends_half_a_body_leaves_no_row() {
    let door = Door::open().await;
    let whole = door.post(By::Tcp, "", MESSAGE);
    for request in [&whole.replace(&door.bearer, ""), &whole[..whole.len() - 4]] {
        let mut stream = TcpStream::connect(door.address).await.unwrap();
        stream.set_zero_linger().unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        drop(stream);
        let mut stream = UnixStream::connect(door.home.daemon().socket()).await.unwrap();
        stream.write_all(&whole.as_bytes()[..whole.len() - 4]).await.unwrap();
        drop(stream);
    }
    // The door has read what came before this, or never will.
    let answer = door.say(By::Tcp, &door.post(By::Tcp, "", MESSAGE)).await;
    assert_eq!(status(&answer), "202", "{answer}");
    assert_eq!(door.rows().await, 1);
}

#[tokio::test]
async fn an_idempotency_key_is_one_line_of_its_own_alphabet_and_belongs_to_its_sender() {
    let door = Door::open().await;
    let long = "k".repeat(10 * 1024);
    for by in [By::Socket, By::Tcp] {
        for key in ["", "a b", "ключ", "a\u{1}b", long.as_str()] {
            let answer = door.say(by, &door.post(by, &format!("idempotency-key: {key}\r\n"), MESSAGE)).await;
            assert_eq!(status(&answer), "400", "{by:?} {:?}: {answer}", key.get(..8));
        }
        let two = "idempotency-key: one\r\nidempotency-key: two\r\n";
        assert_eq!(status(&door.say(by, &door.post(by, two, MESSAGE)).await), "400");
    }
    assert_eq!(door.rows().await, 0);
    let unix = door.home.unix();
    let agent = unix.post("/v1/agents", &json!({"name": "planner"})).await.body;
    let agent = door.home.agent(agent["token"].as_str().unwrap());
    assert_eq!(unix.send("shared", "@ci", "x").await.status, 202);
    assert_eq!(agent.send("shared", "@ci", "another text").await.status, 202, "an id belongs to its sender");
    let elsewhere = json!({"topic": "alerts", "message": "x", "client_message_id": "shared"});
    let reused = unix.post("/v1/topic/post", &elsewhere).await;
    assert_eq!((reused.status, &reused.body["error"]), (409, &json!("idempotency_key_reused")));
}

#[tokio::test]
async fn names_that_lie_are_refused_and_nothing_in_an_answer_can_move_a_cursor() {
    let door = Door::open().await;
    let unix = door.home.unix();
    let long = format!("@{}", "n".repeat(10 * 1024));
    for to in ["@a\u{0}b", "@re\u{202e}viewer", "@rеviewer", "@", "#", "", long.as_str(), "@a\u{1b}[2J"] {
        let said = unix.post("/v1/send", &json!({"to": to, "body": "x"})).await;
        assert_eq!(said.status, 400, "{to:?}: {said:?}");
        assert!(!said.body["message"].as_str().unwrap().contains('\u{1b}'), "{said:?}");
    }
    assert_eq!(door.rows().await, 0);
}

#[tokio::test]
async fn a_body_over_its_bound_is_too_large_and_uses_no_id_on_both_listeners() {
    let door = Door::open().await;
    let long = "x".repeat(limits::BODY_BYTES_MAX + 1);
    for (caller, id) in [(door.home.unix(), "by-socket"), (door.home.tcp(), "by-tcp")] {
        let said = caller.send(id, "@ci", &long).await;
        assert_eq!((said.status, &said.body["error"]), (413, &json!("too_large")));
        assert_eq!(caller.send(id, "@ci", "short").await.status, 202, "the id is free");
    }
}
