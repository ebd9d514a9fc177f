//! Stretches of mail on PostgreSQL: who has one, in which order they are read, and who takes the last row.

use std::sync::Arc;

use ledger::Via;
use ledger::conformance::Bench;
use ledger::conformance::town::{ack, mail, mentioning, send, text, topic, two_homes};
use model::DeliveryRung;
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
async fn mail_from_before_there_were_stretches_is_found_and_taken() {
    let mut bench = Postgres::start().await;
    let (ledger, jane, carl) = two_homes(&bench).await;
    send(&*ledger, &jane, frame("@carl", 1..=3)).await;
    drop(ledger);
    bench
        .run(
            "DROP TABLE mail; ALTER TABLE delivery DROP COLUMN stretch;
             CREATE INDEX delivery_mail ON delivery (recipient, message) WHERE rung = 1;
             DROP TABLE ageing, inbox_mark, went_back;
             ALTER TABLE delivery DROP COLUMN received_as, DROP COLUMN again;
             DELETE FROM schema_version WHERE number >= 9",
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
