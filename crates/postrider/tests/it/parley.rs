//! Two agents under the command adapter through kills of everything: the small run of `cargo xtask prove agents`.

use testkit::bin::Binary;
use testkit::parley::{Outcome, Plan, run};

/// A planted bug shows when a program dies with everything; some kills fall between two.
const CONTROL_SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

fn talked(messages: u64, kills: u64, seed: u64, faults: &[&str]) -> Outcome {
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    let faults = faults.iter().map(|fault| (*fault).to_owned()).collect();
    run(&Plan { binary, messages, kills, seed, faults }).unwrap()
}

#[test]
fn fifty_messages_through_three_kills_of_everything_keep_their_order_and_are_run_once_or_marked() {
    let outcome = talked(50, 3, 1, &[]);
    assert!(outcome.holds(), "{:#?}", outcome.findings());
    assert_eq!((outcome.kills, outcome.messages), (3, 50), "{outcome:?}");
}

#[test]
fn a_rerun_without_its_mark_is_found_in_the_programs_notes() {
    let found = |seed| !talked(30, 6, seed, &["bug:mailbox.turn_unmarked"]).holds();
    assert!(CONTROL_SEEDS.into_iter().any(found), "the planted bug went unnoticed");
}
