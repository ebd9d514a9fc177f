//! The local door itself: who is let in, what is refused, what it tells.

use std::net::SocketAddr;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use wire::link::{Rows, ToNode};

use crate::broker::SOON;
use crate::home::Home;

/// One request as bytes; the whole answer.
async fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    tokio::time::timeout(SOON, read).await.expect("the door answers and closes").unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or(answer)
}

#[tokio::test]
async fn tcp_lets_in_who_shows_the_token_under_an_own_name_and_comes_from_no_page() {
    let (_broker, home) = Home::linked().await;
    let (address, token) = (home.daemon().http().unwrap(), home.files().read_token().unwrap());
    let token = token.reveal();
    let port = address.port();
    let own = format!("127.0.0.1:{port}");
    let bearer = format!("authorization: Bearer {token}\r\n");
    let body = r#"{"to":"@ci","body":"x"}"#;
    let post = |host: &str, more: &str, kind: &str| {
        format!(
            "POST /v1/send HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}content-type: {kind}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let get = |path: &str, host: &str, more: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}\r\n")
    };
    let wrong = format!("authorization: Bearer {}x\r\n", &token[..token.len() - 1]);
    for (what, request, expected) in [
        ("all right", post(&own, &bearer, "application/json"), "202"),
        ("by name", post(&format!("localhost:{port}"), &bearer, "application/json"), "202"),
        ("by IPv6", post(&format!("[::1]:{port}"), &bearer, "application/json"), "202"),
        ("no token", post(&own, "", "application/json"), "401"),
        ("a wrong token", post(&own, &wrong, "application/json"), "401"),
        (
            "another scheme",
            post(&own, &format!("authorization: Basic {token}\r\n"), "application/json"),
            "401",
        ),
        ("another host", post("evil.com", &bearer, "application/json"), "403"),
        ("a host that only begins right", post("127.0.0.1.evil.com", &bearer, "application/json"), "403"),
        ("an empty host", post("", &bearer, "application/json"), "403"),
        ("a page", post(&own, &format!("{bearer}origin: http://{own}\r\n"), "application/json"), "403"),
        ("a page of nowhere", post(&own, &format!("{bearer}origin: null\r\n"), "application/json"), "403"),
        ("a form", post(&own, &bearer, "text/plain"), "415"),
        ("health without a token", get("/v1/health", &own, ""), "401"),
        ("metrics without a token", get("/v1/metrics", &own, ""), "401"),
        ("a token in the address", get(&format!("/v1/health?token={token}"), &own, &bearer), "400"),
        ("health", get("/v1/health", &own, &bearer), "200"),
        ("nothing there", get("/v1/nothing", &own, &bearer), "404"),
        ("another method", get("/v1/send", &own, &bearer), "405"),
    ] {
        let answer = raw(address, &request).await;
        assert_eq!(status(&answer), expected, "{what}: {answer}");
        assert!(!answer.to_ascii_lowercase().contains("access-control"), "{what}");
    }
    let listed = home.unix().get("/v1/outbox").await.body;
    assert_eq!(listed["items"].as_array().unwrap().len(), 3, "only what was let in is stored");
}

