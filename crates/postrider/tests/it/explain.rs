//! `postrider explain`: one true sentence for any id.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;
use testkit::bin::{Options, Product};
use testkit::wait_for;

use super::{home, up};

const BOUND: Duration = Duration::from_secs(60);

fn explained(product: &Product<'_>, args: &[&str]) -> Value {
    let all = [&["--json", "explain"], args].concat();
    product.cli(&all).unwrap().json()[0].clone()
}

fn until(product: &Product<'_>, args: &[&str], verdict: &str) -> Value {
    wait_for(verdict, BOUND, || {
        let told = explained(product, args);
        (told["verdict"] == verdict).then_some(told)
    })
    .unwrap()
}

#[test]
fn an_id_never_seen_is_said_to_be_so_and_who_was_asked() {
    let home = home();
    let product = up(&home);
    for id in ["never-sent", "01M7GHXX7R3TQ9V0B2C8K604ZK", "01890a5d-ac96-774b-bcce-b302099a8057", "x/y z"] {
        let ended = product.cli(&["--json", "explain", id]).unwrap();
        assert_eq!(ended.code(), Some(1), "{ended:?}");
        let told = &ended.json()[0];
        assert_eq!((&told["verdict"], &told["broker"]), (&"never_seen".into(), &"never_committed".into()));
        assert_eq!(told["asked"].as_array().unwrap().len(), 2, "{told}");
    }
    let text = product.cli(&["explain", "never-sent"]).unwrap().stdout;
    assert!(text.starts_with("never seen: no outbox, inbox or broker record holds this id"), "{text}");
    assert!(text.contains("cannot double it"), "{text}");
}

