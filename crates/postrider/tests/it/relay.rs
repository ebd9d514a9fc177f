//! A relay before a hub, both the real binary: the small run of `cargo xtask prove relay`, and its commands.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use serde_json::Value;
use testkit::bin::{Binary, Options, Product};
use testkit::fleet::relays::draws::{self, DrawOutcome, DrawPlan};
use testkit::fleet::relays::{Outcome, Plan, run};
use testkit::process::Channel;

fn relayed(writes: u64, outages: u64, planted: bool) -> Outcome {
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    run(&Plan { binary, writes, outages, seed: 1, planted }).unwrap()
}

#[test]
fn writes_over_outages_and_days_offline_are_applied_once_and_in_order() {
    let outcome = relayed(640, 8, false);
    assert!(outcome.holds(), "{outcome:#?}");
    assert_eq!((outcome.acked, outcome.conflicts), (640 + 40, 1), "{outcome:#?}");
    assert!(outcome.queued > 0 && outcome.expired > 0, "{outcome:#?}");
}

#[test]
fn a_key_recorded_in_a_transaction_of_its_own_is_found() {
    let outcome = relayed(800, 10, true);
    assert!(outcome.doubled > 0, "the bug went unnoticed: {outcome:#?}");
}

fn drawn(writes: u64, rounds: u64, planted: Option<&str>) -> DrawOutcome {
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    let planted = planted.map(str::to_owned);
    draws::run(&DrawPlan { binary, writes, rounds, seed: 1, planted }).unwrap()
}

#[test]
fn the_only_callers_writes_meet_no_conflict_and_keys_and_credentials_keep_their_word() {
    let outcome = drawn(400, 2, None);
    assert!(outcome.holds(), "{outcome:#?}");
    assert!(outcome.acked >= 380 && outcome.queued > 100 && outcome.refused >= 12, "{outcome:#?}");
    assert!(outcome.taken_keys > 0 && outcome.bad_credentials > 0, "{outcome:#?}");
}

#[test]
fn a_key_that_counts_for_any_request_is_found() {
    let outcome = drawn(40, 1, Some("relay.key_without_fingerprint"));
    assert!(outcome.wrongly_done > 0, "the bug went unnoticed: {outcome:#?}");
}

#[test]
fn a_replay_through_pauses_and_stops_is_found() {
    let outcome = drawn(40, 1, Some("relay.endless_replay"));
    assert!(outcome.unpaused > 0, "the bug went unnoticed: {outcome:#?}");
}

#[test]
fn a_tag_that_belongs_to_a_path_is_found() {
    let outcome = drawn(60, 1, Some("relay.tags_by_path"));
    assert!(outcome.false_conflicts > 0, "the bug went unnoticed: {outcome:#?}");
}

#[test]
fn a_refused_write_that_was_stored_is_found() {
    let outcome = drawn(40, 1, Some("relay.refused_and_stored"));
    assert!(outcome.stored_refusals > 0, "the bug went unnoticed: {outcome:#?}");
}

#[test]
fn a_relay_that_does_not_run_is_named_with_the_command_that_starts_it() {
    let home = crate::home();
    let output = home.cli(&["relay", "outbox", "status"]).unwrap();
    assert_eq!(output.code(), Some(3));
    assert!(output.stderr.contains("relay_not_running"), "{}", output.stderr);
    assert!(output.stderr.contains("postrider relay serve --upstream URL"), "{}", output.stderr);
}

/// Sends one request and reads the status of its answer.
fn status_of(address: SocketAddr, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request.as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line.split(' ').nth(1).unwrap_or_default().to_owned())
}

/// An API that takes whatever it is asked, until the test ends.
fn api() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever asked may have gone.
            let _ = take(stream);
        }
    });
    address
}

