//! The demo keeps its word: it ends well, counts right, and leaves nothing.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use testkit::wait_for;

const BOUND: Duration = Duration::from_secs(60);

/// The demo with a place of its own for what is temporary.
fn demo(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(args).arg("demo").env("TMPDIR", folder).env("HOME", folder).env_remove("POSTRIDER_HOME");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A short place, because a socket's path has about a hundred bytes.
fn place() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("pd-").tempdir().unwrap()
}

fn left(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn it_ends_well_with_nothing_lost_or_doubled_and_leaves_nothing() {
    let folder = place();
    let ended = demo(folder.path(), &["--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{said}");
    let count: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&count["asked"], &count["stored"]), (&13.into(), &7.into()), "{count}");
    assert_eq!((&count["lost"], &count["doubled"]), (&0.into(), &0.into()), "{count}");
    assert_eq!(count["redelivered"], 1, "the turn the kill took came back marked: {count}");
    assert_eq!(left(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn in_a_pipe_it_is_plain_text_within_eighty_columns_and_names_every_rung() {
    let folder = place();
    let ended = demo(folder.path(), &[]).env("LC_ALL", "C.UTF-8").output().unwrap();
    let text = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours in a pipe: {text}");
    for word in
        ["queued", "accepted", "delivered", "engaged", "processed", "killed", "refused", "started", "marked"]
    {
        assert!(text.contains(word), "{word} is missing:\n{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with("runs")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

fn kill(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn ctrl_c_in_the_middle_leaves_no_home_and_no_process() {
    let folder = place();
    let child = demo(folder.path(), &[]).spawn().unwrap();
    let home = wait_for("the private home", BOUND, || {
        left(folder.path()).into_iter().find(|path| path.join("daemon/pid").exists())
    })
    .unwrap();
    let pid = std::fs::read_to_string(home.join("daemon/pid")).unwrap();
    kill(&child, "-INT");
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(left(folder.path()), Vec::<PathBuf>::new());
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "its process {pid} still runs");
}
