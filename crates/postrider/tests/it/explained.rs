//! Explain against the driver's own log: the small run of `cargo xtask prove explain`.

use testkit::bin::Binary;
use testkit::explained::{Outcome, Plan, run};

fn told(histories: u64, never: u64, faults: &[&str]) -> Outcome {
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    let faults = faults.iter().map(|fault| (*fault).to_owned()).collect();
    run(&Plan { binary, histories, never, seed: 1, faults }).unwrap()
}

#[test]
fn ten_histories_with_faults_are_explained_as_they_were() {
    let outcome = told(10, 20, &[]);
    assert!(outcome.holds(), "{:#?}", outcome.wrong);
    assert!(!outcome.deaths.is_empty() && outcome.asked > 50, "{outcome:?}");
    assert!(outcome.refused.requests > 0, "{outcome:?}");
}

#[test]
fn an_explanation_that_is_ahead_of_the_facts_is_found() {
    for bug in ["bug:daemon.explain_optimism", "bug:relay.explain_optimism"] {
        assert!(!told(6, 0, &[bug]).holds(), "{bug}");
    }
}

#[test]
fn a_message_that_is_refused_and_stored_is_found() {
    let outcome = told(2, 0, &["bug:sqlite.refused_and_stored:mailbox.accept"]);
    assert!(!outcome.refused.stored.is_empty(), "the bug went unnoticed: {outcome:?}");
}
