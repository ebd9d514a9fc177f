//! The driver against a stand-in: a script with the product's outer manners.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use testkit::bin::{Binary, Home, Options, Product, UpError};

const STAND_IN: &str = r#"#!/bin/sh
case "$1" in
  up)
    echo '{"event":"starting"}'
    case "$POSTRIDER_FAULT" in
      crash:start) kill -ABRT $$ ;;
      bug:mute) exec sleep 1000 ;;
    esac
    trap 'echo drained; exit 0' INT
    mkdir -p "$4"
    printf '{"event":"ready","url":"http://%s/","socket":"%s/sock","home":"%s","args":"%s"}\n' "$6" "$4" "$4" "$*"
    while :; do sleep 0.05; done ;;
  env) printf '{"home":"%s","user_home":"%s","fault":"%s"}\n' "$POSTRIDER_HOME" "$HOME" "$POSTRIDER_FAULT" ;;
  cat) cat; exit 4 ;;
esac
"#;

struct Bench {
    home: Home,
    _folder: tempfile::TempDir,
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("postrider");
    std::fs::write(&path, STAND_IN).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Bench { home: Home::new(Binary::at(path)).unwrap(), _folder: folder }
}

fn faults(fault: &str) -> Options {
    Options { faults: vec![fault.to_owned()], ..Options::default() }
}

#[test]
fn up_returns_at_the_ready_line_and_knows_what_it_said() {
    let bench = bench();
    let mut product = Product::up(&bench.home, &Options::default()).unwrap();
    assert_eq!(product.ready().home, bench.home.path());
    assert_eq!(product.ready().socket, bench.home.path().join("sock"));
    assert_eq!(product.ready().url, "http://127.0.0.1:0/");
    assert!(product.is_running());
    let output = product.interrupt().unwrap();
    assert_eq!(output.code(), Some(0));
    assert!(output.stdout.ends_with("drained\n"), "{output:?}");
}

#[test]
fn a_start_that_crashes_is_an_error_with_its_words() {
    let bench = bench();
    match Product::up(&bench.home, &faults("crash:start")) {
        Err(UpError::NotReady(never)) => assert!(never.to_string().contains("starting"), "{never}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_crash_is_seen_as_its_signal() {
    let bench = bench();
    let mut process = Product::spawn(&bench.home, &faults("crash:start")).unwrap();
    let status = process.wait_exit(Duration::from_secs(30)).unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(6));
}

#[test]
fn kill9_leaves_the_home_for_the_next_start() {
    let bench = bench();
    Product::up(&bench.home, &Options::default()).unwrap().kill9();
    assert!(bench.home.path().is_dir());
    Product::up(&bench.home, &Options::default()).unwrap();
}

#[test]
fn a_command_sees_this_home_and_no_variable_of_the_caller() {
    let bench = bench();
    let output = bench.home.cli(&["env"]).unwrap().done();
    let seen = &output.json()[0];
    assert_eq!(seen["home"], bench.home.path().to_str().unwrap());
    assert!(bench.home.path().starts_with(seen["user_home"].as_str().unwrap()));
    assert_eq!(seen["fault"], "");
}

#[test]
fn a_command_reads_its_input_and_tells_its_code() {
    let output = bench().home.cli_with(&["cat"], &[], "body\n").unwrap();
    assert_eq!((output.code(), output.stdout.as_str()), (Some(4), "body\n"));
}
