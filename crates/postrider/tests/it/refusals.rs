//! What the command line says when it cannot do what was asked.

use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::bin::{Binary, Options, Product};

use super::{home, up};

#[test]
fn a_missing_daemon_is_named_with_the_command_that_starts_it() {
    let home = home();
    for args in
        [vec!["send", "@me", "hi"], vec!["inbox"], vec!["status"], vec!["down"], vec!["topic", "list"]]
    {
        let text = home.cli(&args).unwrap();
        assert_eq!(text.code(), Some(3), "{args:?}: {text:?}");
        assert!(text.stdout.is_empty() && text.stderr.contains("fix       postrider up"), "{text:?}");
        let json = home.cli(&[&["--json"], args.as_slice()].concat()).unwrap();
        let refusal: Value = serde_json::from_str(&json.stderr).unwrap();
        assert_eq!(refusal["error"], "daemon_not_running");
        assert_eq!(refusal["fix"][0], "postrider up");
    }
}

#[test]
fn wrong_usage_ends_with_two() {
    let home = home();
    for args in [
        vec!["send"],
        vec!["send", "@me"],
        vec!["bogus"],
        vec!["send", "@me", "x", "--wait", "sent"],
        vec!["topic", "history"],
        vec!["send", "@me", "x", "--meta", "{"],
    ] {
        let ended = home.cli(&args).unwrap();
        assert_eq!(ended.code(), Some(2), "{args:?}: {ended:?}");
    }
}

#[test]
fn malformed_requests_are_refused_with_their_code_and_store_nothing() {
    let home = home();
    let product = up(&home);
    let long = "x".repeat(65_537);
    for (args, code) in [
        (vec!["send", "No Such", "x"], "invalid_request"),
        (vec!["send", "@me", "x", "--id", "a b"], "invalid_request"),
        (vec!["send", "@me", "x", "--priority", "soon"], "invalid_request"),
        (vec!["send", "@me", "x", "--meta", r#"{"a":1,"a":2}"#], "invalid_request"),
        (vec!["send", "@me", long.as_str()], "too_large"),
        (vec!["send", "@me", "x", "--as", "stranger"], "not_at_home"),
    ] {
        let json = product.cli(&[&["--json"], args.as_slice()].concat()).unwrap();
        assert_eq!(json.code(), Some(1), "{json:?}");
        let refusal: Value = serde_json::from_str(&json.stderr).unwrap();
        assert_eq!(refusal["error"], code, "{refusal}");
    }
    let rows = product.cli(&["--json", "daemon", "outbox", "list", "--status", "pending"]).unwrap().done();
    assert!(rows.stdout.is_empty(), "{}", rows.stdout);
}

#[test]
fn an_unknown_name_is_kept_and_tried_and_can_be_aborted() {
    let home = home();
    let product = up(&home);
    product.cli(&["send", "reviwer", "x", "--id", "typo"]).unwrap().done();
    let waited = product.cli(&["send", "reviwer", "y", "--wait", "accepted", "--timeout", "1"]).unwrap();
    assert_eq!(waited.code(), Some(4), "{waited:?}");
    let rows =
        product.cli(&["--json", "daemon", "outbox", "list", "--status", "pending"]).unwrap().done().json();
    assert_eq!(rows.len(), 2);
    assert!(rows[0]["last_error"].as_str().unwrap().contains("member_not_found"), "{}", rows[0]);
    let id = rows[0]["id"].as_str().unwrap();
    product.cli(&["daemon", "outbox", "abort", id]).unwrap().done();
    let inspected = product.cli(&["--json", "daemon", "outbox", "inspect", id]).unwrap().done().json();
    assert_eq!(inspected[0]["status"], "aborted");
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let home = home();
    let product = up(&home);
    for args in [vec!["status"], vec!["--help"], vec!["inbox"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_postrider"))
            .args(&args)
            .env("POSTRIDER_HOME", home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!said.contains("panicked"), "{args:?}: {said}");
    }
    drop(product);
}

#[test]
fn the_shipped_binary_ignores_faults() {
    let home = testkit::bin::Home::new(Binary::shipped().unwrap()).unwrap();
    let faults = vec!["crash:mailbox.accept.before_commit".to_owned()];
    let product = Product::up(&home, &Options { faults, ..Options::default() }).unwrap();
    product.cli(&["send", "@me", "hi", "--wait", "delivered"]).unwrap().done();
}
