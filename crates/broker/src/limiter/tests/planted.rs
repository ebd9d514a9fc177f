//! The rule taken out brings its counterexample back, in either limiter.

use std::process::Command;

use sqlite::fault;

use super::super::NO_MARKS;

/// Whether `fact` holds in a process with `plan` switched on.
fn holds(fact: &str, plan: &str) -> bool {
    let program = std::env::current_exe().expect("a test knows its own program");
    let output = Command::new(program).args(["--exact", fact]).env(fault::VARIABLE, plan).output();
    let output = output.expect("the test's own program can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("running 1 test"), "{fact} is a test: {text}");
    output.status.success()
}

#[test]
fn ce5_comes_back_without_the_marks() {
    for fact in [
        "limiter::tests::embedded::ce5_a_message_is_charged_once_and_its_retries_pass_even_when_the_budget_is_spent",
        "limiter::tests::outage::ce5_after_a_flush_a_message_costs_at_most_one_unit_per_process",
    ] {
        assert!(holds(fact, ""), "{fact} as it is");
        assert!(!holds(fact, &format!("bug:{NO_MARKS}")), "{fact} under {NO_MARKS}");
    }
}
