//! Copies of one id at once: the small run of `cargo xtask prove races`.

use testkit::bin::Binary;
use testkit::fleet::races::{COPIES, Outcome, Plan, Planted, Store, run};

fn raced(store: Store, ids: u64, planted: Planted) -> Outcome {
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    run(&Plan { binary, ids, seed: 1, store, planted }).unwrap()
}

/// One accept an id, paid once a text, every other copy told so.
fn holds(store: Store, ids: u64) {
    let outcome = raced(store, ids, Planted::Nothing);
    assert!(outcome.holds(), "{:#?}", outcome.broken);
    assert_eq!(outcome.accepted, ids);
    assert_eq!(outcome.accepted + outcome.duplicates + outcome.conflicts, ids * COPIES as u64);
    assert_eq!(outcome.conflicts, ids / 2 * COPIES as u64 / 2, "half the copies of half the ids");
    assert!(outcome.twins.units <= outcome.twins.ids, "{outcome:?}");
    assert!(outcome.refused.requests > 0, "nobody was refused: {outcome:?}");
}

#[test]
fn of_many_copies_one_is_accepted_and_paid_for_on_sqlite() {
    holds(Store::Sqlite, 200);
}

#[test]
fn of_many_copies_one_is_accepted_and_paid_for_on_postgres() {
    holds(Store::Postgres, 200);
}

#[test]
fn an_id_in_a_transaction_of_its_own_is_found_on_either_store() {
    for store in [Store::Sqlite, Store::Postgres] {
        let outcome = raced(store, 40, Planted::DedupeApart);
        assert!(outcome.doubled > 0, "the bug went unnoticed on {store:?}: {outcome:?}");
    }
}

#[test]
fn a_message_that_is_refused_and_stored_is_found() {
    let outcome = raced(Store::Sqlite, 8, Planted::RefusedAndStored);
    assert!(!outcome.refused.stored.is_empty(), "the bug went unnoticed: {outcome:?}");
}