#[test]
fn a_message_is_explained_by_each_of_its_ids_and_by_their_tails() {
    let home = home();
    let product = up(&home);
    product.cli(&["send", "@me", "hi", "--id", "order-4127", "--wait", "delivered"]).unwrap().done();
    let told = explained(&product, &["order-4127"]);
    assert_eq!((&told["verdict"], &told["receipt"]["rung"]), (&"delivered".into(), &"delivered".into()));
    let rungs: Vec<&str> =
        told["rungs"].as_array().unwrap().iter().map(|rung| rung["rung"].as_str().unwrap()).collect();
    assert_eq!(rungs, ["queued", "accepted", "delivered"]);
    assert_eq!((&told["broker"], &told["needs_person"]), (&"accepted".into(), &false.into()));
    let (row, message) = (told["row"].as_str().unwrap(), told["message_id"].as_str().unwrap());
    for id in [row, message, &row[row.len() - 6..], &message[message.len() - 6..], "r-4127"] {
        let again = explained(&product, &[id]);
        assert_eq!((&again["row"], &again["verdict"]), (&told["row"], &"delivered".into()), "{id}");
    }
    product.cli(&["send", "@me", "hi", "--id", "other-r-4127", "--wait", "delivered"]).unwrap().done();
    let ambiguous = product.cli(&["--json", "explain", "r-4127"]).unwrap();
    assert_eq!(ambiguous.code(), Some(1));
    let refused: Value = serde_json::from_str(&ambiguous.stderr).unwrap();
    assert_eq!(
        (&refused["error"], refused["candidates"].as_array().unwrap().len()),
        (&"id_ambiguous".into(), 2)
    );
    let text = product.cli(&["explain", "order-4127"]).unwrap().done().stdout;
    assert!(text.starts_with("delivered, nobody was woken for it yet"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("○  processed"), "{text}");
}

#[test]
fn each_end_is_named_with_its_reason_and_a_fix() {
    let home = home();
    let product = up(&home);
    product.cli(&["send", "nobody-here", "x", "--id", "mistyped"]).unwrap().done();
    let told = wait_for("an answer", BOUND, || {
        let told = explained(&product, &["mistyped"]);
        (told["code"] == "member_not_found").then_some(told)
    })
    .unwrap();
    assert_eq!((&told["verdict"], &told["broker"]), (&"queued".into(), &"never_committed".into()));
    let fix = told["fix"][0].as_str().unwrap().to_owned();
    let words: Vec<&str> = fix.split(' ').skip(1).collect();
    product.cli(&words).unwrap().done();
    let told = until(&product, &["mistyped"], "aborted");
    assert_eq!(told["needs_person"], false);
    let late = ["send", "@me", "x", "--id", "late", "--deliver-by", "2020-01-01T00:00:00Z"];
    product.cli(&late).unwrap().done();
    let told = until(&product, &["late"], "expired");
    assert_eq!(told["code"], "deliver_by");
    product.cli(&["send", "@me", "x", "--id", "twice", "--wait", "delivered"]).unwrap().done();
    let other = product.cli(&["send", "@me", "other words", "--id", "twice"]).unwrap();
    assert_eq!(other.code(), Some(1));
    assert_eq!(explained(&product, &["twice"])["verdict"], "delivered", "the first use of an id stands");
}

#[test]
fn turns_are_told_attempt_by_attempt() {
    let home = home();
    let product = up(&home);
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    product.cli(&["send", "ci", "x", "--id", "one", "--wait", "delivered"]).unwrap().done();
    let deadly = ["--json", "agent", "run", "ci", "--drain", "--", "sh", "-c", "kill -9 $$"];
    product.cli(&deadly).unwrap().done();
    let told = explained(&product, &["one"]);
    assert_eq!((&told["verdict"], &told["code"]), (&"engaged".into(), &"given_up".into()));
    assert_eq!(told["needs_person"], true);
    let states: Vec<&str> =
        told["turns"].as_array().unwrap().iter().map(|turn| turn["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["interrupted", "interrupted"]);
    let fix = told["fix"][0].as_str().unwrap().to_owned();
    assert_eq!(fix, format!("postrider agent retry ci {}", told["message_id"].as_str().unwrap()));
    let retried = product.cli(&["--json", "agent", "retry", "ci", "one"]).unwrap().done().json()[0].clone();
    assert_eq!((&retried["message_id"], &retried["attempts"]), (&told["message_id"], &2.into()));
    let again: Vec<&str> = fix.split(' ').skip(1).collect();
    for refused in [&again[..], &["agent", "retry", "ci", "one"]] {
        let refused = product.cli(&[&["--json"], refused].concat()).unwrap();
        assert_eq!(refused.code(), Some(1), "{refused:?}");
        assert!(refused.stderr.contains("not_given_up"), "{refused:?}");
    }
    product.cli(&["agent", "run", "ci", "--drain", "--", "true"]).unwrap().done();
    assert_eq!(explained(&product, &["one"])["verdict"], "processed");
    product.cli(&["send", "ci", "y", "--id", "two", "--wait", "delivered"]).unwrap().done();
    product
        .cli(&["agent", "run", "ci", "--drain", "--", "sh", "-c", "echo broken >&2; exit 7"])
        .unwrap()
        .done();
    let told = explained(&product, &["two"]);
    assert_eq!((&told["verdict"], &told["code"]), (&"processed".into(), &"turn_failed".into()));
    let text = product.cli(&["explain", "two"]).unwrap().done().stdout;
    assert!(text.contains("exit 7: broken"), "{text}");
}

#[test]
fn an_agent_is_told_of_its_own_messages_only() {
    let home = home();
    let product = up(&home);
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    product.cli(&["send", "@me", "private", "--id", "mine", "--wait", "delivered"]).unwrap().done();
    let own = explained(&product, &["mine"]);
    assert_eq!(own["verdict"], "delivered");
    let token = product.cli(&["--quiet", "agent", "add", "ci"]).unwrap().done().stdout;
    let told = as_agent(&product, token.trim(), "mine");
    assert_eq!(told["verdict"], "never_seen", "{told}");
}

/// Asks over the socket, where a token that is shown counts.
fn as_agent(product: &Product<'_>, token: &str, id: &str) -> Value {
    let mut stream = UnixStream::connect(&product.ready().socket).unwrap();
    let request = format!(
        "GET /v1/explain/{id} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// One write through the relay at `address`, and the status of its answer.
fn write(address: &str, key: &str, body: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "POST /progress/ HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nidempotency-key: {key}\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

/// A relay before an address where nobody listens.
fn relay_before_nobody(listen: &str) -> Vec<String> {
    vec!["--relay=http://127.0.0.1:1".to_owned(), format!("--relay-listen={listen}")]
}

#[test]
fn a_write_at_the_relay_is_explained_by_its_key_and_its_receipt_beside_the_messages() {
    let home = home();
    let address = format!("127.0.0.1:{}", testkit::port::free().unwrap());
    let options = Options { args: relay_before_nobody(&address), ..Options::default() };
    let product = Product::up(&home, &options).unwrap();
    assert_eq!(write(&address, "note-4127", r#"{"n":1}"#), "202");
    let told = explained(&product, &["note-4127"]);
    assert_eq!((&told["verdict"], &told["relay"]["verdict"]), (&"queued".into(), &"queued".into()), "{told}");
    assert_eq!((&told["broker"], told["asked"].as_array().unwrap().len()), (&"never_committed".into(), 3));
    let envelope = told["relay"]["envelope"]["envelope_id"].as_str().unwrap();
    assert_eq!(explained(&product, &[envelope])["relay"], told["relay"]);
    let text = product.cli(&["explain", "note-4127"]).unwrap().done().stdout;
    assert!(text.starts_with("queued at the relay"), "{text}");
    assert!(text.contains("POST /progress/") && text.contains("goes on by itself"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(write(&address, "hidden", r#"{"password":"hunter2"}"#), "422");
    let refused = explained(&product, &["hidden"]);
    assert_eq!((&refused["verdict"], &refused["code"]), (&"refused".into(), &"secret_in_payload".into()));
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    let token = product.cli(&["--quiet", "agent", "add", "ci"]).unwrap().done().stdout;
    let told = as_agent(&product, token.trim(), "note-4127");
    assert_eq!((&told["verdict"], &told["unasked"][0]), (&"never_seen".into(), &"relay: forbidden".into()));
    let never = product.cli(&["explain", "never"]).unwrap();
    assert_eq!(never.code(), Some(1));
    assert!(never.stdout.starts_with("never seen: no outbox, inbox, broker or relay record"), "{never:?}");
}

#[test]
fn a_relay_that_does_not_run_is_named_and_one_without_a_daemon_is_asked_alone() {
    let home = home();
    let address = format!("127.0.0.1:{}", testkit::port::free().unwrap());
    let args = ["relay", "serve", "--json", "--listen", &address, "--upstream", "http://127.0.0.1:1"];
    let mut relay = home.spawn(&args, &[]).unwrap();
    relay.line(testkit::process::Channel::Stdout, "its ready line", BOUND, |_| true).unwrap();
    assert_eq!(write(&address, "alone", r#"{"n":1}"#), "202");
    let told = home.cli(&["--json", "explain", "alone"]).unwrap().done().json()[0].clone();
    assert_eq!(
        (&told["verdict"], &told["unasked"][0]),
        (&"queued".into(), &"this host: daemon_not_running".into())
    );
    let never = home.cli(&["explain", "never"]).unwrap();
    assert_eq!(never.code(), Some(3));
    assert!(never.stderr.contains("it holds no record of this id"), "{never:?}");
    relay.kill9();
    let product = up(&home);
    let told = product.cli(&["--json", "explain", "alone"]).unwrap().json()[0].clone();
    assert_eq!(
        (&told["verdict"], &told["unasked"][0]),
        (&"never_seen".into(), &"relay: relay_not_running".into())
    );
    assert!(told["next"].as_str().unwrap().starts_with("Unless relay"), "{told}");
}
