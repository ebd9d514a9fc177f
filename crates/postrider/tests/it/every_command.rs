//! Every subcommand on a closed pipe, without a daemon, and in a foreign home: none panics, each says what is wrong.
//!
//! The list is read from the binary's own help, so that a command added later is in it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use testkit::bin::{Binary, Home};
use testkit::wait_for;

use super::{home, up};

/// A command that waits for something by nature is ended after this.
const BOUND: Duration = Duration::from_secs(20);

/// Words each command needs to be more than wrong usage.
const ARGUMENTS: &[(&str, &[&str])] = &[
    ("send", &["me", "hi"]),
    ("reply", &["abcdef", "hi"]),
    ("explain", &["never-sent"]),
    ("backup verify", &["/nowhere/at/all"]),
    ("restore", &["/nowhere/at/all"]),
    ("join", &["http://127.0.0.1:1#i=x&k=y"]),
    ("topic history", &["general"]),
    ("topic create", &["general"]),
    ("topic subscribe", &["general"]),
    ("topic unsubscribe", &["general"]),
    ("agent add", &["ci"]),
    ("agent run", &["ci", "--drain", "--", "true"]),
    ("agent retry", &["ci", "abcdef"]),
    ("agent keep", &["--lock", "/dev/null/lock", "--parent", "1", "--", "true"]),
    ("mesh leave", &["other"]),
    ("mesh resume", &["other"]),
    ("token revoke", &["1"]),
    ("webhook add", &["hook", "http://127.0.0.1:1/"]),
    ("webhook remove", &["hook"]),
    ("webhook rotate", &["hook"]),
    ("webhook enable", &["hook"]),
    ("daemon outbox inspect", &["abcdef"]),
    ("daemon outbox requeue", &["--id", "abcdef"]),
    ("daemon outbox abort", &["abcdef"]),
    ("broker serve", &["--listen", "127.0.0.1:0"]),
    ("up", &["--listen", "127.0.0.1:0"]),
    ("relay outbox inspect", &["abcdef"]),
    ("relay outbox retry", &["abcdef"]),
    ("relay outbox cancel", &["abcdef"]),
    ("relay outbox resolve", &["abcdef", "--drop"]),
    ("relay outbox export", &["--output", "/dev/null/export"]),
    ("mcp install", &["--client", "claude-code", "--print"]),
    ("service install", &["up", "--print"]),
];

/// Commands the help does not list, and one that runs by itself although others stand below it.
const UNLISTED: [&[&str]; 2] = [&["agent", "keep"], &["mcp"]];

/// Those that run until somebody ends them; the tests of starts are about them.
fn serves(name: &str) -> bool {
    matches!(name.rsplit(' ').next(), Some("up" | "serve" | "demo"))
}

fn subcommands(path: &[String]) -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_postrider")).args(path).arg("--help").output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    let Some((_, commands)) = text.split_once("\nCommands:\n") else { return Vec::new() };
    let lines = commands.lines().take_while(|line| line.starts_with("  "));
    let names =
        lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).filter(|name| !name.is_empty());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Every command that has none below it, as its words.
fn leaves() -> Vec<Vec<String>> {
    let unlisted = UNLISTED.iter().map(|path| path.iter().map(|word| (*word).to_owned()).collect());
    let (mut open, mut leaves) = (vec![Vec::new()], unlisted.collect::<Vec<Vec<String>>>());
    while let Some(path) = open.pop() {
        let below = subcommands(&path);
        if below.is_empty() {
            leaves.push(path);
            continue;
        }
        open.extend(below.into_iter().map(|name| path.iter().cloned().chain([name]).collect()));
    }
    leaves
}

fn words(path: &[String]) -> Vec<String> {
    let name = path.join(" ");
    let more = ARGUMENTS.iter().find(|(command, _)| *command == name).map_or(&[][..], |(_, more)| more);
    path.iter().cloned().chain(more.iter().map(|word| (*word).to_owned())).collect()
}

