//! A relay before a hub, both the real binary: the small run of `cargo xtask prove relay`, and its commands.

use testkit::bin::Binary;
use testkit::fleet::relays::{Outcome, Plan, run};

fn relayed(writes: u64, outages: u64, planted: bool) -> Outcome {
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    run(&Plan { binary, writes, outages, seed: 1, planted }).unwrap()
}

#[test]
fn writes_over_outages_and_days_offline_are_applied_once_and_in_order() {
    let outcome = relayed(640, 8, false);
    assert!(outcome.holds(), "{outcome:#?}");
    assert_eq!((outcome.acked, outcome.conflicts), (640 + 40, 1), "{outcome:#?}");
    assert!(outcome.queued > 0 && outcome.expired > 0, "{outcome:#?}");
}

#[test]
fn a_key_recorded_in_a_transaction_of_its_own_is_found() {
    let outcome = relayed(800, 10, true);
    assert!(outcome.doubled > 0, "the bug went unnoticed: {outcome:#?}");
}

#[test]
fn a_relay_that_does_not_run_is_named_with_the_command_that_starts_it() {
    let home = crate::home();
    let output = home.cli(&["relay", "outbox", "status"]).unwrap();
    assert_eq!(output.code(), Some(3));
    assert!(output.stderr.contains("relay_not_running"), "{}", output.stderr);
    assert!(output.stderr.contains("postrider relay serve --upstream URL"), "{}", output.stderr);
}
