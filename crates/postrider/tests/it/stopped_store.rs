//! A store whose disk refuses a sync stops. The process names it, answers what it can, and ends with exit code 5, so that
//! a supervisor starts it anew; after that start everything acknowledged is there.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::bin::{Home, Output};
use testkit::process::{Channel, Process};
use testkit::stopwatch::Stopwatch;
use testkit::wait_for;

use super::{home, up};

/// What a supervisor is promised.
const EXIT_MAX: Duration = Duration::from_secs(30);
const BOUND: Duration = Duration::from_secs(60);
/// More syncs than a start needs, few enough to be reached at once.
pub const SYNCS_BEFORE: u32 = 40;
/// Requests after which a disk that fails must have been met.
const REQUESTS_MAX: usize = 500;

/// Status and body of one call, `None` when nobody answers.
fn call(
    mut stream: impl Read + Write,
    request: (&str, &str),
    lines: &str,
    body: &str,
) -> Option<(u16, Value)> {
    let (method, path) = request;
    let text = format!(
        "{method} {path} HTTP/1.1\r\ncontent-type: application/json\r\nconnection: close\r\n\
         {lines}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.get(9..12)?.parse().ok()?, serde_json::from_str(body).unwrap_or(Value::Null)))
}

fn on_socket(socket: &Path, request: (&str, &str), body: &str) -> Option<(u16, Value)> {
    let stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(BOUND)).ok()?;
    call(stream, request, "host: x\r\n", body)
}

/// `lines` are further lines of the head.
fn on_tcp(url: &str, request: (&str, &str), lines: &str, body: &str) -> Option<(u16, Value)> {
    let address: SocketAddr = url.strip_prefix("http://")?.parse().ok()?;
    let stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(BOUND)).ok()?;
    call(stream, request, &format!("host: {address}\r\n{lines}"), body)
}

