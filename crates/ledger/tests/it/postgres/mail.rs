//! Stretches of mail on PostgreSQL: written with the rows in them, gone with the last, found after a move, and audited.

use std::sync::Arc;
use std::time::Duration;

use ledger::conformance::Bench;
use ledger::conformance::town::{accepted, ack, mail, mentioning, send, text, topic, two_homes};
use ledger::{Orphan, Via};
use model::DeliveryRung;
use model::admission::days_long;
use model::limits::UNDELIVERED_DAYS_MAX;
use tokio::task::JoinSet;

use super::Postgres;
use super::server::plan;

fn frame(to: &str, ids: std::ops::RangeInclusive<u32>) -> Vec<ledger::Submission> {
    ids.map(|id| numbered(to, id)).collect()
}

fn numbered(to: &str, id: u32) -> ledger::Submission {
    text(to, &format!("{}-{id}", &to[1..]), "hi")
}

#[tokio::test]
async fn what_a_subscriber_gets_together_is_one_stretch_until_the_last_is_taken() {
    let bench = Postgres::start().await;
    let (ledger, jane, carl) = two_homes(&bench).await;
    ledger.create_topic(carl.id(), &topic("t")).await.unwrap();
    send(&*ledger, &jane, frame("#t", 1..=4)).await;
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

#[tokio::test]
async fn who_is_alone_in_writing_to_a_topic_has_no_stretch_there_and_whoever_is_named_has_one() {
    let bench = Postgres::start().await;
    let (ledger, jane, carl) = two_homes(&bench).await;
    ledger.create_topic(jane.id(), &topic("t")).await.unwrap();
    send(&*ledger, &jane, frame("#t", 1..=2)).await;
    assert_eq!(bench.count("mail").await, 0);
    send(&*ledger, &jane, vec![mentioning(text("#t", "3", "hi"), &["carl"])]).await;
    assert_eq!((bench.count("mail").await, mail(&*ledger, &carl).await.len()), (1, 1));
    // A subscriber that is named as well gets it once.
    ledger.subscribe(carl.id(), &topic("t")).await.unwrap();
    send(&*ledger, &jane, vec![mentioning(text("#t", "4", "hi"), &["carl"])]).await;
    assert_eq!((bench.count("mail").await, mail(&*ledger, &carl).await.len()), (2, 2));
}

#[tokio::test]
async fn a_long_backlog_comes_in_windows_each_log_in_its_order() {
    let bench = Postgres::start().await;
    let (ledger, jane, carl) = two_homes(&bench).await;
    for name in ["a", "b"] {
        ledger.create_topic(carl.id(), &topic(name)).await.unwrap();
    }
    // Longer than a stretch, and the second frame has both logs in turns.
    send(&*ledger, &jane, frame("#a", 1..=100)).await;
    let turns = (101..=130).flat_map(|id| [("#a", id), ("#b", id)]);
    send(&*ledger, &jane, turns.map(|(to, id)| numbered(to, id)).collect()).await;
    assert_eq!(bench.count("mail").await, 4);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    loop {
        let rows = ledger.mail(&carl.link, &[], 7).await.unwrap();
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            let log = if row.client_message_id.as_str().starts_with("a-") { &mut a } else { &mut b };
            log.push(row.history_id);
        }
        let acks = rows.iter().map(|row| ack(row, DeliveryRung::Delivered)).collect();
        ledger.ack(&carl.via(), acks).await.unwrap();
    }
    assert_eq!(a, (1..=130).collect::<Vec<_>>());
    assert_eq!(b, (1..=30).collect::<Vec<_>>());
    assert_eq!(bench.count("mail").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_take_the_rows_of_a_stretch_at_once_the_last_takes_the_stretch() {
    let bench = Postgres::start().await;
    let (ledger, jane, carl) = two_homes(&bench).await;
    ledger.create_topic(carl.id(), &topic("t")).await.unwrap();
    for round in 0..10 {
        send(&*ledger, &jane, frame("#t", round * 8..=round * 8 + 7)).await;
        let mut takers = JoinSet::new();
        for row in mail(&*ledger, &carl).await {
            let (ledger, via): (_, Via) = (Arc::clone(&ledger), carl.via());
            takers.spawn(
                async move { ledger.ack(&via, vec![ack(&row, DeliveryRung::Delivered)]).await.unwrap() },
            );
        }
        takers.join_all().await;
        assert_eq!((mail(&*ledger, &carl).await.len(), bench.count("mail").await), (0, 0), "round {round}");
    }
}

#[tokio::test]
async fn a_pruned_message_and_one_past_its_time_take_their_stretches_along() {
    let bench = Postgres::start().await;
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

#[tokio::test]
async fn a_row_that_no_stretch_leads_to_is_an_orphan() {
    let bench = Postgres::start().await;
    let (ledger, jane, _) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("@carl", "1", "hi")).await;
    let later = ledger.now().await.unwrap() + Duration::from_secs(1);
    assert_eq!(ledger.orphans(later, 10).await.unwrap(), []);
    bench.run("DELETE FROM mail").await;
    let found = ledger.orphans(later, 10).await.unwrap();
    assert_eq!(found, [Orphan::DeliveryOutsideMail(receipt.broker_message_id)]);
}

#[tokio::test]
async fn mail_from_before_there_were_stretches_is_found_and_taken() {
    let mut bench = Postgres::start().await;
    let (ledger, jane, carl) = two_homes(&bench).await;
    send(&*ledger, &jane, frame("@carl", 1..=3)).await;
    drop(ledger);
    bench
        .run(
            "DROP TABLE mail; ALTER TABLE delivery DROP COLUMN stretch;
             CREATE INDEX delivery_mail ON delivery (recipient, message) WHERE rung = 1;
             DELETE FROM schema_version WHERE number = 9",
        )
        .await;
    bench.reopen().await;
    let ledger = bench.ledger();
    let rows = mail(&*ledger, &carl).await;
    assert_eq!(rows.iter().map(|row| row.history_id).collect::<Vec<_>>(), [1, 2, 3]);
    ledger
        .ack(&carl.via(), rows.iter().map(|row| ack(row, DeliveryRung::Delivered)).collect())
        .await
        .unwrap();
    assert_eq!((mail(&*ledger, &carl).await.len(), bench.count("mail").await), (0, 0));
}

/// Sorted, all of a backlog would be read for every window.
#[tokio::test]
async fn stretches_are_walked_in_the_order_of_their_key() {
    let bench = Postgres::start().await;
    let sql = include_str!("../../../src/postgres/sql/mail.sql");
    let plan = plan(&bench.database, sql, "1, 10, '{}', '{}', 10").await;
    let walk = plan.iter().position(|line| line.contains("using mail_pkey on mail"));
    let sorts = plan.iter().filter(|line| line.contains("Sort") && !line.contains("Sort Key")).count();
    assert!(walk.is_some() && sorts == 1, "only what was found is sorted: {plan:#?}");
}
