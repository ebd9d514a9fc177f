//! The page about chat names a test for every scenario; one that was renamed away, or taken off a store, would go
//! unnoticed.

use std::collections::BTreeSet;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_default()
}

/// The table's lines: what, and the test.
fn lines(page: &str) -> Vec<(String, String)> {
    let cells = |line: &str| -> Option<(String, String)> {
        let mut cells = line.strip_prefix("| ")?.splitn(2, " | ");
        let (what, test) = (cells.next()?, cells.next()?.split('`').nth(1)?);
        (test.matches("::").count() == 2).then(|| (what.to_owned(), test.to_owned()))
    };
    page.lines().filter_map(cells).collect()
}

/// Whether the test is there, on both stores.
fn exists(test: &str) -> bool {
    let parts: Vec<&str> = test.splitn(3, "::").collect();
    let (file, name) = (parts[1], parts[2]);
    let listed = |list: &str| list.lines().any(|line| line.trim() == name);
    match parts[0] {
        "ledger" => {
            let fact = read(&format!("crates/ledger/src/conformance/{file}.rs"));
            fact.contains(&format!("fn {name}(")) && listed(&read("crates/ledger/src/conformance.rs"))
        }
        "broker" => {
            let facts = read(&format!("crates/broker/tests/it/chat/{file}.rs"));
            let (_, list) = facts.split_once("on_both_stores! {").unwrap_or_default();
            facts.contains(&format!("fn {name}(stage: Stage)"))
                && listed(list.split('}').next().unwrap_or_default())
        }
        // Runs as part of two tests in Rust, one of them before PostgreSQL; that one chooses by these numbers.
        "e2e" => {
            let chosen =
                name.starts_with(['2']) && read("crates/postrider/tests/it/page.rs").contains("^2[4-7]");
            chosen && read(&format!("web/e2e/{file}.test.mjs")).contains(&format!("test(\"{name}\""))
        }
        _ => false,
    }
}

#[test]
fn every_scenario_of_chat_has_a_test_on_both_stores() {
    let lines = lines(&read("docs/chat.md"));
    let mut scenarios = BTreeSet::new();
    for (what, test) in &lines {
        assert!(exists(test), "{what}: there is no {test} on both stores");
        match what.split_once(", ") {
            Some((new, _)) if new.starts_with("new ") => drop(scenarios.insert(new.to_owned())),
            _ => scenarios.extend(what.split(", ").map(str::to_owned)),
        }
    }
    let numbers = (1..=27).map(|n| n.to_string()).chain((1..=12).map(|n| format!("new {n}")));
    let wanted: BTreeSet<String> = numbers.chain((9..=11).map(|n| format!("CE{n}"))).collect();
    assert_eq!(scenarios, wanted);
}

#[test]
fn a_test_that_is_not_there_or_not_on_both_stores_is_noticed() {
    assert!(exists("broker::uncovered::new_01_writers_at_several_brokers_lose_no_row"));
    for missing in [
        "broker::uncovered::new_13_nobody_wrote_it",
        "broker::uncovered::pages_of_large_bodies_are_bounded_and_nothing_is_left_out",
        "ledger::chat::new_13_nobody_wrote_it",
        "e2e::talk::28: nobody wrote it",
        "elsewhere::chat::a9_2_at_the_end_nothing_comes_and_the_cursor_stays",
    ] {
        assert!(!exists(missing), "{missing}");
    }
}
