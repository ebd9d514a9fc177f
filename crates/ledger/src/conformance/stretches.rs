//! Where undelivered rows are found: written with them, gone with the last, and audited.

use std::time::Duration;

use model::DeliveryRung;
use model::admission::days_long;
use model::limits::UNDELIVERED_DAYS_MAX;

use super::Bench;
use super::town::*;
use crate::*;

pub async fn mail_that_comes_together_is_one_stretch_until_the_last_is_taken_in_any_order(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    ledger.create_topic(carl.id(), &topic("t")).await.unwrap();
    send(&*ledger, &jane, ["1", "2", "3", "4"].map(|id| text("#t", id, "hi")).to_vec()).await;
    assert_eq!(bench.count("mail").await, 1);
    let rows = mail(&*ledger, &carl).await;
    assert_eq!(rows.iter().map(|row| row.history_id).collect::<Vec<_>>(), [1, 2, 3, 4]);
    for (taken, left) in [(2, vec![0, 1, 3]), (0, vec![1, 3]), (1, vec![3]), (3, vec![])] {
        ledger.ack(&carl.via(), vec![ack(&rows[taken], DeliveryRung::Delivered)]).await.unwrap();
        let waiting: Vec<_> = mail(&*ledger, &carl).await.into_iter().map(|row| row.id).collect();
        assert_eq!(waiting, left.iter().map(|place: &usize| rows[*place].id).collect::<Vec<_>>());
        assert_eq!(bench.count("mail").await, u64::from(!left.is_empty()));
    }
}

pub async fn a_pruned_message_and_one_past_its_time_take_their_stretches_along(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    accepted(&*ledger, &jane, text("@carl", "1", "hi")).await;
    bench.advance(Duration::from_secs(1));
    let now = ledger.now().await.unwrap();
    assert_eq!(ledger.prune_messages(now, 10).await.unwrap().messages, 1);
    assert_eq!((bench.count("mail").await, mail(&*ledger, &carl).await.len()), (0, 0));
    accepted(&*ledger, &jane, text("@carl", "2", "hi")).await;
    bench.advance(days_long(UNDELIVERED_DAYS_MAX + 1));
    assert_eq!(ledger.expire_undelivered(10).await.unwrap(), 1);
    assert_eq!((bench.count("mail").await, mail(&*ledger, &carl).await.len()), (0, 0));
}

pub async fn a_row_that_no_stretch_leads_to_is_an_orphan(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("@carl", "1", "hi")).await;
    let later = ledger.now().await.unwrap() + Duration::from_secs(1);
    assert_eq!(ledger.orphans(later, 10).await.unwrap(), []);
    bench.run("DELETE FROM mail").await;
    let found = ledger.orphans(later, 10).await.unwrap();
    assert_eq!(found, [Orphan::DeliveryOutsideMail(receipt.broker_message_id)]);
}
