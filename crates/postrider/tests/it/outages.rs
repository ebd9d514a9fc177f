//! A daemon that dies, waits and sees its broker flap: the small runs of `cargo xtask prove daemon`.

use std::time::Duration;

use testkit::bin::Binary;
use testkit::fleet::daemon::{cells, days, flaps};

fn binary() -> Binary {
    Binary::at(env!("CARGO_BIN_EXE_postrider"))
}

/// A healed row ends within this, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// A row that a planted bug keeps from ending is given so long to end all the same.
const CONTROL_PATIENCE: Duration = Duration::from_secs(5);

/// How often a control that races with a death is tried.
const CONTROL_RUNS: u32 = 5;

/// What the walk of a row passes in each state, and what a person's act on it does.
const CELLS: [(cells::State, &[&str]); 9] = [
    (cells::State::Untried, &["mailbox.claim.after_commit"]),
    (cells::State::Unread, &["mailbox.recover.before_commit"]),
    (cells::State::Unheard, &["mailbox.settle.before_commit"]),
    (cells::State::Refused, &["mailbox.settle.after_commit"]),
    (cells::State::Unwanted, &["mailbox.abort.after_commit"]),
    (cells::State::Late, &["mailbox.claim.before_commit"]),
    (cells::State::Done, &["mailbox.accept.before_commit"]),
    (cells::State::Dead, &["mailbox.requeue.after_commit", "mailbox.requeue.before_commit"]),
    (cells::State::Aborted, &["mailbox.record.after_commit"]),
];

fn killed(
    state: cells::State,
    points: &[&str],
    visit: u64,
    planted: Option<&str>,
    patience: Duration,
) -> cells::Outcome {
    let points = cells::Points::Only(points.iter().map(|point| ((*point).to_owned(), visit)).collect());
    let planted = planted.map(str::to_owned);
    cells::run(&cells::Plan { binary: binary(), states: vec![state], points, planted, patience }).unwrap()
}

#[test]
fn a_row_in_any_state_survives_the_death_of_its_daemon_once() {
    for (state, points) in CELLS {
        let outcome = killed(state, points, 1, None, PATIENCE);
        assert!(outcome.holds(), "{:#?}", outcome.findings());
        assert_eq!(outcome.died.len(), points.len(), "{state}: not reached: {:?}", outcome.missed);
    }
}

#[test]
fn an_answer_before_the_outbox_commit_loses_the_next_message_of_a_lane() {
    let bug = format!("bug:{}:mailbox.accept", "sqlite.answer_before_commit");
    let point = ["mailbox.accept.before_commit"];
    // The first accept is of the row that is asked for again; the second is of the next message. The wrong answer
    // must travel before the process dies, which on a busy machine may take more than one run.
    let found = |_| !killed(cells::State::Late, &point, 2, Some(&bug), PATIENCE).lost.is_empty();
    assert!((0..CONTROL_RUNS).any(found), "the bug went unnoticed");
}

#[test]
fn rows_left_on_the_wire_by_a_start_are_found() {
    let point = ["mailbox.recover.after_commit"];
    let outcome =
        killed(cells::State::Unread, &point, 1, Some("bug:mailbox.inflight_stays"), CONTROL_PATIENCE);
    assert!(!outcome.lost.is_empty(), "the bug went unnoticed: {outcome:#?}");
}

fn away(planted: Option<&str>) -> days::Outcome {
    let planted = planted.map(str::to_owned);
    days::run(&days::Plan { binary: binary(), days: 8, daily: 3, planted }).unwrap()
}

#[test]
fn eight_days_without_a_broker_are_drained_in_order_and_the_age_rules_hold() {
    let outcome = away(None);
    assert!(outcome.holds(), "{:#?}", outcome.wrong);
    assert_eq!((outcome.acked, outcome.expired, outcome.aged), (2 + 8 * (3 * 3 + 1), 6, 1), "{outcome:?}");
}

#[test]
fn an_age_for_rows_never_attempted_is_found() {
    assert!(!away(Some("bug:mailbox.age_of_unattempted")).holds(), "the bug went unnoticed");
}

fn flapped(seconds: u64, planted: &[&str]) -> flaps::Outcome {
    let planted = planted.iter().map(|fault| (*fault).to_owned()).collect();
    flaps::run(&flaps::Plan { binary: binary(), span: Duration::from_secs(seconds), planted }).unwrap()
}

#[test]
fn a_broker_that_flaps_every_second_loses_doubles_and_reorders_nothing() {
    let outcome = flapped(20, &[]);
    assert!(outcome.holds(), "{:#?}", outcome.findings());
    assert!(outcome.deaths >= 5 && outcome.verdict.acked > 100 && outcome.receipts > 0, "{outcome:?}");
}

#[test]
fn an_answer_before_the_ledger_commit_shows_under_flapping() {
    let faults = ["bug:sqlite.answer_before_commit:ledger.accept", "crash:ledger.accept.before_commit:5"];
    let outcome = flapped(8, &faults);
    assert!(!outcome.holds(), "the bug went unnoticed: {outcome:?}");
}
