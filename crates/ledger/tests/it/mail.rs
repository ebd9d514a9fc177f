//! Stretches of mail on SQLite: written with the rows in them, gone with the last, and audited.

use std::time::Duration;

use ledger::Orphan;
use ledger::conformance::Bench;
use ledger::conformance::town::{accepted, ack, mail, send, text, two_homes};
use model::DeliveryRung;

use crate::sqlite::Sqlite;

#[tokio::test]
async fn mail_that_comes_and_is_taken_in_any_order_is_one_stretch_until_the_last() {
    let bench = Sqlite::start().await;
    let (ledger, jane, carl) = two_homes(&bench).await;
    send(&*ledger, &jane, ["1", "2", "3"].map(|id| text("@carl", id, "hi")).to_vec()).await;
    send(&*ledger, &jane, ["4"].map(|id| text("@carl", id, "hi")).to_vec()).await;
    let rows = mail(&*ledger, &carl).await;
    assert_eq!(
        (rows.len(), bench.count("mail").await),
        (4, 1),
        "the second frame goes on where the first ends"
    );
    for (taken, left) in [(2, vec![0, 1, 3]), (0, vec![1, 3]), (1, vec![3]), (3, vec![])] {
        ledger.ack(&carl.via(), vec![ack(&rows[taken], DeliveryRung::Delivered)]).await.unwrap();
        let waiting: Vec<_> = mail(&*ledger, &carl).await.into_iter().map(|row| row.id).collect();
        assert_eq!(waiting, left.iter().map(|place: &usize| rows[*place].id).collect::<Vec<_>>());
        assert_eq!(bench.count("mail").await, u64::from(!left.is_empty()));
    }
}

#[tokio::test]
async fn a_pruned_message_takes_its_stretch_along() {
    let bench = Sqlite::start().await;
    let (ledger, jane, carl) = two_homes(&bench).await;
    accepted(&*ledger, &jane, text("@carl", "1", "hi")).await;
    bench.advance(Duration::from_secs(1));
    let now = ledger.now().await.unwrap();
    assert_eq!(ledger.prune_messages(now, 10).await.unwrap().messages, 1);
    assert_eq!(bench.count("mail").await, 0);
    assert_eq!(mail(&*ledger, &carl).await, []);
}

#[tokio::test]
async fn a_row_that_no_stretch_leads_to_is_an_orphan() {
    let bench = Sqlite::start().await;
    let (ledger, jane, _) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("@carl", "1", "hi")).await;
    let later = ledger.now().await.unwrap() + Duration::from_secs(1);
    assert_eq!(ledger.orphans(later, 10).await.unwrap(), []);
    bench.run("DELETE FROM mail").await;
    let found = ledger.orphans(later, 10).await.unwrap();
    assert_eq!(found, [Orphan::DeliveryOutsideMail(receipt.broker_message_id)]);
}
