//! A rule taken out brings its counterexample back: the named fact must then not hold, on either store.

use std::process::Command;

use ledger::planted::{
    DEDUPE_OWN_TRANSACTION, HUB_NO_AGE, HUB_NO_FENCE, NO_FENCE, NO_FINGERPRINT, NO_SEND_DEADLINE,
    NO_WITNESSES,
};
use sqlite::fault;

/// Whether `fact` holds in a process with `plan` switched on.
fn holds(fact: &str, plan: &str) -> bool {
    let program = std::env::current_exe().expect("a test knows its own program");
    let output = Command::new(program).args(["--exact", fact]).env(fault::VARIABLE, plan).output();
    let output = output.expect("the test's own program can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("running 1 test"), "{fact} is a test: {text}");
    output.status.success()
}

fn comes_back(bug: &str, fact: &str) {
    for store in ["sqlite", "postgres"] {
        let fact = format!("{store}::{fact}");
        assert!(holds(&fact, ""), "{fact} as it is");
        assert!(!holds(&fact, &format!("bug:{bug}")), "{fact} under {bug}");
    }
}

#[test]
fn ce1_comes_back_without_the_fence() {
    comes_back(NO_FENCE, "status::ce1_a_fenced_id_is_never_accepted");
}

#[test]
fn ce3_comes_back_without_the_send_deadline() {
    comes_back(NO_SEND_DEADLINE, "status::ce3_a_copy_past_its_deadline_is_not_accepted_again");
}

#[test]
fn ce4_comes_back_without_the_fingerprint() {
    comes_back(NO_FINGERPRINT, "status::ce4_another_body_under_the_id_is_told_apart");
}

#[test]
fn ce6_comes_back_without_the_witnesses() {
    comes_back(NO_WITNESSES, "link::ce6_a_ledger_that_lost_rows_is_noticed");
}

#[test]
fn ce19_and_ce20_come_back_without_the_hubs_fence() {
    comes_back(HUB_NO_FENCE, "hub::ce19_ce20_a_fenced_key_is_never_applied");
}

#[test]
fn ce21_comes_back_without_the_age_of_copies() {
    comes_back(HUB_NO_AGE, "hub::ce21_a_copy_that_may_be_forgotten_is_refused");
}

#[test]
fn a_bug_that_is_not_planted_changes_nothing() {
    assert!(holds("sqlite::status::ce1_a_fenced_id_is_never_accepted", "bug:ledger.no_such_bug"));
    assert!(holds(
        "sqlite::accept::a_topic_without_readers_is_accepted_history",
        &format!("bug:{DEDUPE_OWN_TRANSACTION}")
    ));
}
