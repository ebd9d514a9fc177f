//! The counterexamples of the model that a daemon takes part in, one test each. The rules that remove them are
//! explored whole elsewhere; here the daemon and a broker that misbehaves as the trace says.

use std::sync::Arc;
use std::time::Duration;

use model::{Clock, DeliveryRung, ErrorCode, Fingerprint, SystemClock, Timestamp, limits};
use serde_json::json;
use testkit::ManualClock;
use wire::link::{Rows, ToNode};

use crate::broker::{Broker, Reply};
use crate::home::{Home, look_again};

async fn row_of(home: &Home, id: &str) -> String {
    home.unix().get(&format!("/v1/messages/{id}")).await.body["id"].as_str().unwrap().to_owned()
}

/// The operator asks while a copy is still on its way: the question retires the id, so that copy can never
/// commit beside the successor's.
#[tokio::test]
async fn ce1_a_requeue_fences_the_old_id_before_the_new_one_leaves() {
    let (broker, home) = Home::linked().await;
    broker.script(|_| Reply::Silence);
    home.unix().send("old", "@ci", "words").await;
    broker.until("the first copy", |books| (books.sends.len() == 1).then_some(())).await;
    // From now on the lane is refused for a while, so that the row stays pending under the operator's hand.
    broker.script(|fields| match fields.client_message_id.as_str() {
        "old" => Reply::RefuseFor(ErrorCode::RateLimited, 30_000),
        _ => Reply::Accept,
    });
    broker.cut();
    home.until_life("old", |life| life["last_error"] == "429 rate_limited").await;
    let row = row_of(&home, "old").await;
    let said =
        home.unix().post("/v1/outbox/requeue", &json!({"id": row, "new_client_message_id": "new"})).await;
    assert_eq!((said.status, &said.body["outcome"]), (200, &json!("not_accepted")), "{said:?}");
    let retired = broker.books().retired.iter().map(|(_, id)| id.to_string()).collect::<Vec<_>>();
    assert_eq!(retired, ["old"]);
    let sends_of_old = broker.books().sends.iter().filter(|frame| frame.ids == ["old"]).count();
    home.unix().send("later", "@ops", "x").await;
    home.until_rung("later", "accepted").await;
    let after = broker.books().sends.iter().filter(|frame| frame.ids == ["old"]).count();
    assert_eq!(after, sends_of_old, "no copy of the old id leaves any more");
}

/// Accepted, the answer lost, and the row's own time runs out: asking turns `unknown` into the fact.
#[tokio::test]
async fn ce2_a_row_that_died_unanswered_is_found_accepted() {
    let (broker, home) = Home::linked().await;
    broker.script(|_| Reply::AcceptSilently);
    let deliver_by = SystemClock::start().now() + Duration::from_millis(600);
    let words =
        json!({"to": "@ci", "body": "x", "client_message_id": "one", "deliver_by": deliver_by.to_string()});
    home.unix().post("/v1/send", &words).await;
    broker.until_accepted(1).await;
    broker.hang_up();
    let clock = SystemClock::start();
    while clock.now() <= deliver_by {
        look_again().await;
    }
    broker.listen().await;
    let back = clock.now();
    let life = home.until_life("one", |life| life["status"] == "done").await;
    let waited = clock.now().since(back);
    assert!(waited < limits::LINK_SILENCE_MAX / 2, "{waited:?}: its end was rung before anybody listened");
    assert_eq!(life["receipt"]["rung"], "accepted");
    assert_eq!(broker.books().sends.len(), 1, "it was not sent past its deadline");
}

/// A daemon whose clock is set back must not think a row young again.
#[tokio::test]
async fn ce3_a_clock_set_back_does_not_move_the_send_deadline() {
    let broker = Broker::start().await;
    let clock = Arc::new(ManualClock::at(SystemClock::start().now()));
    let mut home = Home::with_clock(&broker, clock.clone()).await;
    home.until_live().await;
    broker.script(|_| Reply::Silence);
    home.unix().send("one", "@ci", "words").await;
    broker.until("the first copy", |books| (books.sends.len() == 1).then_some(())).await;
    home.stop().await;
    clock.set_date(Timestamp::from_micros(1_000_000));
    broker.script(|_| Reply::Accept);
    home.start().await;
    home.until_live().await;
    // The lane's wait was set by the clock before; it is cut to what a wait may be.
    clock.advance(limits::RETRY_AFTER_MAX);
    home.unix().send("wakes", "@ops", "x").await;
    home.until_rung("one", "accepted").await;
    let books = broker.books();
    let copies: Vec<_> = books.sends.iter().filter(|frame| frame.ids == ["one"]).collect();
    assert!(copies.len() >= 2);
    assert!(copies.iter().all(|frame| frame.deadlines == copies[0].deadlines), "{copies:?}");
}

