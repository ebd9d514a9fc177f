//! `postrider agent run`: one message, one turn, one process.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use testkit::bin::{Home, Product};
use testkit::wait_for;

use super::{home, up};

const BOUND: Duration = Duration::from_secs(60);

/// A shell script beside the home.
fn script(home: &Home, name: &str, text: &str) -> PathBuf {
    let path = home.path().with_file_name(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn drain(product: &Product<'_>, more: &[&str], program: &Path) -> Vec<Value> {
    let args =
        [&["--json", "agent", "run", "ci", "--drain"], more, &["--", program.to_str().unwrap()]].concat();
    product.cli(&args).unwrap().done().json()
}

/// A message to the agent, in its inbox.
fn ask(product: &Product<'_>, text: &str, id: &str) {
    product.cli(&["send", "ci", text, "--id", id, "--wait", "delivered"]).unwrap().done();
}

fn rung(product: &Product<'_>, id: &str) -> String {
    let explained = product.cli(&["--json", "explain", id]).unwrap().done().json();
    explained[0]["receipt"]["rung"].as_str().unwrap().to_owned()
}

fn until_rung(product: &Product<'_>, id: &str, expected: &str) {
    wait_for(expected, BOUND, || (rung(product, id) == expected).then_some(())).unwrap();
}

fn bodies(home: &Home) -> Vec<String> {
    let rows = home.cli(&["--json", "inbox"]).unwrap().done().json();
    rows.iter().map(|row| row["body"].as_str().unwrap().to_owned()).collect()
}

fn events(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["event"].as_str().unwrap()).collect()
}

#[test]
fn what_a_program_prints_is_the_reply_and_its_message_is_processed() {
    let home = home();
    let product = up(&home);
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    ask(&product, "rerun", "one");
    ask(&product, "rest", "two");
    let echo = script(
        &home,
        "echo",
        r#"grep -o '"body":"[a-z]*"' | sed "s/$/ $POSTRIDER_AGENT $POSTRIDER_ATTEMPT $POSTRIDER_REDELIVERED/""#,
    );
    let lines = drain(&product, &[], &echo);
    assert_eq!(events(&lines), ["engaged", "processed", "engaged", "processed"]);
    until_rung(&product, "one", "processed");
    wait_for("both replies", BOUND, || (bodies(&home).len() == 2).then_some(())).unwrap();
    assert_eq!(bodies(&home), [r#""body":"rerun" ci 1 0"#, r#""body":"rest" ci 1 0"#]);
}

#[test]
fn a_program_that_fails_takes_too_long_or_does_not_exist_ends_its_turn_and_says_why() {
    let home = home();
    let product = up(&home);
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    let slow = script(&home, "slow", "sleep 300 & sleep 300");
    let wrong = script(&home, "wrong", "echo half an answer; echo no such file >&2; exit 3");
    for (id, program, more, why) in [
        ("wrong", wrong, vec![], "exit 3: no such file"),
        ("slow", slow, vec!["--timeout", "1"], "it took longer than 1 s"),
        ("none", home.path().join("nothing-here"), vec![], "exit 127"),
    ] {
        ask(&product, "x", id);
        let lines = drain(&product, &more, &program);
        assert_eq!(events(&lines), ["engaged", "failed"], "{id}");
        assert!(lines[1]["error"].as_str().unwrap().starts_with(why), "{id}: {}", lines[1]);
        until_rung(&product, id, "processed");
    }
    assert_eq!(bodies(&home), Vec::<String>::new(), "nobody is sent half an answer");
}

#[test]
fn a_program_that_is_killed_is_run_once_more_marked_and_then_waits_for_a_person() {
    let home = home();
    let product = up(&home);
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    ask(&product, "x", "deadly");
    let log = home.path().with_file_name("log");
    let deadly = script(
        &home,
        "deadly",
        &format!(r#"echo "$POSTRIDER_ATTEMPT $POSTRIDER_REDELIVERED" >> {}; kill -9 $$"#, log.display()),
    );
    let lines = drain(&product, &[], &deadly);
    assert_eq!(events(&lines), ["engaged", "interrupted", "engaged", "interrupted"]);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "1 0\n2 1\n");
    assert_eq!(rung(&product, "deadly"), "engaged");
}

#[test]
fn an_adapter_that_is_killed_takes_its_program_with_it_and_the_next_one_runs_the_message_again() {
    let home = home();
    let product = up(&home);
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    ask(&product, "x", "one");
    let log = home.path().with_file_name("log");
    let first = script(&home, "first", &format!("echo $$ >> {}; sleep 300", log.display()));
    let mut adapter = home.spawn(&["agent", "run", "ci", "--", first.to_str().unwrap()], &[]).unwrap();
    let pid = wait_for("the program", BOUND, || {
        std::fs::read_to_string(&log).ok().and_then(|text| text.trim().parse::<u32>().ok())
    })
    .unwrap();
    let second = home.cli(&["--json", "agent", "run", "ci", "--drain", "--", "true"]).unwrap();
    assert_eq!(second.code(), Some(1), "one adapter an agent: {second:?}");
    adapter.kill9();
    let lines = drain(&product, &[], Path::new("true"));
    assert_eq!(events(&lines), ["engaged", "processed"]);
    assert_eq!((&lines[0]["attempt"], &lines[0]["redelivered"]), (&2.into(), &true.into()));
    let alive = Path::new("/proc").join(pid.to_string()).exists();
    assert!(!alive, "the program of the killed adapter is gone before its message is run again");
}

#[test]
fn an_adapter_outlives_its_daemon_and_ends_gracefully() {
    let home = home();
    let product = up(&home);
    let log = home.path().with_file_name("log");
    let answer =
        script(&home, "answer", &format!("echo $POSTRIDER_MESSAGE_ID >> {}; echo done", log.display()));
    let mut adapter = home.spawn(&["agent", "run", "ci", "--", answer.to_str().unwrap()], &[]).unwrap();
    wait_for("the agent", BOUND, || {
        let members = product.cli(&["--quiet", "agent", "list"]).unwrap().stdout;
        members.lines().any(|name| name == "ci").then_some(())
    })
    .unwrap();
    ask(&product, "x", "one");
    wait_for("the first reply", BOUND, || (bodies(&home) == ["done"]).then_some(())).unwrap();
    product.kill9();
    let product = up(&home);
    ask(&product, "y", "two");
    wait_for("the second reply", BOUND, || (bodies(&home) == ["done", "done"]).then_some(())).unwrap();
    adapter.interrupt();
    assert!(adapter.wait_exit(BOUND).unwrap().success());
    assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 2, "each message had one program");
}