/// The line a role prints when it is ready.
fn ready(process: &Process) -> Value {
    let line =
        process.line(Channel::Stdout, "its ready line", BOUND, |line| line.contains("\"ready\"")).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Asks until the disk has failed; when that was, and what was acknowledged before.
pub fn until_refused(mut ask: impl FnMut(&str) -> Option<(u16, Value)>) -> (Stopwatch, Vec<String>) {
    let mut taken = Vec::new();
    for n in 0..REQUESTS_MAX {
        let id = format!("id-{n}");
        match ask(&id) {
            Some((200..=202, _)) => taken.push(id),
            refused => {
                assert!(
                    refused.as_ref().is_none_or(|(status, _)| *status >= 500),
                    "a failed disk is a refusal by a 5xx"
                );
                assert!(!taken.is_empty(), "the disk was sound at first: {refused:?}");
                return (Stopwatch::start(), taken);
            }
        }
    }
    panic!("{REQUESTS_MAX} requests met no failed sync");
}

/// Waits for 503 that names the store.
fn until_not_ready(named: &str, mut look: impl FnMut() -> Option<(u16, Value)>) {
    let told =
        wait_for("readiness to say 503", BOUND, || look().filter(|(status, _)| *status == 503)).unwrap();
    assert_eq!(told.1["error"], "storage_stopped", "{told:?}");
    assert!(told.1["message"].as_str().unwrap().contains(named), "{told:?}");
}

/// Waits for the end, which names the store and asks a supervisor for a start.
fn ends_with_five(mut process: Process, named: &str, since: Stopwatch) {
    let status = process.wait_exit(EXIT_MAX).unwrap();
    let took = since.elapsed();
    let log = process.text(Channel::Stderr);
    assert_eq!(status.code(), Some(5), "{log}");
    assert!(took < EXIT_MAX, "the end took {took:?}");
    assert!(log.contains(named) && log.contains("storage_stopped"), "{log}");
}

fn names(doctor: &Output, named: &str) {
    assert_eq!(doctor.code(), Some(1), "{}", doctor.stdout);
    assert!(doctor.stdout.contains(named) && doctor.stdout.contains("has stopped"), "{}", doctor.stdout);
}

fn send(socket: &Path, id: &str) -> Option<(u16, Value)> {
    let message = json!({"to": "@me", "body": "x", "client_message_id": id});
    on_socket(socket, ("POST", "/v1/send"), &message.to_string())
}

/// A home that has been up once, so that its mesh and its files are there; with a token for direct callers.
fn made() -> (Home, String) {
    let home = home();
    let product = up(&home);
    let token =
        product.cli(&["--as", "cron", "--quiet", "token", "create"]).unwrap().stdout.trim().to_owned();
    product.interrupt().unwrap();
    (home, token)
}

fn mailbox_log(home: &Home) -> PathBuf {
    home.path().join("daemon/home/mailbox.db-wal")
}

fn ledger_log(home: &Home) -> PathBuf {
    home.path().join("broker/ledger.db-wal")
}

#[test]
fn up_ends_with_five_after_its_mailbox_stopped_and_everything_acknowledged_is_there_afterwards() {
    let (home, _) = made();
    let args = ["up", "--json", "--listen", "127.0.0.1:0"];
    let process = home.spawn_whose_syncs_fail(&mailbox_log(&home), SYNCS_BEFORE, &args).unwrap();
    let ready = ready(&process);
    let socket = PathBuf::from(ready["socket"].as_str().unwrap());
    let (since, taken) = until_refused(|id| send(&socket, id));
    let url = ready["url"].as_str().unwrap();
    until_not_ready("mailbox of mesh home", || on_tcp_ready(url));
    until_not_ready("mailbox of mesh home", || on_socket(&socket, ("GET", "/readyz"), ""));
    let health = on_socket(&socket, ("GET", "/v1/health"), "").unwrap().1;
    assert_eq!(health["stopped_stores"][0]["store"], "mailbox of mesh home", "{health}");
    assert!(health["problems"].to_string().contains("mailbox of mesh home"), "{health}");
    names(&home.cli(&["doctor"]).unwrap(), "mailbox of mesh home");
    ends_with_five(process, "mailbox of mesh home", since);
    let product = up(&home);
    for id in &taken {
        let found = on_socket(&product.ready().socket, ("GET", &format!("/v1/messages/{id}")), "");
        assert_eq!(found.unwrap().0, 200, "{id} was acknowledged and is there");
    }
}

#[test]
fn up_ends_with_five_after_its_ledger_stopped() {
    let (home, _) = made();
    let args = ["up", "--json", "--listen", "127.0.0.1:0"];
    let process = home.spawn_whose_syncs_fail(&ledger_log(&home), SYNCS_BEFORE, &args).unwrap();
    let ready = ready(&process);
    let (socket, url) = (PathBuf::from(ready["socket"].as_str().unwrap()), ready["url"].as_str().unwrap());
    let mut sent = 0;
    // Sends are taken by the mailbox all the same: the ledger is met by the courier behind them.
    wait_for("the ledger to meet its disk", BOUND, || {
        sent += 1;
        send(&socket, &format!("id-{sent}"));
        on_tcp_ready(url).filter(|(status, _)| *status == 503).map(drop)
    })
    .unwrap();
    let since = Stopwatch::start();
    until_not_ready("ledger", || on_tcp_ready(url));
    names(&home.cli(&["doctor"]).unwrap(), "ledger");
    ends_with_five(process, "ledger", since);
}

#[test]
fn a_daemon_alone_ends_with_five_after_a_mailbox_stopped() {
    let (home, _) = made();
    let args = ["daemon", "up", "--json"];
    let process = home.spawn_whose_syncs_fail(&mailbox_log(&home), SYNCS_BEFORE, &args).unwrap();
    let socket = PathBuf::from(ready(&process)["socket"].as_str().unwrap());
    let (since, _) = until_refused(|id| send(&socket, id));
    until_not_ready("mailbox of mesh home", || on_socket(&socket, ("GET", "/readyz"), ""));
    names(&home.cli(&["doctor"]).unwrap(), "mailbox of mesh home");
    ends_with_five(process, "mailbox of mesh home", since);
}

#[test]
fn a_broker_alone_ends_with_five_after_its_ledger_stopped() {
    let (home, token) = made();
    let args = ["broker", "serve", "--json", "--listen", "127.0.0.1:0"];
    let process = home.spawn_whose_syncs_fail(&ledger_log(&home), SYNCS_BEFORE, &args).unwrap();
    let url = ready(&process)["url"].as_str().unwrap().to_owned();
    let bearer = format!("authorization: Bearer {token}\r\n");
    let (since, _) = until_refused(|id| {
        let message = json!({"to": "#general", "body": "x", "client_message_id": id});
        on_tcp(&url, ("POST", "/v1/meshes/home/messages"), &bearer, &message.to_string())
    });
    until_not_ready("ledger", || on_tcp_ready(&url));
    ends_with_five(process, "ledger", since);
}

#[test]
fn a_relay_alone_ends_with_five_after_its_outbox_stopped() {
    let home = home();
    std::fs::create_dir_all(home.path()).unwrap();
    let outbox = home.path().join("relay/outbox.db-wal");
    let args = ["relay", "serve", "--json", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9"];
    let process = home.spawn_whose_syncs_fail(&outbox, SYNCS_BEFORE, &args).unwrap();
    let ready = ready(&process);
    let (url, socket) = (ready["url"].as_str().unwrap(), Path::new(ready["socket"].as_str().unwrap()));
    let (since, _) = until_refused(|id| write_through(url, id));
    until_not_ready("relay outbox", || on_socket(socket, ("GET", "/readyz"), ""));
    names(&home.cli(&["relay", "doctor"]).unwrap(), "relay outbox");
    ends_with_five(process, "relay outbox", since);
}

/// A write that the relay stores, because its upstream is away.
pub fn write_through(url: &str, id: &str) -> Option<(u16, Value)> {
    let key = format!("idempotency-key: {id}\r\n");
    on_tcp(url, ("POST", "/progress/"), &key, &json!({"text": "x"}).to_string())
}

fn on_tcp_ready(url: &str) -> Option<(u16, Value)> {
    on_tcp(url, ("GET", "/readyz"), "", "")
}
