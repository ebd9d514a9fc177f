//! The page: its client's rules, its committed build, and all of it in a real browser before the real binary.
//!
//! `cargo xtask test` installs what these need; the tests of the browser stand in `web/e2e`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web")
}

/// Runs a program of Node in `web/`; what it said is the failure's text.
fn node(args: &[&str]) {
    node_with(args, &[]);
}

fn node_with(args: &[&str], env: &[(&str, &str)]) {
    let tools = web().join("node_modules/vite");
    assert!(
        tools.is_dir(),
        "web/node_modules is missing: `cargo xtask test` or `npm ci` in web/ installs it"
    );
    let ended = Command::new("node")
        .args(args)
        .current_dir(web())
        .env("POSTRIDER_BIN", env!("CARGO_BIN_EXE_postrider"))
        .env("NO_COLOR", "1")
        .envs(env.iter().copied())
        .output()
        .unwrap();
    let (said, complained) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(
        ended.status.success(),
        "node {} ended with {}\n{said}\n{complained}",
        args.join(" "),
        ended.status
    );
}

/// Every file below `folder` with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                all.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    all
}

#[test]
fn the_committed_page_is_what_its_sources_give() {
    let built = tempfile::tempdir().unwrap();
    let folder = built.path().to_str().unwrap();
    node(&[
        "node_modules/vite/bin/vite.js",
        "build",
        "--logLevel",
        "error",
        "--emptyOutDir",
        "--outDir",
        folder,
    ]);
    let (committed, fresh) = (files(&web().join("dist")), files(built.path()));
    let names = |all: &BTreeMap<PathBuf, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&committed), names(&fresh), "`npm run build` in web/ writes it");
    assert!(committed == fresh, "a file of web/dist has other bytes; `npm run build` in web/ writes it");
}

#[test]
fn the_pages_client_keeps_each_rule_of_fetch_and_subscribe() {
    node(&["node_modules/vitest/vitest.mjs", "run"]);
}

#[test]
fn a_browser_shows_each_row_of_a_conversation_once_in_order() {
    node(&["--test", "e2e/talk.test.mjs"]);
}

/// The scenarios of the page alone: what differs is the store behind the broker.
#[test]
fn a_browser_shows_each_row_once_before_a_broker_on_postgres() {
    let database = testkit::postgres::Database::create().unwrap();
    let store = database.url();
    let args = ["--test", "--test-name-pattern=^2[4-7]", "e2e/talk.test.mjs"];
    node_with(&args, &[("PAGE_STORE", store.as_str())]);
}

#[test]
fn a_browser_shows_what_others_wrote_harmlessly() {
    node(&["--test", "e2e/words.test.mjs"]);
}

#[test]
fn a_browser_misses_and_repeats_nothing_when_the_broker_is_killed() {
    node(&["--test", "e2e/away.test.mjs"]);
}

#[test]
fn a_browser_signs_in_requeues_dead_letters_and_explains() {
    node(&["--test", "e2e/desk.test.mjs"]);
}

#[test]
fn a_browser_finds_the_page_usable_in_both_themes_and_on_a_phone() {
    node(&["--test", "e2e/looks.test.mjs"]);
}

#[test]
fn a_browser_settles_the_conflicts_of_the_relay_beside_it() {
    node(&["--test", "e2e/conflicts.test.mjs"]);
}