/// The broker has another body under the id: neither its answer to a copy nor its word on the id makes the row
/// done.
#[tokio::test]
async fn ce4_another_body_under_the_id_is_not_this_rows_acceptance() {
    let (broker, home) = Home::linked().await;
    home.unix().send("one", "@ci", "words").await;
    home.until_rung("one", "accepted").await;
    broker.hang_up();
    home.until_link("away").await;
    home.unix().send("two", "@ci", "other words").await;
    {
        // As after a wiped home: the id is the broker's already, for something else.
        let mut books = broker.books();
        let mut known = books.accepted[0].clone();
        known.fields.client_message_id = "two".parse().unwrap();
        known.row.request_fingerprint = Fingerprint::from_bytes([3; 32]);
        books.accepted.push(known);
    }
    broker.listen().await;
    broker.until("a copy", |books| books.sends.iter().any(|frame| frame.ids == ["two"]).then_some(())).await;
    let life = home
        .until_life("two", |life| life["attempts"].as_u64() >= Some(1) && life["status"] == "pending")
        .await;
    let row = life["id"].as_str().unwrap();
    let requeued = loop {
        let said = home
            .unix()
            .post("/v1/outbox/requeue", &json!({"id": row, "new_client_message_id": "three"}))
            .await;
        // The courier tries the row again and again; between two tries it may be replaced.
        if said.body["error"] != "row_inflight" {
            break said;
        }
        look_again().await;
    };
    assert_eq!((requeued.status, &requeued.body["outcome"]), (200, &json!("not_accepted")), "{requeued:?}");
    home.until_rung("three", "accepted").await;
    let other = home.unix().get("/v1/messages/two").await.body;
    assert_eq!((&other["status"], &other["broker_message_id"]), (&json!("aborted"), &json!(null)));
}

/// The broker came back from an older backup: what it lost is driven again under the same ids.
#[tokio::test]
async fn ce6_a_restored_broker_gets_back_what_it_lost() {
    let (broker, home) = Home::linked().await;
    home.unix().send("one", "@ci", "words").await;
    home.until_rung("one", "accepted").await;
    {
        let mut books = broker.books();
        books.accepted.clear();
        books.restored = true;
    }
    broker.cut();
    assert_eq!(broker.until_accepted(1).await, ["words"]);
    assert_eq!(broker.books().accepted[0].fields.client_message_id.as_str(), "one");
}

/// The inbox committed, the ack was lost: it is told again, and a later rung with it.
#[tokio::test]
async fn ce7_an_ack_that_was_lost_is_told_again_with_the_rung_of_today() {
    let (broker, home) = Home::linked().await;
    broker.books().confirms = false;
    let mail = broker.mail("m1", "hello");
    let id = mail.message.id;
    broker.push(ToNode::Mail(Rows { rows: vec![mail] })).await;
    home.unix().get("/v1/inbox?wait=60").await;
    broker
        .until("notified", |books| {
            books.acks.iter().any(|ack| ack.row.rung == DeliveryRung::Notified).then_some(())
        })
        .await;
    let before = broker.books().acks.len();
    broker.books().confirms = true;
    broker.cut();
    let again = broker.until("the ack again", |books| books.acks.get(before).cloned()).await;
    assert_eq!((again.row.id, again.row.rung), (id, DeliveryRung::Notified));
}

/// The inbox was lost before the ack: the message comes again, and says that it may have been seen.
#[tokio::test]
async fn ce8_what_may_have_been_seen_before_says_so() {
    let (broker, home) = Home::linked().await;
    let mut mail = broker.mail("m1", "hello");
    mail.message.redelivered = true;
    broker.push(ToNode::Mail(Rows { rows: vec![mail] })).await;
    let inbox = home.unix().get("/v1/inbox?wait=60").await.body;
    assert_eq!(inbox["items"][0]["redelivered"], true);
    let epoch = broker.books().negotiations[0].inbox_epoch.clone();
    assert_eq!(epoch.len(), 16, "the broker knows which life of the inbox this is");
}
