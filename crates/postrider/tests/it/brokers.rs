//! Two brokers of one mesh that die in turn: the small run of `cargo xtask prove brokers`.

use std::time::Duration;
use testkit::bin::Binary;
use testkit::fleet::brokers::failover::{self, Standby};
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

fn failed_over(standby: Standby, planted: bool) -> failover::Outcome {
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    failover::run(&failover::Plan { binary, standby, receipts: 30, seed: 1, planted }).unwrap()
}

#[test]
fn a_synchronous_standby_has_all_that_was_acknowledged_once() {
    let outcome = failed_over(Standby::Synchronous, false);
    assert!(outcome.holds(), "{outcome:#?}");
}

#[test]
fn what_daemons_sent_is_sent_again_to_a_standby_that_lagged() {
    let outcome = failed_over(Standby::Lagging, false);
    assert!(outcome.holds(), "{outcome:#?}");
}

#[test]
fn a_broker_that_does_not_look_at_what_daemons_know_loses_what_the_standby_lacks() {
    let outcome = failed_over(Standby::Lagging, true);
    assert!(outcome.lost > 0, "the bug went unnoticed: {outcome:#?}");
}
