//! What leaves, in which order, and what an answer or its absence does.

use std::time::Duration;

use model::ErrorCode;
use serde_json::json;
use testkit::stopwatch::Stopwatch;

use crate::broker::{Books, Broker, Reply};
use crate::home::Home;

/// Sends numbered messages to `to` while the broker is away.
async fn queue(home: &Home, to: &str, count: usize) {
    for n in 0..count {
        let said = home.unix().send(&format!("{}-{n}", &to[1..]), to, &n.to_string()).await;
        assert_eq!(said.status, 202, "{said:?}");
    }
}

fn bodies_to(books: &Books, to: &str) -> Vec<String> {
    let to_it = books.accepted.iter().filter(|row| row.fields.to.to_string() == to);
    to_it.map(|row| row.fields.body.clone()).collect()
}

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

async fn away() -> (Broker, Home) {
    let (broker, home) = Home::linked().await;
    broker.hang_up();
    home.until_link("away").await;
    (broker, home)
}

#[tokio::test]
async fn a_lane_keeps_its_order_in_frames_of_at_most_sixty_four() {
    let (broker, home) = away().await;
    queue(&home, "@ci", 150).await;
    broker.listen().await;
    assert_eq!(broker.until_accepted(150).await, numbers(150));
    let books = broker.books();
    assert!(books.sends.iter().all(|frame| frame.ids.len() <= 64), "{:?}", books.sends.len());
    assert!(books.sends.len() >= 3);
}

#[tokio::test]
async fn a_transient_refusal_stops_its_lane_and_no_other() {
    let (broker, home) = away().await;
    queue(&home, "@slow", 5).await;
    queue(&home, "@fast", 5).await;
    let mut refusals = 2;
    broker.script(move |fields| {
        if fields.to.to_string() == "@slow" && fields.body == "2" && refusals > 0 {
            refusals -= 1;
            return Reply::Refuse(ErrorCode::RateLimited);
        }
        Reply::Accept
    });
    broker.listen().await;
    broker.until_accepted(10).await;
    let books = broker.books();
    assert_eq!(bodies_to(&books, "@slow"), numbers(5));
    assert_eq!(bodies_to(&books, "@fast"), numbers(5));
    let slow: Vec<_> = books.sends.iter().filter(|frame| frame.lane.1 == "@slow").collect();
    assert_eq!(slow[0].ids.len(), 5);
    assert_eq!(slow[1].ids, ["slow-2"], "after a refusal the head goes alone");
    assert_eq!(slow[2].ids, ["slow-2"]);
}

#[tokio::test]
async fn a_lane_that_waits_for_ever_holds_up_nobody_else() {
    let (broker, home) = away().await;
    queue(&home, "@gone", 2).await;
    queue(&home, "@ci", 3).await;
    broker.script(|fields| match fields.to.to_string().as_str() {
        "@gone" => Reply::Refuse(ErrorCode::MemberNotFound),
        _ => Reply::Accept,
    });
    broker.listen().await;
    assert_eq!(broker.until_accepted(3).await, numbers(3));
    let life = home.until_life("gone-0", |life| life["last_error"] == "404 member_not_found").await;
    assert!(["pending", "inflight"].contains(&life["status"].as_str().unwrap()), "{life}");
    let behind = home.unix().get("/v1/messages/gone-1").await.body;
    assert_eq!((&behind["attempts"], &behind["status"]), (&json!(0), &json!("pending")));
}

#[tokio::test]
async fn a_permanent_refusal_buries_its_row_and_the_lane_goes_on() {
    let (broker, home) = away().await;
    queue(&home, "@ci", 5).await;
    broker.script(|fields| match fields.body.as_str() {
        "2" => Reply::Refuse(ErrorCode::MentionUnknown),
        _ => Reply::Accept,
    });
    broker.listen().await;
    assert_eq!(broker.until_accepted(4).await, ["0", "1", "3", "4"]);
    let life = home.until_rung("ci-2", "accepted").await;
    assert_eq!((&life["status"], &life["receipt"]["rung"]), (&json!("dead"), &json!("rejected")));
    assert_eq!(life["dead_reason"], "rejected");
}

