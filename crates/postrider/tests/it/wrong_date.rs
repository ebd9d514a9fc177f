//! A machine whose date stands ahead by more than a year for a while.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::bin::{Home, Options, Product};
use testkit::wait_for;

use super::home;

const BOUND: Duration = Duration::from_secs(60);
/// Past the dedupe window, the inbox's retention and the bound for undelivered mail.
const AHEAD: Duration = Duration::from_secs(400 * 24 * 3_600);

fn set_date_ahead(clock: &Path, ahead: Duration) {
    let next = clock.with_extension("next");
    std::fs::write(&next, format!("0 {}", ahead.as_micros())).unwrap();
    std::fs::rename(next, clock).unwrap();
}

fn up<'home>(home: &'home Home, clock: &Path) -> Product<'home> {
    let faults = vec![format!("clock:{}", clock.display())];
    Product::up(home, &Options { faults, ..Options::default() }).unwrap()
}

/// Hands a message over at the broker's door: status and receipt.
fn post(product: &Product<'_>, token: &str, id: &str) -> (u16, Value) {
    let address = product.ready().url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let body = json!({"to": "#general", "body": "hi", "client_message_id": id}).to_string();
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    let request = format!(
        "POST /v1/meshes/home/messages HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap_or(Value::Null))
}

/// The broker's walks over all ids since it started.
fn walks(product: &Product<'_>) -> Option<u64> {
    let address = product.ready().url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut stream = TcpStream::connect(&address).ok()?;
    stream.set_read_timeout(Some(BOUND)).ok()?;
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let line = answer.lines().find(|line| line.starts_with("cm_broker_dedupe_walks_total"))?;
    line.split(' ').nth(1)?.parse().ok()
}

#[test]
fn a_date_ahead_by_a_year_over_a_restart_frees_no_id_takes_no_body_and_is_told() {
    let home = home();
    let clock = home.path().with_file_name("ahead");
    set_date_ahead(&clock, Duration::ZERO);
    let product = up(&home, &clock);
    let token = product.cli(&["--quiet", "token", "create", "--as", "ci"]).unwrap().done().stdout;
    let token = token.trim();
    let (status, first) = post(&product, token, "held");
    assert_eq!(status, 201, "{first}");
    product.cli(&["send", "me", "keep these words", "--wait", "delivered"]).unwrap().done();
    product.kill9();

    set_date_ahead(&clock, AHEAD);
    let product = up(&home, &clock);
    wait_for("a walk over all ids under the wrong date", BOUND, || {
        walks(&product).filter(|walks| *walks > 0)
    })
    .unwrap();
    let told = "days ahead of the time this broker saw pass";
    let status = || product.cli(&["status"]).unwrap().stdout;
    wait_for("status to tell of the date", BOUND, || status().contains(told).then_some(())).unwrap();
    let findings = product.cli(&["--json", "doctor"]).unwrap().json();
    let told = |row: &Value| row["check"] == "broker" && row["message"].to_string().contains("days ahead");
    assert!(findings.iter().any(told), "{findings:?}");
    product.kill9();

    set_date_ahead(&clock, Duration::ZERO);
    let product = up(&home, &clock);
    let (status, again) = post(&product, token, "held");
    assert_eq!((status, &again["broker_message_id"]), (200, &first["broker_message_id"]), "{again}");
    let inbox = product.cli(&["inbox"]).unwrap().done();
    assert!(inbox.stdout.contains("keep these words"), "{}", inbox.stdout);
    let status = product.cli(&["status"]).unwrap();
    assert!(!status.stdout.contains("days ahead"), "{}", status.stdout);
}
