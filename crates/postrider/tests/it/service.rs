//! Units for systemd: accepted by its own checker, obeyed by a supervisor that reads them, and never written over a file
//! of somebody else.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use testkit::bin::{Home, Output};
use testkit::process::{Channel, Process};

use super::home;
use super::stopped_store::{SYNCS_BEFORE, until_refused, write_through};

const BOUND: Duration = Duration::from_secs(60);
const ROLES: [&str; 4] = ["up", "daemon", "broker", "relay"];

/// What systemd would read of a unit.
struct Supervisor {
    words: Vec<String>,
    restarts_on_failure: bool,
    prevented: Vec<i32>,
}

/// What it does after an end.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Start,
    Stay,
}

impl Supervisor {
    fn of(unit: &str) -> Self {
        let value = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        let prevented = value("RestartPreventExitStatus=").split(' ').filter_map(|code| code.parse().ok());
        Self {
            words: words(value("ExecStart=")),
            restarts_on_failure: value("Restart=") == "on-failure",
            prevented: prevented.collect(),
        }
    }

    /// As systemd.service(5) says of `on-failure`: an unclean exit code or a signal that is not one of a usual end.
    fn after(&self, end: ExitStatus) -> Next {
        let prevented = end.code().is_some_and(|code| self.prevented.contains(&code));
        if self.restarts_on_failure && !end.success() && !prevented { Next::Start } else { Next::Stay }
    }

    fn arguments(&self) -> Vec<&str> {
        assert_eq!(self.words[0], env!("CARGO_BIN_EXE_postrider"));
        self.words[1..].iter().map(String::as_str).collect()
    }

    fn start(&self, home: &Home) -> Process {
        home.spawn(&self.arguments(), &[]).unwrap()
    }
}

/// A command line as systemd splits it, for the quoting that units of ours use.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), line.chars());
    while rest.any(|c| c == '"') {
        let mut word = String::new();
        while let Some(c) = rest.next().filter(|c| *c != '"') {
            word.push(if c == '\\' { rest.next().unwrap() } else { c });
        }
        words.push(word.replace("%%", "%").replace("$$", "$"));
    }
    words
}

fn printed(home: &Home, role: &str, more: &[&str]) -> String {
    let output = home.cli(&[&["service", "install", role, "--print"], more].concat()).unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.stderr);
    output.stdout
}

fn until_ready(process: &Process) {
    process
        .line(Channel::Stdout, "its ready line", BOUND, |line| {
            line.starts_with("runs") || line.starts_with("broker")
        })
        .unwrap();
}

#[test]
fn systemd_accepts_every_unit_without_a_word() {
    let home = home();
    fs::create_dir_all(home.path()).unwrap();
    let folder = home.path().parent().unwrap().join("units");
    fs::create_dir_all(&folder).unwrap();
    for role in ROLES {
        for scope in [&["--user"][..], &["--system"]] {
            let more: &[&str] = if scope == ["--system"] { &["--system"] } else { &[] };
            let file = folder.join(format!("postrider-{role}.service"));
            fs::write(&file, printed(&home, role, more)).unwrap();
            let mut check = Command::new("systemd-analyze");
            check.args(scope).args(["verify", "--man=no"]).arg(&file).env("XDG_RUNTIME_DIR", &folder);
            let told = check.output().unwrap();
            let words = String::from_utf8_lossy(&told.stderr);
            // Units of the machine itself are none of ours.
            let ours: Vec<&str> = words.lines().filter(|line| line.contains("postrider")).collect();
            assert!(told.status.success() && ours.is_empty(), "{role} {scope:?}: {words}");
        }
    }
}

#[test]
fn systemd_names_what_is_wrong_with_a_unit_that_is() {
    let home = home();
    let file = home.path().parent().unwrap().join("postrider-wrong.service");
    fs::write(&file, printed(&home, "up", &[]).replace("Restart=on-failure", "Restart=sometimes")).unwrap();
    let told = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output().unwrap();
    assert!(String::from_utf8_lossy(&told.stderr).contains("sometimes"), "{told:?}");
}

#[test]
fn a_supervisor_starts_a_killed_role_anew_and_leaves_one_that_ended_well() {
    let home = home();
    let unit = Supervisor::of(&printed(&home, "up", &["--", "--listen", "127.0.0.1:0"]));
    let mut process = unit.start(&home);
    until_ready(&process);
    assert_eq!(unit.after(process.kill9()), Next::Start);
    let mut process = unit.start(&home);
    until_ready(&process);
    process.terminate();
    assert_eq!(unit.after(process.wait_exit(BOUND).unwrap()), Next::Stay);
}

