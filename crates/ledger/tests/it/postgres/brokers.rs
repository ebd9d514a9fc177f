//! Several brokers on one database.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ledger::conformance::town::{self, Home};
use ledger::{Ledger, MeshSetup, Outcome, PostgresLedger, Role, SecretHash};
use testkit::postgres::Database;
use testkit::stopwatch::Stopwatch;
use tokio::task::JoinSet;

use super::{client, database, open};

/// Two brokers, a mesh, and two homes.
async fn two_brokers(database: &Database) -> ([Arc<PostgresLedger>; 2], Home, Home) {
    let brokers = [open(database).await, open(database).await];
    brokers[0].setup(MeshSetup { slug: "home".into(), policies: town::POLICIES }).await.unwrap();
    let jane = town::join(&*brokers[0], "jane", Role::Owner).await;
    let carl = town::join(&*brokers[1], "carl", Role::Member).await;
    (brokers, jane, carl)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_brokers_on_an_empty_database_make_one_mesh() {
    let database = database();
    let (one, other) = tokio::join!(open(&database), open(&database));
    let setup = |slug: &str| MeshSetup { slug: slug.into(), policies: town::POLICIES };
    let (first, second) = tokio::join!(one.setup(setup("a")), other.setup(setup("b")));
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(*one.issuer().await.unwrap().0, *other.issuer().await.unwrap().0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_id_at_two_brokers_at_once_is_one_message() {
    let database = database();
    let (brokers, jane, _) = two_brokers(&database).await;
    for round in 0..20 {
        let mut copies = JoinSet::new();
        for way in 0..32 {
            let (broker, jane) = (Arc::clone(&brokers[way % 2]), jane.clone());
            let message = town::text(&format!("#t{round}"), &format!("id-{round}"), "hi");
            copies.spawn(async move { town::send(&*broker, &jane, vec![message]).await.remove(0) });
        }
        let (mut new, mut ids) = (0, BTreeSet::new());
        for outcome in copies.join_all().await {
            let Outcome::Admitted { receipt, admission } = outcome else {
                panic!("admitted, not {outcome:?}")
            };
            new += usize::from(admission.is_new());
            ids.insert(receipt.broker_message_id);
        }
        assert_eq!((new, ids.len()), (1, 1), "round {round}");
    }
    let later = brokers[0].now().await.unwrap() + Duration::from_secs(1);
    assert_eq!(brokers[0].orphans(later, 10).await.unwrap(), []);
}

/// Many logs written from both ends in different orders: locks are taken in one order, so nobody waits in a ring.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_written_by_two_brokers_at_once_stay_gapless() {
    let database = database();
    let (brokers, jane, carl) = two_brokers(&database).await;
    let mut writers = JoinSet::new();
    for writer in 0..8_usize {
        let broker = Arc::clone(&brokers[writer % 2]);
        let from = if writer % 4 < 2 { jane.clone() } else { carl.clone() };
        writers.spawn(async move {
            for n in 0..10_usize {
                let topic = |k: usize| if writer % 2 == 0 { k } else { 4 - k };
                let frame = (0..5).map(|k| {
                    let id = format!("{writer}-{n}-{k}");
                    town::text(&format!("#t{}", topic(k)), &id, &id)
                });
                let outcomes = town::send(&*broker, &from, frame.collect()).await;
                assert!(
                    outcomes.iter().all(|outcome| matches!(outcome, Outcome::Admitted { .. })),
                    "{outcomes:?}"
                );
            }
        });
    }
    writers.join_all().await;
    for k in 0..5 {
        let history = town::newest(&*brokers[0], &format!("t{k}"), jane.id()).await;
        let places: Vec<_> = history.rows.iter().map(|row| row.history_id).collect();
        assert_eq!(places, (1..=80).collect::<Vec<u64>>(), "#t{k}");
        assert!(history.rows.windows(2).all(|pair| pair[0].created_at < pair[1].created_at));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_replaced_at_the_other_broker_is_fenced_here() {
    let database = database();
    let (brokers, jane, _) = two_brokers(&database).await;
    town::come_back(&*brokers[1], "jane", "1").await;
    let lane = ledger::LaneSubmission {
        via: jane.via(),
        sender: jane.id(),
        messages: vec![town::text("#t", "a", "hi")],
    };
    let refused = brokers[0].accept(lane).await.unwrap_err();
    assert_eq!(refused.code(), model::ErrorCode::LinkReplaced);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tickets_of_one_invite_at_two_brokers_join_once() {
    let database = database();
    let (brokers, ..) = two_brokers(&database).await;
    for round in 0..10 {
        let token = format!("invite-{round}");
        town::invite(&*brokers[0], &token, Role::Member).await;
        let mut tickets: Vec<SecretHash> = Vec::new();
        for name in ["a", "b"] {
            let asked = town::by_invite(&format!("{name}{round}"), &token, &format!("{name}{round}"));
            tickets.push(asked.ticket);
            brokers[0].exchange(asked).await.unwrap();
        }
        let (one, other) = tokio::join!(
            brokers[0].redeem(tickets[0], "postrider-link"),
            brokers[1].redeem(tickets[1], "postrider-link")
        );
        let refused: Vec<_> =
            [one, other].into_iter().filter_map(Result::err).map(|error| error.code()).collect();
        assert_eq!(refused, [model::ErrorCode::TokenAlreadyUsed], "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_at_one_broker_wakes_the_other() {
    const ROUNDS: u32 = 20;
    let database = database();
    let (brokers, jane, _) = two_brokers(&database).await;
    let mut woken = brokers[1].committed();
    let watch = Stopwatch::start();
    for round in 0..ROUNDS {
        woken.mark_unchanged();
        town::accepted(&*brokers[0], &jane, town::text("#t", &format!("m{round}"), "hi")).await;
        woken.changed().await.unwrap();
    }
    // The safety poll alone would wake it once a second.
    assert!(watch.elapsed() < Duration::from_secs(ROUNDS.into()) / 2, "{:?}", watch.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_go_away_leave_no_transaction_open() {
    let database = database();
    let (brokers, jane, _) = two_brokers(&database).await;
    let mut calls = Vec::new();
    for n in 0..1_000 {
        let (broker, jane) = (Arc::clone(&brokers[n % 2]), jane.clone());
        calls.push(tokio::spawn(async move {
            let message = town::text("#t", &format!("m{n}"), "hi");
            let lane = ledger::LaneSubmission { via: jane.via(), sender: jane.id(), messages: vec![message] };
            match n % 4 {
                0 => drop(broker.accept(lane).await),
                1 => drop(broker.members(None, 10).await),
                2 => drop(
                    broker
                        .host_member(&town::member_name(&format!("s{n}")), model::MemberKind::Service)
                        .await,
                ),
                _ => drop(broker.mail(&jane.link, &[], 10).await),
            }
        }));
        // Each call is cut somewhere else: some before they began, some in the middle, some after.
        for _ in 0..n % 7 {
            tokio::task::yield_now().await;
        }
        calls[n].abort();
    }
    for call in calls {
        drop(call.await);
    }
    let admin = client(&database).await;
    let open = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    let mut left = i64::MAX;
    // What was under way ends by itself; what is open for good never does.
    for _ in 0..100 {
        town::accepted(&*brokers[0], &jane, town::text("#after", &format!("{left}-{}", rand_id()), "hi"))
            .await;
        left = admin.query_one(open, &[]).await.unwrap().get(0);
        if left == 0 {
            break;
        }
    }
    assert_eq!(left, 0);
    let later = brokers[0].now().await.unwrap() + Duration::from_secs(1);
    assert_eq!(brokers[0].orphans(later, 10).await.unwrap(), []);
}

fn rand_id() -> String {
    use model::{ClientMessageId, Clock, OsEntropy, SystemClock};
    ClientMessageId::mint(SystemClock::start().now(), &OsEntropy).to_string()
}
