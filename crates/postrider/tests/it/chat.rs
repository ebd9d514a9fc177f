//! Writers and subscribers at once: the small run of `cargo xtask prove chat`.

use testkit::bin::Binary;
use testkit::fleet::chat::{Outcome, Plan, Planted, run};
use testkit::fleet::races::Store;

fn played(store: Store, messages: u64, planted: Planted) -> Outcome {
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    let plan =
        Plan { binary, store, writers: 8, subscribers: 20, messages, conversations: 2, seed: 1, planted };
    run(&plan).unwrap()
}

fn holds(store: Store, messages: u64) {
    let outcome = played(store, messages, Planted::Nothing);
    assert!(outcome.holds(), "{outcome:#?}");
    assert_eq!((outcome.accepted, outcome.taken), (messages, 20 * messages / 2));
    assert!(outcome.connections >= 20 && outcome.refused.requests > 0, "{outcome:?}");
}

#[test]
fn twenty_subscribers_see_each_of_5000_messages_once_in_order_on_sqlite() {
    holds(Store::Sqlite, 5_000);
}

#[test]
fn twenty_subscribers_see_each_message_once_in_order_at_two_brokers_on_postgres() {
    holds(Store::Postgres, 1_000);
}

#[test]
fn a_cursor_made_of_timestamps_is_caught() {
    let outcome = played(Store::Sqlite, 1_500, Planted::TimestampCursor);
    assert!(outcome.missed > 0, "the bug went unnoticed: {outcome:?}");
}

#[test]
fn a_message_that_is_refused_and_stored_is_found() {
    let outcome = played(Store::Sqlite, 40, Planted::RefusedAndStored);
    assert!(!outcome.refused.stored.is_empty(), "the bug went unnoticed: {outcome:?}");
}