#[tokio::test]
async fn the_broker_is_asked_about_a_row_that_died_and_its_id_is_fenced() {
    let (broker, home) = Home::linked().await;
    broker.script(|_| Reply::Refuse(ErrorCode::TooLarge));
    home.unix().send("big", "@ci", "x").await;
    broker.until("the fence", |books| (!books.retired.is_empty()).then_some(())).await;
    let life = home.until_life("big", |life| life["outcome"] == "not_accepted").await;
    assert_eq!((&life["status"], &life["dead_reason"]), (&json!("dead"), &json!("too_large")));
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_under_the_same_id_and_nothing_doubles() {
    let (broker, home) = Home::linked().await;
    broker.script(|_| Reply::AcceptSilently);
    home.unix().send("one", "@ci", "words").await;
    broker.until_accepted(1).await;
    broker.cut();
    let life = home.until_rung("one", "accepted").await;
    assert_eq!(life["status"], "done");
    let books = broker.books();
    assert_eq!(books.accepted.len(), 1);
    assert!(books.sends.len() >= 2);
    assert!(books.sends.iter().all(|frame| frame.rows == books.sends[0].rows && frame.ids == ["one"]));
    assert!(
        books.sends.iter().all(|frame| frame.deadlines == books.sends[0].deadlines),
        "the deadline counts from the first attempt"
    );
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_ends_the_link_and_the_row_is_sent_again() {
    let (broker, home) = Home::linked().await;
    let mut first = true;
    broker.script(move |_| if std::mem::take(&mut first) { Reply::Silence } else { Reply::Accept });
    home.unix().send("one", "@ci", "words").await;
    broker.until("the frame", |books| (books.sends.len() == 1).then_some(())).await;
    tokio::time::pause();
    tokio::time::advance(model::limits::SEND_ANSWER_TIMEOUT).await;
    tokio::time::resume();
    assert_eq!(broker.until_accepted(1).await, ["words"]);
    assert_eq!(home.until_rung("one", "accepted").await["status"], "done");
    assert!(broker.books().upgrades >= 2);
}

#[tokio::test]
async fn a_broker_that_wants_to_be_left_alone_is() {
    let (broker, home) = Home::linked().await;
    let mut first = true;
    broker.script(move |_| {
        if std::mem::take(&mut first) { Reply::RefuseFor(ErrorCode::RateLimited, 900) } else { Reply::Accept }
    });
    let watch = Stopwatch::start();
    home.unix().send("one", "@ci", "words").await;
    broker.until_accepted(1).await;
    assert!(watch.elapsed() >= Duration::from_millis(900), "{:?}", watch.elapsed());
}

#[tokio::test]
async fn a_frame_the_broker_cannot_read_costs_its_own_row_only() {
    let (broker, home) = away().await;
    queue(&home, "@ci", 4).await;
    queue(&home, "@ops", 2).await;
    broker.script(|fields| match (fields.to.to_string().as_str(), fields.body.as_str()) {
        ("@ci", "1") => Reply::Close(1007),
        _ => Reply::Accept,
    });
    broker.listen().await;
    let life = home.until_rung("ci-1", "accepted").await;
    assert_eq!((&life["status"], &life["last_error"]), (&json!("dead"), &json!("400 invalid_request")));
    for id in ["ci-0", "ci-2", "ci-3", "ops-0", "ops-1"] {
        assert_eq!(home.until_rung(id, "accepted").await["status"], "done", "{id}");
    }
    assert_eq!(bodies_to(&broker.books(), "@ci"), ["0", "2", "3"]);
}

#[tokio::test]
async fn two_senders_may_use_one_id_for_one_text() {
    let (broker, home) = Home::linked().await;
    let agent = home.unix().post("/v1/agents", &json!({"name": "planner"})).await;
    assert_eq!(agent.status, 201, "{agent:?}");
    let agent = home.agent(agent.body["token"].as_str().unwrap());
    assert_eq!(home.unix().send("one", "@ci", "words").await.status, 202);
    assert_eq!(agent.send("one", "@ci", "words").await.status, 202);
    broker.until_accepted(2).await;
    let books = broker.books();
    assert_ne!(books.accepted[0].sender, books.accepted[1].sender);
}

#[tokio::test]
async fn a_deadline_given_as_a_time_to_live_travels_as_asked_and_as_an_instant() {
    let (broker, home) = away().await;
    let words = json!({"to": "@ci", "body": "x", "client_message_id": "t", "ttl": 3600});
    assert_eq!(home.unix().post("/v1/send", &words).await.status, 202);
    assert_eq!(home.unix().post("/v1/send", &words).await.status, 202, "the same request again");
    broker.listen().await;
    broker.until_accepted(1).await;
    assert_eq!(broker.books().accepted[0].fields.ttl, Some(3600));
    assert_eq!(broker.books().accepted[0].fields.deliver_by, None);
}

#[tokio::test]
async fn a_row_past_its_own_deadline_waits_for_contact_and_ends_then() {
    let (broker, home) = away().await;
    let late =
        json!({"to": "@ci", "body": "x", "client_message_id": "late", "deliver_by": "2020-01-01T00:00:00Z"});
    assert_eq!(home.unix().post("/v1/send", &late).await.status, 202);
    assert_eq!(home.unix().get("/v1/messages/late").await.body["status"], "pending");
    broker.listen().await;
    let life = home.until_rung("late", "accepted").await;
    assert_eq!((&life["receipt"]["rung"], &life["dead_reason"]), (&json!("expired"), &json!("deliver_by")));
    assert_eq!(life["outcome"], "not_sent");
    assert!(broker.books().sends.is_empty());
}
