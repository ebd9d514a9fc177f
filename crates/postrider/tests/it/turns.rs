//! Agents and the daemon killed in turns: the small run of `cargo xtask prove turns`.

use testkit::bin::Binary;
use testkit::turns::{Outcome, Plan, Planted, run};

const SEED: u64 = 1;
/// A planted bug shows only when the wrong answer is noted before the process dies, which on a busy machine takes several
/// tries.
const CONTROL_SEEDS: std::ops::RangeInclusive<u64> = 1..=8;

fn ran(kills: u64, seed: u64, planted: Planted) -> Outcome {
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    run(&Plan { binary, kills, seed, planted }).unwrap()
}

#[test]
fn twelve_deaths_of_the_daemon_and_those_of_its_agents_leave_one_first_attempt_each() {
    let outcome = ran(12, SEED, Planted::Nothing);
    assert!(outcome.holds(), "{:#?}", outcome.findings());
    assert!(outcome.acked > 0 && outcome.replies > 0 && outcome.refused.requests > 0, "{outcome:?}");
    assert!(outcome.reruns > 0, "nothing was ever interrupted: {:?}", outcome.deaths);
}

fn assert_found(planted: Planted) {
    let found = |seed| !ran(4, seed, planted).holds();
    assert!(CONTROL_SEEDS.into_iter().any(found), "{planted:?} went unnoticed");
}

#[test]
fn a_turn_handed_out_before_its_commit_is_found() {
    assert_found(Planted::BeginUnrecorded);
}

#[test]
fn a_rerun_without_its_mark_is_found() {
    assert_found(Planted::Unmarked);
}

#[test]
fn a_reply_committed_after_its_end_is_found() {
    assert_found(Planted::ReplyApart);
}

#[test]
fn messages_and_turns_that_are_refused_and_stored_are_found() {
    let found = ran(1, SEED, Planted::RefusedAndStored).refused.stored;
    let (messages, turns): (Vec<_>, Vec<_>) = found.iter().partition(|sentence| sentence.contains(" ask."));
    assert!(!messages.is_empty() && !turns.is_empty(), "one went unnoticed: {found:?}");
}
