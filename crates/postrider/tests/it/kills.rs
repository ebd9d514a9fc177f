//! The product killed while clients use it: the small run of `cargo xtask prove kills`.

use testkit::bin::Binary;
use testkit::kills::{AT_RANDOM, Commit, Outcome, Plan, Planted, run};

/// The small run is the same one on every machine.
const SEED: u64 = 1;
/// A planted bug shows only when the wrong answer travels on before the process dies; on a machine whose cores
/// are busy it may need more than one run to do so.
const CONTROL_SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

fn killed(kills: u64, seed: u64, planted: Planted) -> Outcome {
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    run(&Plan { binary, kills, seed, planted }).unwrap()
}

#[test]
fn twenty_kills_lose_nothing_and_double_nothing() {
    let outcome = killed(20, SEED, Planted::Nothing);
    assert!(outcome.holds(), "{:#?}", outcome.findings());
    assert_eq!(outcome.deaths(), 20);
    for point in Commit::ALL.into_iter().flat_map(Commit::points) {
        assert!(outcome.kills.contains_key(&point), "nothing died at {point}: {:?}", outcome.kills);
    }
    assert!(outcome.kills.contains_key(AT_RANDOM), "{:?}", outcome.kills);
    assert!(outcome.verdict.acked > 0 && outcome.unanswered > 0 && outcome.receipts > 0, "{outcome:?}");
}

/// One test a commit, so that they may run beside each other.
fn assert_found(commit: Commit) {
    let found = |seed| killed(4, seed, Planted::AnswerBefore(commit)).losses() > 0;
    assert!(CONTROL_SEEDS.into_iter().any(found), "the answer before {} went unnoticed", commit.job());
}

#[test]
fn an_answer_before_the_outbox_commit_is_found() {
    assert_found(Commit::Outbox);
}

#[test]
fn an_answer_before_the_ledger_commit_is_found() {
    assert_found(Commit::Ledger);
}

#[test]
fn an_answer_before_the_inbox_commit_is_found() {
    assert_found(Commit::Inbox);
}