#[test]
fn a_supervisor_starts_a_role_anew_whose_store_stopped() {
    let home = home();
    let more = ["--", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9"];
    let unit = Supervisor::of(&printed(&home, "relay", &more));
    let outbox = home.path().join("relay/outbox.db-wal");
    let mut process = home.spawn_whose_syncs_fail(&outbox, SYNCS_BEFORE, &unit.arguments()).unwrap();
    let url = relay_url(&process);
    until_refused(|id| write_through(&url, id));
    let end = process.wait_exit(BOUND).unwrap();
    assert_eq!((end.code(), unit.after(end)), (Some(5), Next::Start), "{}", process.text(Channel::Stderr));
    let process = unit.start(&home);
    assert_eq!(write_through(&relay_url(&process), "after").unwrap().0, 202, "the new process stores again");
}

fn relay_url(process: &Process) -> String {
    let line = process.line(Channel::Stdout, "its address", BOUND, |line| line.starts_with("relay")).unwrap();
    line.trim_start_matches("relay").trim().to_owned()
}

#[test]
fn a_supervisor_does_not_repeat_wrong_usage() {
    let home = home();
    let unit = Supervisor::of(&printed(&home, "broker", &["--", "--listen", "0.0.0.0:0"]));
    let mut process = unit.start(&home);
    let end = process.wait_exit(BOUND).unwrap();
    assert_eq!((end.code(), unit.after(end)), (Some(2), Next::Stay));
}

/// A `systemctl` that takes everything and writes down what it was asked.
struct FakeSystemd {
    folder: PathBuf,
}

impl FakeSystemd {
    fn beside(home: &Home) -> Self {
        let folder = home.path().parent().unwrap().join("bin");
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("systemctl");
        fs::write(&program, format!("#!/bin/sh\necho \"$@\" >> '{}/asked'\n", folder.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn run(&self, home: &Home, args: &[&str]) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.folder.display());
        home.cli_with(args, &[("PATH", &path)], "").unwrap()
    }

    /// What it was asked since the last look, but for whether it is there.
    fn asked(&self) -> Vec<String> {
        let file = self.folder.join("asked");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(file);
        text.lines().filter(|line| !line.contains("Version")).map(str::to_owned).collect()
    }
}

fn unit_file(home: &Home) -> PathBuf {
    home.path().parent().unwrap().join(".config/systemd/user/postrider-up.service")
}

#[test]
fn a_unit_is_installed_once_updated_when_it_changes_and_removed() {
    let home = home();
    let systemd = FakeSystemd::beside(&home);
    let install = ["--json", "service", "install"];
    let first = systemd.run(&home, &install);
    assert_eq!((first.code(), event(&first)), (Some(0), "installed".to_owned()), "{}", first.stderr);
    let unit = "postrider-up.service";
    let enable = format!("--user enable {unit}");
    assert_eq!(
        systemd.asked(),
        ["--user daemon-reload".to_owned(), enable.clone(), format!("--user start {unit}")]
    );
    let text = fs::read_to_string(unit_file(&home)).unwrap();
    assert_eq!(text, printed(&home, "up", &[]));
    assert_eq!(event(&systemd.run(&home, &install)), "unchanged");
    assert_eq!(systemd.asked(), [enable, format!("--user start {unit}")]);
    let other = [&install[..], &["--", "--listen", "127.0.0.1:7441"]].concat();
    assert_eq!(event(&systemd.run(&home, &other)), "updated");
    assert!(systemd.asked().contains(&format!("--user restart {unit}")));
    assert_eq!(event(&systemd.run(&home, &["--json", "service", "uninstall"])), "removed");
    assert_eq!(systemd.asked(), [format!("--user disable --now {unit}"), "--user daemon-reload".to_owned()]);
    assert!(!unit_file(&home).exists());
    let again = systemd.run(&home, &["--json", "service", "uninstall"]);
    assert_eq!((again.code(), event(&again)), (Some(0), "absent".to_owned()));
    assert_eq!(systemd.asked(), Vec::<String>::new());
}

fn event(output: &Output) -> String {
    let value: serde_json::Value = serde_json::from_str(output.stdout.trim()).unwrap();
    value["event"].as_str().unwrap().to_owned()
}

#[test]
fn a_unit_of_somebody_else_or_of_another_home_is_never_touched() {
    let home = home();
    let systemd = FakeSystemd::beside(&home);
    fs::create_dir_all(unit_file(&home).parent().unwrap()).unwrap();
    let elsewhere = printed(&home, "up", &["--home", "/srv/other"]);
    for (text, commands) in
        [("[Service]\nExecStart=/bin/mine\n", &["install", "uninstall"][..]), (&elsewhere, &["install"])]
    {
        fs::write(unit_file(&home), text).unwrap();
        for command in commands {
            let refused = systemd.run(&home, &["service", command]);
            assert_eq!(refused.code(), Some(1), "{command}: {}", refused.stderr);
            assert!(refused.stderr.contains("It was not touched."), "{}", refused.stderr);
            assert_eq!(fs::read_to_string(unit_file(&home)).unwrap(), text);
            assert_eq!(systemd.asked(), Vec::<String>::new());
        }
    }
}

#[test]
fn without_systemd_nothing_is_written_and_the_unit_can_be_printed() {
    let home = home();
    let nowhere = home.path().parent().unwrap().join("empty");
    fs::create_dir_all(&nowhere).unwrap();
    let env = [("PATH", nowhere.to_str().unwrap())];
    let refused = home.cli_with(&["service", "install", "broker"], &env, "").unwrap();
    assert_eq!(refused.code(), Some(1), "{}", refused.stdout);
    assert!(
        refused.stderr.contains("no systemd") && refused.stderr.contains("--print"),
        "{}",
        refused.stderr
    );
    assert!(!unit_file(&home).parent().unwrap().exists() && !home.path().exists());
    let printed = home.cli_with(&["service", "install", "broker", "--print"], &env, "").unwrap();
    assert!(printed.stdout.contains("ExecStart="), "{}", printed.stdout);
}

#[test]
fn a_password_never_gets_into_a_unit() {
    let home = home();
    let store = ["service", "install", "broker", "--print", "--", "--store", "postgres://u:secret@db/mesh"];
    let refused = home.cli(&store).unwrap();
    assert_eq!(refused.code(), Some(2));
    assert!(
        !refused.stderr.contains("secret") && refused.stderr.contains("--env-file"),
        "{}",
        refused.stderr
    );
    let by_file = printed(&home, "broker", &["--env-file", "/etc/postrider.env"]);
    assert!(by_file.contains("\nEnvironmentFile=/etc/postrider.env\n"), "{by_file}");
}

/// The calls of one of systemd's sets, with the sets in it.
fn calls_in(set: &str) -> BTreeSet<String> {
    let output = Command::new("systemd-analyze").args(["syscall-filter", set]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let members =
        text.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    members
        .flat_map(
            |member| if member.starts_with('@') { calls_in(member) } else { [member.to_owned()].into() },
        )
        .collect()
}

/// The limits themselves need a running systemd. What they forbid can be looked for without one.
#[test]
fn a_role_makes_no_call_that_its_unit_forbids() {
    let home = home();
    let unit_text = printed(&home, "up", &["--", "--listen", "127.0.0.1:0"]);
    let unit = Supervisor::of(&unit_text);
    let trace = home.path().parent().unwrap().join("trace");
    let mut process = home.spawn_traced(&trace, &unit.arguments()).unwrap();
    until_ready(&process);
    for command in
        [&["send", "me", "hi", "--wait", "delivered"][..], &["topic", "create", "news"], &["doctor"]]
    {
        home.cli(command).unwrap();
    }
    process.terminate();
    assert!(process.wait_exit(BOUND).unwrap().success(), "{}", process.text(Channel::Stderr));
    let trace = fs::read_to_string(trace).unwrap();
    let lines: Vec<&str> =
        trace.lines().filter_map(|line| line.split_once(' ').map(|(_, call)| call.trim())).collect();
    let named = lines.iter().filter_map(|line| line.split_once('(').map(|(name, _)| name));
    let made: BTreeSet<&str> =
        named.filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')).collect();
    assert!(made.contains("fdatasync") && made.contains("accept4"), "the trace is one of a server: {made:?}");
    let allowed = calls_in("@system-service");
    let forbidden: Vec<_> = made.iter().filter(|name| !allowed.contains(**name)).collect();
    assert!(forbidden.is_empty(), "SystemCallFilter forbids {forbidden:?}");
    let with = |call: &str, what: &str| {
        lines.iter().filter(|line| line.starts_with(call) && line.contains(what)).count()
    };
    assert_eq!(with("mmap(", "PROT_WRITE|PROT_EXEC") + with("mprotect(", "PROT_WRITE|PROT_EXEC"), 0);
    let families = lines.iter().filter_map(|line| line.strip_prefix("socket(")?.split(',').next());
    let families: BTreeSet<&str> = families.collect();
    let open = unit_text.lines().find_map(|line| line.strip_prefix("RestrictAddressFamilies=")).unwrap();
    assert!(families.iter().all(|family| open.split(' ').any(|open| open == *family)), "{families:?}");
}
