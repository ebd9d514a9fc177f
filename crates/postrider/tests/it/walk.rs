//! One message from hand to inbox, and through a restart.

use std::time::Duration;

use serde_json::Value;
use testkit::bin::Home;
use testkit::wait_for;

use super::{home, up, up_with};

const BOUND: Duration = Duration::from_secs(30);

fn bodies(home: &Home, args: &[&str]) -> Vec<String> {
    let rows = home.cli(args).unwrap().done().json();
    rows.iter().map(|row| row["body"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_message_to_me_climbs_to_my_inbox() {
    let home = home();
    let product = up(&home);
    let rungs = product.cli(&["--json", "send", "@me", "hi", "--wait", "delivered"]).unwrap().done().json();
    let words: Vec<&str> = rungs.iter().map(|rung| rung["receipt"]["rung"].as_str().unwrap()).collect();
    assert_eq!(words, ["queued", "accepted", "delivered"]);
    assert!(rungs.iter().all(|rung| rung["client_message_id"] == rungs[0]["client_message_id"]));
    let inbox = product.cli(&["--json", "inbox"]).unwrap().done().json();
    assert_eq!(inbox.len(), 1);
    for field in ["id", "client_message_id", "conversation", "sender", "body", "created_at", "cursor"] {
        assert!(!inbox[0][field].is_null(), "{field} is missing: {}", inbox[0]);
    }
    assert_eq!(inbox[0]["client_message_id"], rungs[0]["client_message_id"]);
}

#[test]
fn a_message_to_a_topic_stands_in_its_log_once() {
    let home = home();
    let product = up(&home);
    product.cli(&["send", "#general", "hi", "--wait", "accepted"]).unwrap().done();
    product.cli(&["send", "topic:general", "again", "--wait", "accepted"]).unwrap().done();
    assert_eq!(bodies(&home, &["--json", "topic", "history", "general"]), ["hi", "again"]);
    assert_eq!(bodies(&home, &["--json", "topic", "history", "general", "--all"]), ["hi", "again"]);
    assert_eq!(bodies(&home, &["--json", "topic", "history", "general", "--limit", "1"]), ["again"]);
}

#[test]
fn a_topic_of_many_pages_is_printed_whole_and_in_order() {
    let home = home();
    let product = up(&home);
    for n in 0..5 {
        product.cli(&["send", "#general", &n.to_string()]).unwrap().done();
    }
    wait_for("five messages in the log", BOUND, || {
        (bodies(&home, &["--json", "topic", "history", "general", "--all"]) == ["0", "1", "2", "3", "4"])
            .then_some(())
    })
    .unwrap();
}

#[test]
fn status_and_down_speak_of_this_home() {
    let home = home();
    let product = up(&home);
    let health = &product.cli(&["--json", "status"]).unwrap().done().json()[0];
    assert_eq!(health["meshes"][0]["link"], "live");
    assert_eq!(health["meshes"][0]["mesh"], "home");
    let text = product.cli(&["status"]).unwrap().done().stdout;
    assert!(text.starts_with("live      home, "), "{text}");
    product.cli(&["down"]).unwrap().done();
    let ended = product.wait_exit(BOUND).unwrap();
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{}", ended.stderr);
}

#[test]
fn what_was_queued_before_a_crash_goes_on_at_the_next_start() {
    let home = home();
    // The row is durable on this host, and the process dies before the broker has it.
    let product = up_with(&home, "crash:ledger.accept.before_commit");
    let sent = product.cli(&["--json", "send", "@me", "late", "--id", "one"]).unwrap().done().json();
    assert_eq!(sent[0]["status"], "queued");
    assert_eq!(product.wait_exit(BOUND).unwrap().signal(), Some(6));
    let product = up(&home);
    wait_for("the message in the inbox", BOUND, || {
        (bodies(&home, &["--json", "inbox"]) == ["late"]).then_some(())
    })
    .unwrap();
    let again = product.cli(&["--json", "send", "@me", "late", "--id", "one"]).unwrap().done().json();
    assert_eq!(again[0]["duplicate"], true);
    assert_eq!(bodies(&home, &["--json", "inbox"]), ["late"]);
}

#[test]
fn an_interrupt_ends_answers_in_flight_and_exits_zero() {
    let home = home();
    let product = up(&home);
    product.cli(&["send", "@me", "hi"]).unwrap().done();
    let ended = product.interrupt().unwrap();
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let product = up(&home);
    wait_for("the message in the inbox", BOUND, || {
        (bodies(&home, &["--json", "inbox"]) == ["hi"]).then_some(())
    })
    .unwrap();
    drop(product);
}

#[test]
fn a_repeated_id_is_answered_from_the_first_and_other_words_are_refused() {
    let home = home();
    let product = up(&home);
    product.cli(&["send", "@me", "hi", "--id", "x", "--wait", "delivered"]).unwrap().done();
    let again = product.cli(&["--json", "send", "@me", "hi", "--id", "x"]).unwrap().done().json();
    assert_eq!(again[0]["duplicate"], true);
    let other = product.cli(&["--json", "send", "@me", "bye", "--id", "x"]).unwrap();
    assert_eq!(other.code(), Some(1));
    let refusal: Value = serde_json::from_str(&other.stderr).unwrap();
    assert_eq!(refusal["error"], "idempotency_key_reused");
    assert_eq!(refusal["conflict"], "outbox_done_fingerprint_mismatch");
    assert_eq!(refusal["daemon_fingerprint_prefix"].as_str().unwrap().len(), 16);
    assert_eq!(bodies(&home, &["--json", "inbox"]), ["hi"]);
}

#[test]
fn two_members_of_one_home_may_use_one_id_for_one_text() {
    let home = home();
    let product = up(&home);
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    product.cli(&["send", "#general", "same", "--id", "x", "--wait", "accepted"]).unwrap().done();
    product
        .cli(&["send", "#general", "same", "--id", "x", "--as", "ci", "--wait", "accepted"])
        .unwrap()
        .done();
    assert_eq!(bodies(&home, &["--json", "topic", "history", "general"]), ["same", "same"]);
}

#[test]
fn an_agents_mail_is_its_own_and_a_reply_goes_back_to_the_sender() {
    let home = home();
    let product = up(&home);
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    product.cli(&["send", "ci", "rerun", "--id", "ask-1", "--wait", "delivered"]).unwrap().done();
    assert_eq!(bodies(&home, &["--json", "inbox"]), Vec::<String>::new());
    assert_eq!(bodies(&home, &["--json", "inbox", "--as", "ci"]), ["rerun"]);
    product.cli(&["reply", "ask-1", "done", "--as", "ci"]).unwrap().done();
    wait_for("the reply in the person's inbox", BOUND, || {
        (bodies(&home, &["--json", "inbox"]) == ["done"]).then_some(())
    })
    .unwrap();
}

#[test]
fn a_second_home_joins_by_invite_and_both_hear_each_other() {
    let (first, second) = (home(), home());
    let broker = up(&first);
    let other = up(&second);
    let invite = broker.cli(&["--quiet", "invite", "lab"]).unwrap().done().stdout;
    let join = ["join", invite.trim(), "--node", "lab", "--person", "tom", "--mesh-as", "far"];
    other.cli(&join).unwrap().done();
    let refused = other.cli(&["join", invite.trim(), "--node", "lab2", "--mesh-as", "far2"]).unwrap();
    assert_eq!(refused.code(), Some(1), "one invite, one join: {refused:?}");
    assert!(refused.stderr.contains("token_already_used"), "{}", refused.stderr);
    broker.cli(&["send", "tom", "hello lab", "--wait", "delivered"]).unwrap().done();
    assert_eq!(bodies(&second, &["--json", "--mesh", "far", "inbox"]), ["hello lab"]);
    assert_eq!(bodies(&second, &["--json", "--mesh", "home", "inbox"]), Vec::<String>::new());
}

#[test]
fn a_recipient_who_is_away_is_no_error_and_has_its_mail_when_it_is_back() {
    let (first, second) = (home(), home());
    let broker = up(&first);
    let other = up(&second);
    let invite = broker.cli(&["--quiet", "invite", "lab"]).unwrap().done().stdout;
    other
        .cli(&["join", invite.trim(), "--node", "lab", "--person", "tom", "--mesh-as", "far"])
        .unwrap()
        .done();
    other.kill9();
    broker.cli(&["send", "tom", "while you were out", "--wait", "accepted"]).unwrap().done();
    let waited = broker.cli(&["send", "tom", "again", "--wait", "delivered", "--timeout", "1"]).unwrap();
    assert_eq!(waited.code(), Some(4), "{waited:?}");
    let _back = up(&second);
    wait_for("the mail of a node that was away", BOUND, || {
        let mail = bodies(&second, &["--json", "--mesh", "far", "inbox"]);
        (mail == ["while you were out", "again"]).then_some(())
    })
    .unwrap();
}

#[test]
fn a_token_file_makes_every_command_its_agents() {
    let home = home();
    let product = up(&home);
    let token = product.cli(&["--json", "agent", "add", "ci"]).unwrap().done().json()[0]["token"].clone();
    let file = home.path().join("ci.token");
    std::fs::write(&file, token.as_str().unwrap()).unwrap();
    let env = [("POSTRIDER_AGENT_TOKEN_FILE", file.to_str().unwrap())];
    home.cli_with(&["send", "#general", "by ci", "--wait", "accepted"], &env, "").unwrap().done();
    let history = product.cli(&["--json", "topic", "history", "general"]).unwrap().done().json();
    assert_eq!(history[0]["sender"], "ci");
    let refused = home.cli_with(&["--json", "daemon", "rotate-token"], &env, "").unwrap();
    assert!(refused.stderr.contains("forbidden"), "{refused:?}");
    let unreadable = [("POSTRIDER_AGENT_TOKEN_FILE", "/nowhere/at/all")];
    assert_eq!(home.cli_with(&["inbox"], &unreadable, "").unwrap().code(), Some(2));
}

#[test]
fn a_mailbox_that_is_lost_gets_its_mail_back_from_the_broker_once_and_in_order() {
    let home = home();
    let product = up(&home);
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    product.cli(&["topic", "create", "alerts"]).unwrap().done();
    for n in 0..3 {
        product.cli(&["send", "me", &format!("direct {n}"), "--wait", "delivered"]).unwrap().done();
        product
            .cli(&["send", "#alerts", &format!("topic {n}"), "--as", "ci", "--wait", "delivered"])
            .unwrap()
            .done();
    }
    // A clean stop leaves nothing in the log: the file is all there is.
    product.interrupt().unwrap();
    std::fs::write(home.path().join("daemon/home/mailbox.db"), "gone").unwrap();
    home.cli(&["daemon", "recover"]).unwrap().done();
    let product = up(&home);
    wait_for("the mail of before", BOUND, || (bodies(&home, &["--json", "inbox"]).len() == 6).then_some(()))
        .unwrap();
    let all = bodies(&home, &["--json", "inbox"]);
    let of = |word: &str| all.iter().filter(|body| body.starts_with(word)).cloned().collect::<Vec<_>>();
    assert_eq!(of("direct"), ["direct 0", "direct 1", "direct 2"]);
    assert_eq!(of("topic"), ["topic 0", "topic 1", "topic 2"]);
    let rows = product.cli(&["--json", "inbox"]).unwrap().done().json();
    assert!(rows.iter().all(|row| row["redelivered"] == true), "{rows:?}");
    product.cli(&["send", "me", "and on", "--wait", "delivered"]).unwrap().done();
    assert_eq!(bodies(&home, &["--json", "inbox"]).len(), 7);
}
