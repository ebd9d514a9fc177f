//! Two brokers over one PostgreSQL serve one mesh; races on both stores.

use std::sync::Arc;

use http::Method;
use ledger::PostgresLedger;
use model::{DeliveryRung, OsEntropy};
use net::Secret;
use net::client::{Ask, Client, ClientError};
use serde_json::json;
use testkit::postgres::Database;
use wire::ask::{Question, Scope, Token};
use wire::direct::AcceptAnswer;
use wire::link::ToNode;

use crate::node::{accepted, item};
use crate::scene::{Props, Scene};

/// Two broker processes in one: each with its own connections, its own wakes and its own door.
struct Pair {
    one: Scene,
    two: Scene,
    _database: Database,
}

impl Pair {
    async fn open() -> Pair {
        let database = Database::create().unwrap();
        let (one, two) = (broker_over(&database).await, broker_over(&database).await);
        Pair { one, two, _database: database }
    }
}

async fn broker_over(database: &Database) -> Scene {
    let ledger = PostgresLedger::open(&database.url(), Arc::new(OsEntropy)).await.unwrap();
    Scene::over(Arc::new(ledger), Props::default()).await.unwrap()
}

#[tokio::test]
async fn what_one_broker_accepts_the_other_delivers_and_receipts_come_back() {
    let pair = Pair::open().await;
    assert_eq!(pair.one.broker.issuer_key(), pair.two.broker.issuer_key());
    assert_eq!(pair.one.broker.mesh(), pair.two.broker.mesh());
    let mut jane = pair.one.joined("jane").await.link().await;
    let mut tom = pair.two.joined("tom").await.link().await;
    let row = accepted(jane.send_one("@tom", "m1", "hi").await);
    let mail = tom.mail().await;
    assert_eq!(mail[0].message.id, row.broker_message_id);
    tom.ack(&mail, DeliveryRung::Delivered).await;
    let receipts = jane
        .await_frame(|frame| match frame {
            ToNode::Receipts(rows) => Ok(rows.rows),
            other => Err(other.into()),
        })
        .await;
    assert_eq!((receipts[0].row.id, receipts[0].row.rung), (row.broker_message_id, DeliveryRung::Delivered));
}

#[tokio::test]
async fn a_ticket_of_one_broker_opens_the_other_and_the_newest_link_fences_the_oldest() {
    let pair = Pair::open().await;
    let here = pair.one.joined("lab").await;
    let there = pair.two.node_here(&here);
    let mut older = here.link().await;
    let ticket = here.ticket_by_challenge().await.unwrap();
    let (reader, writer) = there.upgrade(&ticket).await.unwrap();
    let negotiated = crate::node::Link::negotiate(reader, writer, crate::node::negotiation()).await;
    let mut newer = negotiated.ok().unwrap();
    let close = older.close().await;
    assert_eq!(close.code, 4003, "noticed without a word between the two processes");
    accepted(newer.send_one("#a", "m1", "hi").await);
}

async fn caller(scene: &Scene, token: &str) -> Client {
    scene.client().with_bearer(&Secret::from(token.to_owned()))
}

async fn send(client: &Client, id: &str, body: &str) -> Result<bool, u16> {
    let message = json!({"to": "#race", "body": body, "client_message_id": id});
    match client.ask(Ask::new(Method::POST, "/v1/meshes/home/messages").json(&message)).await {
        Ok(answer) => Ok(answer.json::<AcceptAnswer>().unwrap().duplicate),
        Err(ClientError::Refused { status, .. }) => Err(status),
        Err(other) => panic!("{other}"),
    }
}

/// Sixty-four copies of each id at once, half of them with another text: one is accepted, its twins are duplicates,
/// the others conflicts.
async fn race(doors: &[&Scene], ids: usize) {
    let mut owner = doors[0].owner("jane").await.link().await;
    let scopes = vec![Scope::Send];
    let asked = Question::TokenCreate { member: "racer".parse().unwrap(), scopes };
    let token: Token = owner.ask(asked).await.unwrap();
    let mut clients = Vec::new();
    for door in doors {
        clients.push(caller(door, &token.token).await);
    }
    for n in 0..ids {
        let id = format!("m{n}");
        let copies = (0..64).map(|copy| {
            let body = if copy % 4 < 2 { "one" } else { "other" };
            let (client, id) = (&clients[copy % clients.len()], &id);
            async move { (body, send(client, id, body).await) }
        });
        let answers = futures_util::future::join_all(copies).await;
        let won: Vec<_> = answers.iter().filter(|(_, answer)| *answer == Ok(false)).collect();
        assert_eq!(won.len(), 1, "{id}: {answers:?}");
        for (body, answer) in &answers {
            let legal = if *body == won[0].0 { answer.is_ok() } else { *answer == Err(409) };
            assert!(legal, "{id}: {body} {answer:?} beside {won:?}");
        }
    }
    let topics: Vec<wire::ask::TopicRow> = owner.ask(Question::Topics).await.unwrap();
    assert_eq!(topics[0].head, ids as u64, "one message per id");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_sixty_four_copies_at_one_broker_one_is_accepted() {
    let scene = Scene::open().await;
    race(&[&scene], 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_sixty_four_copies_at_two_brokers_one_is_accepted() {
    let pair = Pair::open().await;
    race(&[&pair.one, &pair.two], 20).await;
}

#[tokio::test]
async fn lanes_keep_their_order_on_postgres_too() {
    let pair = Pair::open().await;
    let mut jane = pair.one.joined("jane").await.link().await;
    let mut tom = pair.two.joined("tom").await.link().await;
    let (jane_id, tom_id) = (jane.person, tom.person);
    let mut numbers = Vec::new();
    for frame in 0..10 {
        let messages = |who: &str| (0..5).map(|n| item("#a", &format!("{who}{frame}.{n}"), "hi").1).collect();
        numbers.push((
            jane.start_send(jane_id, messages("j")).await,
            tom.start_send(tom_id, messages("t")).await,
        ));
    }
    let (mut of_jane, mut of_tom) = (Vec::new(), Vec::new());
    for (by_jane, by_tom) in numbers {
        of_jane
            .extend(jane.sent(by_jane).await.into_iter().map(|result| accepted(result.outcome).history_id));
        of_tom.extend(tom.sent(by_tom).await.into_iter().map(|result| accepted(result.outcome).history_id));
    }
    assert!(of_jane.is_sorted() && of_tom.is_sorted(), "{of_jane:?} {of_tom:?}");
    let mut all: Vec<u64> = of_jane.into_iter().chain(of_tom).collect();
    all.sort_unstable();
    assert_eq!(all, (1..=100).collect::<Vec<_>>(), "one log, no gap, no place twice");
}
