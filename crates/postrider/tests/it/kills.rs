//! The product killed while clients use it: the small run of `cargo xtask prove kills`.

use testkit::bin::Binary;
use testkit::kills::{AT_RANDOM, Commit, Outcome, Plan, Planted, run};

const SEED: u64 = 1;

fn killed(kills: u64, planted: Planted) -> Outcome {
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    run(&Plan { binary, kills, seed: SEED, planted }).unwrap()
}

#[test]
fn twenty_kills_lose_nothing_and_double_nothing() {
    let outcome = killed(20, Planted::Nothing);
    assert!(outcome.holds(), "{:#?}", outcome.findings());
    assert_eq!(outcome.deaths(), 20);
    for point in Commit::ALL.into_iter().flat_map(Commit::points) {
        assert!(outcome.kills.contains_key(&point), "nothing died at {point}: {:?}", outcome.kills);
    }
    assert!(outcome.kills.contains_key(AT_RANDOM), "{:?}", outcome.kills);
    assert!(outcome.verdict.acked > 0 && outcome.unanswered > 0 && outcome.receipts > 0, "{outcome:?}");
}

#[test]
fn an_answer_before_its_commit_is_found_at_each_of_the_three() {
    for commit in Commit::ALL {
        let outcome = killed(4, Planted::AnswerBefore(commit));
        assert!(outcome.losses() > 0, "the answer before {} went unnoticed: {outcome:#?}", commit.job());
    }
}