/// Reads one request whole: a connection closed over unread bytes is cut, and its answer with it.
fn take(stream: TcpStream) -> std::io::Result<()> {
    let (mut reader, mut line, mut length) = (BufReader::new(stream), String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    reader.get_mut().write_all(answer.as_bytes())
}

#[test]
fn without_a_relay_the_outbox_is_opened_under_its_lock_and_replay_ends_with_its_codes() {
    let home = crate::home();
    let nobody = format!("http://127.0.0.1:{}", testkit::port::free().unwrap());
    let args = ["relay", "serve", "--json", "--listen", "127.0.0.1:0", "--upstream", &nobody];
    let mut relay = home.spawn(&args, &[]).unwrap();
    let ready = relay.line(Channel::Stdout, "its ready line", Duration::from_secs(60), |_| true).unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let address = ready["url"].as_str().unwrap().trim_start_matches("http://").parse().unwrap();
    let write = "POST /progress/ HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                 idempotency-key: k1\r\ncontent-length: 7\r\n\r\n{\"n\":1}";
    assert_eq!(status_of(address, write).unwrap(), "202");
    relay.kill9();

    let status = home.cli(&["relay", "outbox", "status", "--json"]).unwrap();
    assert_eq!(status.code(), Some(0), "{}", status.stderr);
    let told = &status.json()[0];
    assert_eq!((&told["queued"], &told["reachable"]), (&1.into(), &false.into()), "{told}");
    assert_eq!(told["upstream"], nobody.as_str(), "where the last relay sent");
    let listed = home.cli(&["relay", "outbox", "list", "--json"]).unwrap().done();
    assert_eq!(listed.json()[0]["idempotency_key"], "k1");

    let away = home.cli(&["relay", "outbox", "replay", "--json"]).unwrap();
    assert_eq!(away.code(), Some(3), "{}{}", away.stdout, away.stderr);
    let url = format!("http://{}", api());
    let drained = home.cli(&["relay", "outbox", "replay", "--json", "--upstream-url", &url]).unwrap();
    assert_eq!(drained.code(), Some(0), "{}{}", drained.stdout, drained.stderr);
    let done = home.cli(&["relay", "outbox", "list", "--json", "--status", "done"]).unwrap().done();
    assert_eq!(done.json()[0]["idempotency_key"], "k1");
}

/// One request as the page sends it, on a connection of its own, and its whole answer.
fn exchange(address: SocketAddr, line: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\nconnection: close\r\n\
         content-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The cookie line of a browser that signed in at `address` with the link of that home's person.
fn session(address: SocketAddr, product: &Product<'_>, mesh: &str) -> String {
    let link = product.cli(&["--quiet", "--mesh", mesh, "signin"]).unwrap().done().stdout;
    let (_, key) = link.trim().split_once("#key=").unwrap();
    let signed_in = exchange(address, "POST /v1/session", "", &format!(r#"{{"key":"{key}"}}"#));
    let line = signed_in.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = line.unwrap_or_else(|| panic!("no session: {signed_in}")).split(';').next().unwrap();
    format!("cookie: {cookie}\r\n")
}

#[test]
fn the_pages_door_to_the_relay_is_its_homes_persons_alone() {
    let (first, second) = (crate::home(), crate::home());
    let nobody = format!("--relay=http://127.0.0.1:{}", testkit::port::free().unwrap());
    let args = vec![nobody, "--relay-listen=127.0.0.1:0".to_owned()];
    let product = Product::up(&first, &Options { args, ..Options::default() }).unwrap();
    let other = crate::up(&second);
    let invite = product.cli(&["--quiet", "invite", "lab"]).unwrap().done().stdout;
    let join = ["join", invite.trim(), "--node", "lab", "--person", "tom", "--mesh-as", "far"];
    other.cli(&join).unwrap().done();
    let address = product.ready().url.trim_start_matches("http://").parse().unwrap();
    let (owner, tom) = (session(address, &product, "home"), session(address, &other, "far"));
    let relay = "/page/local/relay";
    for (line, body) in [
        (format!("GET {relay}/status"), ""),
        (format!("GET {relay}/envelopes"), ""),
        (format!("GET {relay}/envelopes/ZZZZZZ"), ""),
        (format!("POST {relay}/envelopes/ZZZZZZ/resolve"), r#"{"choice":"drop"}"#),
    ] {
        let found = if line.contains("ZZZZZZ") { ("404", "not_found") } else { ("200", "") };
        for (who, cookie, (status, word)) in [
            ("the home's person", owner.as_str(), found),
            ("another member of the mesh", tom.as_str(), ("403", "\"forbidden\"")),
            ("nobody", "", ("401", "\"unauthorized\"")),
        ] {
            let answer = exchange(address, &line, cookie, body);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{who}, {line}: {answer}");
            assert!(answer.contains(word), "{who}, {line}: {answer}");
        }
    }
}
