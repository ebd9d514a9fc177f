//! Starts that must be refused: the file and the remedy are named, and nothing is deleted or half-written.

use std::fs;
use std::path::Path;
use std::time::Duration;

use testkit::bin::{Home, Options, Output, Product};

use super::{home, up};

const BOUND: Duration = Duration::from_secs(30);

fn refused(home: &Home) -> Output {
    let ended = home.cli(&["--json", "up", "--listen", "127.0.0.1:0"]).unwrap();
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    ended
}

fn bytes_of(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}

#[test]
fn a_second_process_on_one_home_is_refused_and_changes_nothing() {
    let home = home();
    let product = up(&home);
    let before = (bytes_of(&home.path().join("config.toml")), bytes_of(&home.path().join("daemon/pid")));
    let second = refused(&home);
    assert!(second.stderr.contains("already runs"), "{}", second.stderr);
    let after = (bytes_of(&home.path().join("config.toml")), bytes_of(&home.path().join("daemon/pid")));
    assert_eq!(before, after);
    product.cli(&["send", "@me", "hi", "--wait", "delivered"]).unwrap().done();
}

#[test]
fn books_that_are_no_database_are_left_as_they_are() {
    let home = home();
    let books = home.path().join("broker/ledger.db");
    fs::create_dir_all(books.parent().unwrap()).unwrap();
    fs::write(&books, b"these are not the books you are looking for, but they are somebody's").unwrap();
    let before = bytes_of(&books);
    let ended = refused(&home);
    assert!(ended.stderr.contains("ledger.db"), "{}", ended.stderr);
    assert_eq!(bytes_of(&books), before);
}

#[test]
fn books_of_a_newer_version_are_left_as_they_are() {
    let home = home();
    up(&home).cli(&["down"]).unwrap().done();
    let books = home.path().join("broker/ledger.db");
    testkit::disk::raise_schema_version(&books).unwrap();
    let before = bytes_of(&books);
    let ended = refused(&home);
    assert!(ended.stderr.contains("ledger.db") && ended.stderr.contains("newer"), "{}", ended.stderr);
    assert_eq!(bytes_of(&books), before);
}

#[test]
fn a_mailbox_that_is_no_database_is_set_aside_by_name_and_the_rest_goes_on() {
    let home = home();
    let product = up(&home);
    product.cli(&["down"]).unwrap().done();
    product.wait_exit(BOUND).unwrap();
    let mailbox = home.path().join("daemon/home/mailbox.db");
    fs::write(&mailbox, b"damaged beyond reading, but not to be deleted by anybody but its owner").unwrap();
    let product = up(&home);
    let health = &product.cli(&["--json", "status"]).unwrap().done().json()[0];
    assert!(!health["problems"].as_array().unwrap().is_empty(), "{health}");
    let kept = fs::read_dir(mailbox.parent().unwrap()).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        path.is_file() && bytes_of(&path).starts_with(b"damaged beyond reading")
    });
    assert!(kept, "the damaged file is still there under some name");
}

#[test]
fn a_home_that_cannot_be_written_is_named() {
    let home = home();
    fs::create_dir_all(home.path()).unwrap();
    let path = home.path().join("in-a-file");
    fs::write(&path, b"no folder").unwrap();
    let below = path.join("home");
    let ended =
        home.cli(&["--home", below.to_str().unwrap(), "--json", "up", "--listen", "127.0.0.1:0"]).unwrap();
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("in-a-file"), "{}", ended.stderr);
    assert_eq!(bytes_of(&path), b"no folder");
}

#[test]
fn an_address_open_to_other_machines_is_refused() {
    let home = home();
    let ended = home.cli(&["up", "--listen", "0.0.0.0:0"]).unwrap();
    assert_eq!(ended.code(), Some(2), "{ended:?}");
}

#[test]
fn a_crash_at_the_first_join_is_healed_by_the_next_start() {
    for point in ["ledger.redeem.before_commit", "ledger.redeem.after_commit", "ledger.exchange.after_commit"]
    {
        let home = home();
        let options = Options { faults: vec![format!("crash:{point}")], ..Options::default() };
        let mut process = Product::spawn(&home, &options).unwrap();
        let status = process.wait_exit(BOUND).unwrap();
        assert!(!status.success(), "{point} was reached");
        let product = up(&home);
        product.cli(&["send", "@me", "hi", "--wait", "delivered"]).unwrap().done();
    }
}

#[test]
fn what_was_let_in_and_decided_stands_in_the_audit_stream_without_its_secrets() {
    let home = home();
    let product = up(&home);
    let invite = product.cli(&["--quiet", "invite", "lab"]).unwrap().done().stdout;
    let token = product.cli(&["--quiet", "token", "create", "--as", "cron"]).unwrap().done().stdout;
    let stream = fs::read_to_string(home.path().join("broker/audit.log")).unwrap();
    let records: Vec<serde_json::Value> =
        stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = records.iter().filter_map(|record| record["event"].as_str()).collect();
    assert_eq!(events, ["node_joined", "link_opened", "invite_created", "token_created"], "{stream}");
    assert!(records.iter().all(|record| record["by"].is_string() && record["timestamp"].is_string()));
    assert!(!stream.contains(invite.trim()) && !stream.contains(token.trim()));
}

#[test]
fn a_store_or_limiter_behind_tls_is_refused_with_the_remedy() {
    for (option, address) in
        [("--limiter", "rediss://cache:6379/"), ("--store", "postgres://u@db/mesh?sslmode=require")]
    {
        let ended = home().cli(&["broker", "serve", "--listen", "127.0.0.1:0", option, address]).unwrap();
        assert_ne!(ended.code(), Some(0), "{ended:?}");
        assert!(ended.stderr.contains("without TLS") && ended.stderr.contains("tunnel"), "{}", ended.stderr);
    }
}

#[test]
fn a_private_host_for_webhooks_is_named_at_the_start() {
    let home = home();
    let ended = home.cli(&["up", "--listen", "127.0.0.1:0", "--webhook-allow-host", "no host"]).unwrap();
    assert_eq!(ended.code(), Some(2), "{ended:?}");
}
