//! Two brokers of one mesh that die in turn: the small run of `cargo xtask prove brokers`.

use std::time::Duration;
use testkit::bin::Binary;
use testkit::fleet::brokers::{Outcome, Plan, Planted, run};

fn broken(seconds: u64, planted: Planted) -> Outcome {
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    run(&Plan { binary, span: Duration::from_secs(seconds), seed: 1, planted }).unwrap()
}

#[test]
fn two_brokers_with_clocks_apart_that_die_in_turn_lose_nothing_and_double_nothing() {
    let outcome = broken(30, Planted::Nothing);
    assert!(outcome.holds(), "{:#?}", outcome.findings());
    assert!(outcome.faults.len() >= 5, "one fault of each kind: {:?}", outcome.faults);
    assert!(outcome.verdict.acked > 0 && outcome.hung_up > 0 && outcome.receipts > 0, "{outcome:?}");
}

#[test]
fn a_death_between_a_message_and_its_id_is_found() {
    let outcome = broken(10, Planted::DedupeApart);
    assert!(outcome.verdict.doubled() > 0, "the bug went unnoticed: {outcome:#?}");
}