/// Runs to its end, or to its bound; a command that serves is ended as a person would.
fn ended(home: &Path, args: &[String], closed: bool) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    let account = home.parent().unwrap_or(home);
    command.args(args).env("POSTRIDER_HOME", home).env("HOME", account);
    command.env("XDG_CONFIG_HOME", account.join(".config"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    if closed {
        drop(child.stdout.take());
    }
    let _ = wait_for("the command's end", BOUND, || child.try_wait().unwrap());
    if child.try_wait().unwrap().is_none() {
        child.kill().unwrap();
    }
    child.wait_with_output().unwrap()
}

fn assert_calm(case: &str, args: &[String], output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{case}: postrider {args:?}: {said}");
    assert_ne!(output.status.code(), Some(101), "{case}: postrider {args:?}: {said}");
}

#[test]
fn the_list_holds_the_commands_there_are() {
    let leaves = leaves();
    let names: BTreeSet<String> = leaves.iter().map(|path| path.join(" ")).collect();
    let parts =
        ["relay outbox resolve", "token create", "mcp install", "mcp", "webhook rotate", "agent retry"];
    for known in
        ["send", "explain", "agent run", "daemon outbox list", "broker check", "up"].iter().chain(&parts)
    {
        assert!(names.contains(*known), "{known}: {names:?}");
    }
    for (name, _) in ARGUMENTS {
        let below = names.iter().any(|known| known == name);
        assert!(below, "{name} is no command any more");
    }
}

#[test]
fn no_command_panics_when_nobody_reads_its_output() {
    let home = home();
    let product = up(&home);
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    for path in leaves() {
        let name = path.join(" ");
        if serves(&name) || name.ends_with("down") || name == "watch" {
            continue;
        }
        for form in [None, Some("--json")] {
            let args: Vec<String> = form.map(str::to_owned).into_iter().chain(words(&path)).collect();
            assert_calm("closed pipe", &args, &ended(&home.path(), &args, true));
        }
    }
    let closed = ended(&home.path(), &["daemon".to_owned(), "down".to_owned()], true);
    assert_calm("closed pipe", &["daemon down".to_owned()], &closed);
}

#[test]
fn what_serves_does_not_panic_when_nobody_reads_its_output() {
    let relay = ["relay", "serve", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1"];
    for (args, sign) in [(&["up", "--listen", "127.0.0.1:0"][..], "daemon/sock"), (&relay, "relay/sock")] {
        let home = home();
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(args).env("POSTRIDER_HOME", home.path()).env("HOME", home.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let sign = home.path().join(sign);
        wait_for("its socket", BOUND, || sign.exists().then_some(())).unwrap();
        Command::new("kill").arg(child.id().to_string()).status().unwrap();
        wait_for("its end", BOUND, || child.try_wait().unwrap()).unwrap();
        let args: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
        assert_calm("closed pipe", &args, &child.wait_with_output().unwrap());
    }
}

#[test]
fn no_command_panics_without_a_daemon() {
    for path in leaves() {
        let name = path.join(" ");
        // An adapter waits for its daemon; the tests of agents are about that.
        if serves(&name) || name == "agent run" {
            continue;
        }
        let home = Home::new(Binary::at(env!("CARGO_BIN_EXE_postrider"))).unwrap();
        let args = words(&path);
        let output = ended(&home.path(), &args, false);
        assert_calm("no daemon", &args, &output);
        assert!(output.status.code().is_some(), "{args:?} did not end: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("Usage:"), "{args:?} needs words in ARGUMENTS: {said}");
    }
}

#[test]
fn no_command_panics_in_a_home_that_is_no_home() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, b"no folder").unwrap();
    let locked = folder.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o500)).unwrap();
    for path in leaves() {
        let name = path.join(" ");
        if name == "demo" {
            continue;
        }
        for home in [file.join("below"), locked.join("below")] {
            // Whoever may write everywhere makes a home there, and serves it.
            if serves(&name) && (home.starts_with(&locked) || name == "relay serve") {
                continue;
            }
            let args = words(&path);
            let output = ended(&home, &args, false);
            assert_calm("foreign home", &args, &output);
        }
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"no folder");
}
