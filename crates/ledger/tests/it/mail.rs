//! Stretches of mail on SQLite.

use ledger::conformance::Bench;
use ledger::conformance::town::{mail, send, text, two_homes};

use crate::sqlite::Sqlite;

#[tokio::test]
async fn a_stretch_goes_on_where_the_next_frame_follows_soon() {
    let bench = Sqlite::start().await;
    let (ledger, jane, carl) = two_homes(&bench).await;
    send(&*ledger, &jane, ["1", "2", "3"].map(|id| text("@carl", id, "hi")).to_vec()).await;
    send(&*ledger, &jane, ["4"].map(|id| text("@carl", id, "hi")).to_vec()).await;
    assert_eq!((mail(&*ledger, &carl).await.len(), bench.count("mail").await), (4, 1));
}
