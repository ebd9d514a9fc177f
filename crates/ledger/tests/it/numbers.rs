//! Numbers of messages on SQLite: drawn by the writer, none of them twice.

use std::time::Duration;

use ledger::conformance::Bench;
use ledger::conformance::town::{accepted, text, two_homes};

use crate::sqlite::Sqlite;

#[tokio::test]
async fn the_number_of_a_pruned_message_is_not_drawn_again() {
    let bench = Sqlite::start().await;
    let (ledger, jane, _) = two_homes(&bench).await;
    for number in 1..4 {
        accepted(&*ledger, &jane, text("@carl", &number.to_string(), "hi")).await;
        assert_eq!(bench.count(&format!("message WHERE number = {number}")).await, 1);
        bench.advance(Duration::from_secs(1));
        let now = ledger.now().await.unwrap();
        assert_eq!(ledger.prune_messages(now, 10).await.unwrap().messages, 1);
    }
}
