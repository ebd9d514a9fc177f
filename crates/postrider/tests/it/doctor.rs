//! `doctor` on real homes with planted faults.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use testkit::bin::{Home, Output};

use super::{home, up, up_on_loopback};

fn looked(home: &Home) -> Output {
    home.cli(&["--json", "doctor"]).unwrap()
}

fn finding(output: &Output, check: &str) -> Value {
    let rows = output.json();
    rows.iter().find(|row| row["check"] == check).cloned().unwrap_or_else(|| panic!("no {check}: {rows:?}"))
}

/// What is not fine, by its check.
fn found(output: &Output) -> Vec<String> {
    let rows = output.json();
    let wrong = rows.iter().filter(|row| row["level"] != "fine");
    wrong.map(|row| row["check"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_running_home_is_well_and_a_stopped_one_is_told_how_to_start() {
    let home = home();
    let missing = looked(&home);
    assert_eq!(
        (missing.code(), finding(&missing, "home")["fix"][0].as_str()),
        (Some(1), Some("postrider up"))
    );
    let product = up(&home);
    let well = looked(&home);
    // A build folder may lie in memory, or on a slow disk; nothing else may be found.
    let found: Vec<String> = found(&well)
        .into_iter()
        .filter(|check| !["filesystem", "sync", "disk", "files"].contains(&check.as_str()))
        .collect();
    assert_eq!(found, Vec::<String>::new(), "{}", well.stdout);
    for check in ["daemon", "version", "loopback", "link", "outbox", "dead", "clock", "turns"] {
        assert_eq!(finding(&well, check)["level"], "fine", "{check}");
    }
    product.interrupt().unwrap();
    let stopped = looked(&home);
    assert_eq!(finding(&stopped, "daemon")["fix"][0], "postrider up");
    assert_eq!(finding(&stopped, "port")["level"], "fine");
    assert_eq!(stopped.code(), Some(1));
}

#[test]
fn open_folders_open_secrets_and_a_broken_config_are_found_and_their_fixes_fix() {
    let home = home();
    let product = up(&home);
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(finding(&looked(&home), "home")["level"], "act");
    let token = home.path().join("daemon/local_token");
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let open = finding(&looked(&home), "secrets");
    assert!(open["message"].as_str().unwrap().contains("local_token"), "{open}");
    let fix = open["fix"][0].as_str().unwrap();
    assert!(std::process::Command::new("sh").args(["-c", fix]).status().unwrap().success(), "{fix}");
    assert_eq!(finding(&looked(&home), "secrets")["level"], "fine", "the fix fixes it");
    product.interrupt().unwrap();
    fs::write(home.path().join("config.toml"), "[mesh").unwrap();
    assert_eq!(finding(&looked(&home), "config")["level"], "act");
}

#[test]
fn a_process_that_hangs_a_taken_port_and_a_lost_token_are_found() {
    let home = home();
    let mut product = up_on_loopback(&home);
    let url = product.ready().url.clone();
    product.freeze();
    let hung = finding(&looked(&home), "daemon");
    assert!(hung["message"].as_str().unwrap().contains("does not answer"), "{hung}");
    assert!(hung["fix"][0].as_str().unwrap().starts_with(&format!("kill -9 {}", product.id())), "{hung}");
    product.thaw();
    let token = home.path().join("daemon/local_token");
    let kept = fs::read(&token).unwrap();
    fs::write(&token, "another").unwrap();
    assert_eq!(finding(&looked(&home), "loopback")["level"], "act");
    fs::write(&token, kept).unwrap();
    product.kill9();
    let _taken = std::net::TcpListener::bind(url.strip_prefix("http://").unwrap()).unwrap();
    assert_eq!(finding(&looked(&home), "port")["level"], "warn");
}

#[test]
fn a_clock_apart_from_the_brokers_is_found() {
    let home = home();
    let _product = up(&home);
    let ahead = home.path().join("ahead");
    fs::write(&ahead, "90000000").unwrap();
    fs::set_permissions(&ahead, fs::Permissions::from_mode(0o600)).unwrap();
    let fault = format!("clock:{}", ahead.display());
    let skewed = home.cli_with(&["--json", "doctor"], &[("POSTRIDER_FAULT", &fault)], "").unwrap();
    let clock = finding(&skewed, "clock");
    let message = clock["message"].as_str().unwrap();
    assert!(message.contains("s ahead of the broker") && clock["level"] == "warn", "{clock}");
}

#[test]
fn people_read_findings_first_each_with_its_fix_within_eighty_columns() {
    let home = home();
    let text = home.cli(&["doctor"]).unwrap();
    let lines: Vec<&str> = text.stdout.lines().collect();
    assert!(lines[0].contains("checks, ") && lines[0].contains("finding"), "{}", text.stdout);
    assert!(
        text.stdout.contains("\nact ") && text.stdout.contains("\nfix       postrider up"),
        "{}",
        text.stdout
    );
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{}", text.stdout);
}