#[tokio::test]
async fn the_socket_needs_no_token_and_judges_one_that_is_shown() {
    let (_broker, home) = Home::linked().await;
    assert_eq!(home.unix().get("/v1/health").await.status, 200);
    assert_eq!(home.agent("nonsense").get("/v1/health").await.status, 401);
    let mut stream = UnixStream::connect(home.daemon().socket()).await.unwrap();
    let request = "GET /v1/version HTTP/1.1\r\nhost: anything at all\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(status(&answer), "200", "{answer}");
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_as_json_and_never_a_fault() {
    let (_broker, home) = Home::linked().await;
    let address = home.daemon().http().unwrap();
    let token = home.files().read_token().unwrap();
    let deep =
        format!(r#"{{"to":"@ci","body":"x","meta":{}1{}}}"#, r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    for body in [
        "",
        "{",
        "[]",
        "\u{feff}{}",
        r#"{"to":"@ci","to":"@x","body":"x"}"#,
        r#"{"to":"@ci","body":"\ud800"}"#,
        r#"{"to":"@ci","body":"x","meta":{"a":1e400}}"#,
        &deep,
    ] {
        let request = format!(
            "POST /v1/send HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            token.reveal(),
            body.len()
        );
        let answer = raw(address, &request).await;
        assert_eq!(status(&answer), "400", "{}: {answer}", &body[..body.len().min(60)]);
        assert!(answer.contains(r#""error":"invalid_request""#), "{answer}");
    }
}

#[tokio::test]
async fn a_replaced_token_still_opens_for_a_while_and_the_new_one_at_once() {
    let (_broker, home) = Home::linked().await;
    let old = home.tcp();
    let said = home.unix().post("/v1/rotate-token", &json!({})).await;
    assert_eq!(said.status, 200, "{said:?}");
    assert_eq!(home.tcp().get("/v1/health").await.status, 200);
    assert_eq!(old.get("/v1/health").await.status, 200);
    assert_eq!(home.stranger().get("/v1/health").await.status, 401);
}

#[tokio::test]
async fn an_agent_gets_a_token_of_its_own_and_may_do_nothing_of_the_operators() {
    let (broker, home) = Home::linked().await;
    let first = home.unix().post("/v1/agents", &json!({"name": "@planner"})).await;
    assert_eq!((first.status, &first.body["name"]), (201, &json!("planner")));
    let agent = home.agent(first.body["token"].as_str().unwrap());
    assert_eq!(agent.send("a1", "@ci", "x").await.status, 202);
    broker.until_accepted(1).await;
    for (path, body) in [
        ("/v1/agents", json!({"name": "other"})),
        ("/v1/rotate-token", json!({})),
        ("/v1/shutdown", json!({})),
        ("/v1/meshes/home/resume", json!({})),
        ("/v1/outbox/abort", json!({"id": "01M7GH3C2R6V0D9QK1TJX4N8YE"})),
        ("/v1/outbox/requeue", json!({"id": "01M7GH3C2R6V0D9QK1TJX4N8YE"})),
    ] {
        assert_eq!(agent.post(path, &body).await.status, 403, "{path}");
    }
    home.unix().send("j1", "@ci", "x").await;
    let seen = agent.get("/v1/outbox").await.body;
    assert_eq!(seen["items"].as_array().unwrap().len(), 1, "its own rows alone");
    assert_eq!(agent.get("/v1/messages/j1").await.status, 404);
    let again = home.unix().post("/v1/agents", &json!({"name": "planner"})).await;
    assert_eq!((again.status, &again.body["id"]), (200, &first.body["id"]));
    assert_eq!(home.agent(again.body["token"].as_str().unwrap()).get("/v1/inbox").await.status, 200);
    assert_eq!(agent.get("/v1/inbox").await.status, 200, "the old token ends after a minute, not at once");
    let elsewhere = home.unix().post("/v1/agents", &json!({"name": "elsewhere"})).await;
    assert_eq!((elsewhere.status, &elsewhere.body["error"]), (409, &json!("name_taken")));
    let person = home.unix().post("/v1/agents", &json!({"name": "jane"})).await;
    assert_eq!((person.status, &person.body["error"]), (409, &json!("name_taken")));
}

#[tokio::test]
async fn health_version_and_metrics_tell_what_is() {
    let (broker, home) = Home::linked().await;
    home.unix().send("a", "@ci", "x").await;
    home.until_rung("a", "accepted").await;
    broker.push(ToNode::Mail(Rows { rows: vec![broker.mail("m", "hello")] })).await;
    broker.until("an ack", |books| (!books.acks.is_empty()).then_some(())).await;
    let health = home.tcp().get("/v1/health").await.body;
    let mesh = &health["meshes"][0];
    assert_eq!(
        (&mesh["mesh"], &mesh["node"], &mesh["person"]),
        (&json!("home"), &json!("mbp"), &json!("jane"))
    );
    assert_eq!((&mesh["outbox"]["done"], &mesh["inbox_unread"]), (&json!(1), &json!(1)));
    assert_eq!(health["problems"], json!([]));
    let version = home.unix().get("/v1/version").await.body;
    assert_eq!((&version["ipc_api"], &version["daemon_version"]), (&json!("v1"), &json!("0.0.0-test")));
    let metrics = home.unix().get("/v1/metrics").await.body;
    let metrics = metrics.as_str().unwrap();
    for line in [
        "cm_daemon_connected{mesh=\"home\"} 1",
        "cm_daemon_outbox_depth{mesh=\"home\",status=\"done\"} 1",
        "cm_daemon_recv_total{mesh=\"home\"} 1",
        "cm_daemon_send_total{mesh=\"home\",status=\"accepted\"} 1",
        "cm_daemon_ipc_request_total{endpoint=\"/v1/send\",status=\"202\",transport=\"unix\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

#[tokio::test]
async fn events_bring_mail_with_ids_and_resume_after_them() {
    let (broker, home) = Home::linked().await;
    let rows = |ids: &[&str]| ids.iter().map(|id| broker.mail(id, id)).collect();
    let mut events = Events::open(&home, None).await;
    broker.push(ToNode::Mail(Rows { rows: rows(&["m1", "m2"]) })).await;
    let (first, id) = events.next("message").await;
    assert_eq!(first["body"], "m1");
    assert_eq!(events.next("message").await.0["body"], "m2");
    drop(events);
    let mut resumed = Events::open(&home, Some(&id.unwrap())).await;
    assert_eq!(resumed.next("message").await.0["body"], "m2", "what follows the id, without gap or repeat");
    broker.push(ToNode::Mail(Rows { rows: rows(&["m3"]) })).await;
    assert_eq!(resumed.next("message").await.0["body"], "m3");
    let mut other_life = Events::open(&home, Some("1:0000000000000000")).await;
    other_life.next("reset").await;
    assert_eq!(other_life.next("message").await.0["body"], "m1");
    home.unix().send("out", "@ci", "x").await;
    assert_eq!(other_life.next("send_status").await.0["status"], "done");
    broker.cut();
    other_life.next("daemon_disconnect").await;
    other_life.next("daemon_reconnect").await;
}

#[tokio::test]
async fn a_chain_of_automatic_replies_that_is_too_long_is_cut_visibly() {
    let (_broker, home) = Home::linked().await;
    let mut events = Events::open(&home, None).await;
    let said = home.unix().post("/v1/send", &json!({"to": "@ci", "body": "x", "hops": 65})).await;
    assert_eq!((said.status, &said.body["error"]), (422, &json!("hop_limit")));
    assert_eq!(events.next("hop_limit").await.0["sender"], "jane");
    assert_eq!(
        home.unix().post("/v1/send", &json!({"to": "@ci", "body": "x", "hops": 64})).await.status,
        202
    );
}

/// An event stream on the socket, read line by line.
struct Events {
    stream: UnixStream,
    read: String,
}

impl Events {
    async fn open(home: &Home, last: Option<&str>) -> Self {
        let mut stream = UnixStream::connect(home.daemon().socket()).await.unwrap();
        let last = last.map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
        let request = format!("GET /v1/events HTTP/1.1\r\nhost: x\r\n{last}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut events = Self { stream, read: String::new() };
        while !events.read.contains("\r\n\r\n") {
            events.more().await;
        }
        assert!(events.read.starts_with("HTTP/1.1 200"), "{}", events.read);
        events
    }

    async fn more(&mut self) {
        let mut bytes = [0; 4096];
        let read =
            tokio::time::timeout(SOON, self.stream.read(&mut bytes)).await.expect("an event comes").unwrap();
        assert!(read > 0, "the stream ended: {}", self.read);
        self.read.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
    }

    /// The next event of that name, passing over others: its data and its id.
    async fn next(&mut self, name: &str) -> (serde_json::Value, Option<String>) {
        loop {
            let wanted = format!("event: {name}\n");
            if let Some(begin) = self.read.find(&wanted)
                && let Some(end) = self.read[begin..].find("\n\n")
            {
                let event = self.read[begin..begin + end].to_owned();
                self.read.drain(..begin + end + 2);
                let field = |field: &str| {
                    event.lines().find_map(|line| line.strip_prefix(field).map(|text| text.trim().to_owned()))
                };
                let data = field("data:")
                    .map_or(serde_json::Value::Null, |data| serde_json::from_str(&data).unwrap());
                return (data, field("id:"));
            }
            self.more().await;
        }
    }
}
