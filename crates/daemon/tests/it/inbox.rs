//! What arrives: stored once, acked after, read by its recipient alone.

use model::{DeliveryRung, MemberId, Timestamp};
use serde_json::{Value, json};
use wire::link::{MailRow, Rows, ToNode};

use crate::broker::{Books, Broker};
use crate::home::Home;

async fn push(broker: &Broker, rows: Vec<MailRow>) {
    broker.push(ToNode::Mail(Rows { rows })).await;
}

fn rungs(books: &Books) -> Vec<DeliveryRung> {
    books.acks.iter().map(|ack| ack.row.rung).collect()
}

fn bodies(inbox: &Value) -> Vec<&str> {
    inbox["items"].as_array().unwrap().iter().map(|item| item["body"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn mail_is_stored_then_acked_and_a_duplicate_is_acked_again_without_a_second_row() {
    let (broker, home) = Home::linked().await;
    let mail = || broker.mail("m1", "hello");
    let (first, mut again) = (mail(), mail());
    again.message.id = first.message.id;
    push(&broker, vec![first]).await;
    broker.until("an ack", |books| (rungs(books) == [DeliveryRung::Delivered]).then_some(())).await;
    push(&broker, vec![again]).await;
    broker.until("an ack again", |books| (rungs(books) == [DeliveryRung::Delivered; 2]).then_some(())).await;
    let inbox = home.unix().get("/v1/inbox").await.body;
    assert_eq!((bodies(&inbox), &inbox["total"], &inbox["unread"]), (vec!["hello"], &json!(1), &json!(1)));
    assert_eq!(inbox["items"][0]["sender"], "tom");
}

#[tokio::test]
async fn reading_ones_own_mail_is_told_as_notified_and_marking_it_read_is_no_rung() {
    let (broker, home) = Home::linked().await;
    push(&broker, vec![broker.mail("m1", "hello")]).await;
    let item = home.unix().get("/v1/inbox?wait=60").await.body["items"][0].clone();
    broker.until("notified", |books| rungs(books).contains(&DeliveryRung::Notified).then_some(())).await;
    let seen = home.unix().post("/v1/inbox/seen", &json!({"ids": [item["id"]]})).await;
    assert_eq!(seen.body["marked_seen"], 1);
    let told = |books: &Books| books.acks.iter().any(|ack| ack.read_at.is_some()).then_some(());
    broker.until("the reading", told).await;
    let inbox = home.unix().get("/v1/inbox").await.body;
    assert_eq!((&inbox["items"][0]["seen"], &inbox["items"][0]["rung"]), (&json!(true), &json!("notified")));
    assert_eq!(inbox["unread"], 0);
    assert_eq!(bodies(&home.unix().get("/v1/inbox?unread_only=true").await.body), Vec::<&str>::new());
}

#[tokio::test]
async fn an_operator_who_looks_as_somebody_else_hands_nothing_over() {
    let (broker, home) = Home::linked().await;
    home.unix().post("/v1/agents", &json!({"name": "planner"})).await;
    let planner = broker.books().members[1].id;
    let mail = MailRow { recipient: planner, ..broker.mail("m1", "for the planner") };
    push(&broker, vec![mail]).await;
    broker.until("an ack", |books| (!books.acks.is_empty()).then_some(())).await;
    let seen = home.unix().get_with("/v1/inbox", ("postrider-as", "planner")).await.body;
    assert_eq!(bodies(&seen), ["for the planner"]);
    assert_eq!(seen["items"][0]["rung"], "delivered");
    let again = home.unix().get_with("/v1/inbox", ("postrider-as", "planner")).await.body;
    assert_eq!(again["items"][0]["rung"], "delivered");
    assert_eq!(bodies(&home.unix().get("/v1/inbox").await.body), Vec::<&str>::new(), "not the person's mail");
    assert_eq!(
        home.unix().get_with("/v1/inbox", ("postrider-as", "nobody")).await.body["error"],
        "not_at_home"
    );
}

#[tokio::test]
async fn an_agent_reads_its_own_mail_only() {
    let (broker, home) = Home::linked().await;
    let token = home.unix().post("/v1/agents", &json!({"name": "planner"})).await.body["token"].clone();
    let agent = home.agent(token.as_str().unwrap());
    let planner = broker.books().members[1].id;
    let own = MailRow { recipient: planner, ..broker.mail("m1", "for the planner") };
    let others = broker.mail("m2", "for jane");
    let others_id = others.message.id.to_string();
    push(&broker, vec![own, others]).await;
    let inbox = agent.get("/v1/inbox?wait=60").await.body;
    assert_eq!(bodies(&inbox), ["for the planner"]);
    assert_eq!((&inbox["unread"], &inbox["total"]), (&json!(1), &json!(1)));
    let seen = agent.post("/v1/inbox/seen", &json!({"ids": [others_id]})).await;
    assert_eq!(seen.body["marked_seen"], 0);
    assert_eq!(agent.get(&format!("/v1/messages/{others_id}")).await.status, 404);
    let as_jane = agent.get_with("/v1/inbox", ("postrider-as", "jane")).await;
    assert_eq!((as_jane.status, &as_jane.body["error"]), (403, &json!("forbidden")));
}

#[tokio::test]
async fn a_message_that_cannot_be_read_is_refused_by_name_and_its_neighbours_are_kept() {
    let (broker, home) = Home::linked().await;
    let (good, bad) = (broker.mail("m1", "good"), broker.mail("m2", "bad"));
    let bad_id = bad.message.id;
    let mut bad = serde_json::to_value(&bad).unwrap();
    bad["message"]["body"] = json!(7);
    let frame = json!({"type": "mail", "rows": [bad, serde_json::to_value(&good).unwrap()]});
    broker.push_text(frame.to_string()).await;
    let nack = broker.until("a nack", |books| books.nacks.first().cloned()).await;
    assert_eq!(nack.id, bad_id);
    broker.until("an ack", |books| (rungs(books) == [DeliveryRung::Delivered]).then_some(())).await;
    assert_eq!(bodies(&home.unix().get("/v1/inbox").await.body), ["good"]);
}

#[tokio::test]
async fn a_message_past_its_deadline_is_acked_expired_and_never_shown() {
    let (broker, home) = Home::linked().await;
    let mut late = broker.mail("m1", "yesterday's words");
    late.deliver_by = Some(Timestamp::from_micros(1));
    push(&broker, vec![late]).await;
    broker.until("an ack", |books| (rungs(books) == [DeliveryRung::Expired]).then_some(())).await;
    assert_eq!(home.unix().get("/v1/inbox").await.body["items"], json!([]));
}

#[tokio::test]
async fn what_the_broker_has_not_confirmed_is_told_again_on_the_next_link_and_then_no_more() {
    let (broker, mut home) = Home::linked().await;
    broker.books().confirms = false;
    let first = broker.mail("m1", "hello");
    let first_id = first.message.id;
    push(&broker, vec![first]).await;
    broker.until("an ack", |books| (books.acks.len() == 1).then_some(())).await;
    broker.books().confirms = true;
    broker.cut();
    broker.until("the ack again", |books| (books.acks.len() == 2).then_some(())).await;
    assert_eq!(broker.books().acks[1].row.id, first_id);
    // Deliveries are taken in order: what is acked later was taken after the confirmation.
    push(&broker, vec![broker.mail("m2", "later")]).await;
    broker.until("the next ack", |books| (books.acks.len() == 3).then_some(())).await;
    home.stop().await;
    let mailbox = home.mailbox();
    let unconfirmed = mailbox.unconfirmed(0, 10).await.unwrap();
    assert!(unconfirmed.iter().all(|row| row.id != first_id), "{unconfirmed:?}");
    mailbox.close().await;
}

#[tokio::test]
async fn receipts_climb_are_acked_and_never_fall() {
    let (broker, home) = Home::linked().await;
    home.unix().send("one", "@tom", "words").await;
    home.until_rung("one", "accepted").await;
    for (told, shown) in [
        (DeliveryRung::Delivered, "delivered"),
        (DeliveryRung::Processed, "processed"),
        (DeliveryRung::Notified, "processed"),
    ] {
        let before = broker.books().receipt_acks.len();
        broker.push(ToNode::Receipts(Rows { rows: vec![broker.receipt(told)] })).await;
        broker.until("an ack", |books| (books.receipt_acks.len() > before).then_some(())).await;
        let life = home.until_rung("one", shown).await;
        assert_eq!(life["receipt"]["rung"], shown);
        assert_eq!(life["status"], "done");
    }
}

#[tokio::test]
async fn a_receipt_of_an_undelivered_message_says_how_it_ended() {
    let (broker, home) = Home::linked().await;
    home.unix().send("one", "@tom", "words").await;
    home.until_rung("one", "accepted").await;
    broker.push(ToNode::Receipts(Rows { rows: vec![broker.receipt(DeliveryRung::Expired)] })).await;
    let life = home.until_rung("one", "delivered").await;
    assert_eq!(life["receipt"]["rung"], "expired");
    broker.push(ToNode::Receipts(Rows { rows: vec![broker.receipt(DeliveryRung::Delivered)] })).await;
    broker.until("both acked", |books| (books.receipt_acks.len() == 2).then_some(())).await;
    assert_eq!(home.until_rung("one", "delivered").await["receipt"]["rung"], "delivered");
}

#[tokio::test]
async fn a_list_is_filtered_and_paged_by_place() {
    let (broker, home) = Home::linked().await;
    let rows = (0..5).map(|n| {
        let mut row = broker.mail(&format!("m{n}"), &n.to_string());
        if n % 2 == 1 {
            row.message.sender = "ann".parse().unwrap();
            row.sender_id = MemberId::from_bytes([4; 16]);
            row.message.conversation_name = Some("#alerts".to_owned());
        }
        row
    });
    push(&broker, rows.collect()).await;
    broker.until("all acked", |books| (books.acks.len() == 5).then_some(())).await;
    let caller = home.unix();
    for (query, expected) in [
        ("", vec!["0", "1", "2", "3", "4"]),
        ("?limit=2", vec!["3", "4"]),
        ("?before=3", vec!["0", "1"]),
        ("?after=3", vec!["3", "4"]),
        ("?from=ann", vec!["1", "3"]),
        ("?from=@ann&limit=1", vec!["3"]),
        ("?topic=alerts", vec!["1", "3"]),
        ("?topic=%23alerts&after=2", vec!["3"]),
        ("?from=nobody", vec![]),
    ] {
        let inbox = caller.get(&format!("/v1/inbox{query}")).await.body;
        assert_eq!(bodies(&inbox), expected, "{query}");
    }
    for bad in ["?limit=0", "?limit=1001", "?after=1&before=2", "?bogus=1", "?from=A%20B"] {
        assert_eq!(caller.get(&format!("/v1/inbox{bad}")).await.status, 400, "{bad}");
    }
}
