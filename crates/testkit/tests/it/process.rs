use std::path::Path;
use std::process::Command;
use std::time::Duration;
use testkit::process::{Channel, LineNeverCame, Orphaned, Process};
use testkit::wait_for;

const BOUND: Duration = Duration::from_secs(30);

fn shell(script: &str) -> Process {
    shell_with(script, b"", &Orphaned::EndsByItself)
}

fn shell_with(script: &str, input: &[u8], orphaned: &Orphaned) -> Process {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    Process::spawn(command, input, orphaned).unwrap()
}

fn lives(id: u32) -> bool {
    // A zombie has ended; only its parent's wait is missing.
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[test]
fn both_streams_are_kept_apart_and_whole() {
    let mut process = shell("echo out; echo err >&2; printf last");
    assert!(process.wait_exit(BOUND).unwrap().success());
    assert_eq!(process.text(Channel::Stdout), "out\nlast\n");
    assert_eq!(process.text(Channel::Stderr), "err\n");
}

#[test]
fn input_reaches_the_child_and_ends() {
    let mut process = shell_with("cat", b"one\ntwo\n", &Orphaned::EndsByItself);
    process.wait_exit(BOUND).unwrap();
    assert_eq!(process.text(Channel::Stdout), "one\ntwo\n");
}

#[test]
fn a_line_is_found_whether_it_came_before_or_comes_after_the_question() {
    let process = shell("echo first; echo second; exec cat /dev/zero >/dev/null");
    for wanted in ["second", "first"] {
        let line = process.line(Channel::Stdout, wanted, BOUND, |line| line == wanted);
        assert_eq!(line.unwrap(), wanted);
    }
}

#[test]
fn a_child_that_ends_without_the_line_is_reported_at_once_with_what_it_said() {
    let process = shell("echo sorry >&2; exit 1");
    let error = process.line(Channel::Stdout, "never", Duration::from_secs(600), |_| true).unwrap_err();
    match error {
        LineNeverCame::Ended { printed, .. } => assert_eq!(printed, "sorry\n"),
        LineNeverCame::TooLong { .. } => panic!("it waited for a process that had ended"),
    }
}

#[test]
fn a_dropped_handle_leaves_no_process_of_its_group() {
    let process = shell("sleep 1000 & echo $!; wait");
    let line = process.line(Channel::Stdout, "the id of the inner process", BOUND, |_| true).unwrap();
    let (outer, inner) = (process.id(), line.parse().unwrap());
    assert!(lives(outer) && lives(inner));
    drop(process);
    assert!(!lives(outer));
    wait_for("the inner process to end", BOUND, || (!lives(inner)).then_some(())).unwrap();
}

#[test]
fn kill9_returns_when_the_process_is_gone_and_may_be_said_twice() {
    let mut process = shell("trap '' INT TERM QUIT; echo ready; while :; do sleep 1; done");
    process.line(Channel::Stdout, "ready", BOUND, |line| line == "ready").unwrap();
    process.terminate();
    let status = process.kill9();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    assert!(!lives(process.id()));
    assert_eq!(process.kill9(), status);
}

/// The owner is a copy of this test binary that starts a child and waits to be killed.
#[test]
fn a_child_whose_owner_was_killed_is_reaped_with_its_folder() {
    if std::env::var_os("TESTKIT_OWNER").is_some() {
        return own_until_killed();
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "process::a_child_whose_owner_was_killed_is_reaped_with_its_folder", "--nocapture"])
        .env("TESTKIT_OWNER", folder.path());
    let mut owner = Process::spawn(command, b"", &Orphaned::EndsByItself).unwrap();
    let line = owner.line(Channel::Stdout, "the child's id", BOUND, |line| line.contains("child=")).unwrap();
    let child: u32 = line.split("child=").nth(1).unwrap().trim().parse().unwrap();
    assert!(lives(child));
    owner.kill9();
    wait_for("the child to be reaped", BOUND, || (!lives(child)).then_some(())).unwrap();
    wait_for("its folder to be removed", BOUND, || (!folder.path().exists()).then_some(())).unwrap();
}

fn own_until_killed() {
    let folder = std::env::var_os("TESTKIT_OWNER").unwrap();
    let orphaned = Orphaned::Reaped { folder: Path::new(&folder).to_owned() };
    let mut child = shell_with("exec sleep 1000", b"", &orphaned);
    println!("child={}", child.id());
    let _killed_first = child.wait_exit(BOUND);
}
