//! Commits that leave nobody anything to see to, on SQLite: whoever follows hears of them, and nobody else.

use ledger::conformance::Bench;
use ledger::conformance::town::{accepted, text, two_homes};

use crate::sqlite::Sqlite;

#[tokio::test]
async fn a_log_that_only_became_longer_stirs_nobody() {
    let bench = Sqlite::start().await;
    let (ledger, jane, _) = two_homes(&bench).await;
    // The first to write to a topic is subscribed to it.
    accepted(&*ledger, &jane, text("#own", "first", "hi")).await;
    let (mut committed, mut stirred) = (ledger.committed(), ledger.stirred());
    committed.mark_unchanged();
    stirred.mark_unchanged();
    accepted(&*ledger, &jane, text("#own", "second", "hi")).await;
    assert!(committed.has_changed().unwrap());
    assert!(!stirred.has_changed().unwrap());
}
