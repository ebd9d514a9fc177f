//! `/v1/turns`: engaged when a turn began, processed when it ended, and the reply leaves with the end.

use model::{DeliveryRung, TurnId};
use serde_json::{Value, json};
use wire::link::{MailRow, Rows, ToNode};

use crate::broker::{Books, Broker};
use crate::home::Home;

fn rungs(books: &Books) -> Vec<DeliveryRung> {
    books.acks.iter().map(|ack| ack.row.rung).collect()
}

/// A home with an agent, its token, and mail for it.
async fn with_agent(mail: &[&str]) -> (Broker, Home, String) {
    let (broker, home) = Home::linked().await;
    let token = home.unix().post("/v1/agents", &json!({"name": "planner"})).await.body["token"].clone();
    let planner = broker.books().members[1].id;
    let rows = mail
        .iter()
        .map(|id| MailRow { recipient: planner, ..broker.mail(id, &format!("do {id}")) })
        .collect();
    broker.push(ToNode::Mail(Rows { rows })).await;
    let expected = mail.len();
    broker.until("acks", |books| (books.acks.len() >= expected).then_some(())).await;
    (broker, home, token.as_str().unwrap().to_owned())
}

fn end(turn: &Value) -> String {
    format!("/v1/turns/{}/end", turn["turn_id"].as_str().unwrap())
}

#[tokio::test]
async fn a_turn_climbs_to_processed_and_its_reply_is_sent_to_the_one_who_asked() {
    let (broker, home, token) = with_agent(&["m1"]).await;
    let agent = home.agent(&token);
    let begun = agent.post("/v1/turns", &json!({"wait": 60, "holder": "test"})).await;
    assert_eq!(begun.status, 201);
    let turn = begun.body;
    assert_eq!(
        (&turn["attempt"], &turn["redelivered"], &turn["message"]["body"]),
        (&json!(1), &json!(false), &json!("do m1"))
    );
    broker.until("engaged", |books| rungs(books).contains(&DeliveryRung::Engaged).then_some(())).await;
    assert!(!rungs(&broker.books()).contains(&DeliveryRung::Processed));
    let asked = json!({"outcome": "processed", "reply": {"body": "done", "meta": {"n": 1}}});
    let ended = agent.post(&end(&turn), &asked).await;
    assert_eq!((ended.status, &ended.body["duplicate"]), (200, &json!(false)));
    broker.until("processed", |books| rungs(books).contains(&DeliveryRung::Processed).then_some(())).await;
    let reply = broker.until("the reply", |books| books.accepted.first().cloned()).await;
    assert_eq!((reply.fields.body.as_str(), reply.fields.to.to_string().as_str()), ("done", "@tom"));
    assert_eq!(reply.fields.reply_to.as_deref(), turn["message"]["id"].as_str());
    assert_eq!((reply.fields.hops, reply.fields.kind.word()), (1, "reply"));
    let again = agent.post(&end(&turn), &asked).await;
    assert_eq!((again.status, &again.body["duplicate"]), (200, &json!(true)));
    assert_eq!(again.body["reply"], ended.body["reply"]);
    let other = agent.post(&end(&turn), &json!({"outcome": "failed", "error": "no"})).await;
    assert_eq!((other.status, &other.body["error"]), (409, &json!("turn_over")));
    assert_eq!(agent.post("/v1/turns", &json!({})).await.status, 204);
    assert_eq!(broker.books().accepted.len(), 1);
}

#[tokio::test]
async fn one_turn_is_open_and_whoever_lost_its_answer_gets_it_again() {
    let (_broker, home, token) = with_agent(&["m1", "m2"]).await;
    let agent = home.agent(&token);
    let id = TurnId::from_bytes([7; 16]).to_string();
    let first = agent.post("/v1/turns", &json!({"turn_id": id, "holder": "one"})).await.body;
    let again = agent.post("/v1/turns", &json!({"turn_id": id})).await.body;
    assert_eq!((&first["turn_id"], &first["message"]["id"]), (&again["turn_id"], &again["message"]["id"]));
    let open = agent.post("/v1/turns", &json!({})).await;
    assert_eq!(
        (open.status, &open.body["error"], &open.body["holder"]),
        (409, &json!("turn_open"), &json!("one"))
    );
    assert_eq!(open.body["turn_id"], first["turn_id"]);
    let shown = agent.get(&format!("/v1/turns/{id}")).await;
    assert_eq!((shown.status, &shown.body["state"]), (200, &json!("open")));
    let extended = agent.post(&format!("/v1/turns/{id}/extend"), &json!({"lease": 600})).await;
    assert!(extended.body["lease_until"].as_str() > first["lease_until"].as_str(), "{}", extended.body);
    let page = agent.get("/v1/turns").await.body;
    assert_eq!((&page["open"]["turn_id"], &page["given_up"]), (&first["turn_id"], &json!([])));
}

#[tokio::test]
async fn a_turn_given_back_is_run_again_marked_and_then_waits_for_a_person() {
    let (_broker, home, token) = with_agent(&["m1"]).await;
    let agent = home.agent(&token);
    let give_back = |turn: &Value| format!("/v1/turns/{}/interrupt", turn["turn_id"].as_str().unwrap());
    let first = agent.post("/v1/turns", &json!({})).await.body;
    assert_eq!(agent.post(&give_back(&first), &json!({})).await.body["state"], "interrupted");
    let second = agent.post("/v1/turns", &json!({})).await.body;
    assert_eq!((&second["attempt"], &second["redelivered"]), (&json!(2), &json!(true)));
    assert_eq!(second["message"]["redelivered"], true);
    let lost = agent.post(&end(&first), &json!({"outcome": "processed"})).await;
    assert_eq!((lost.status, &lost.body["error"]), (409, &json!("turn_lost")));
    agent.post(&give_back(&second), &json!({})).await;
    assert_eq!(agent.post("/v1/turns", &json!({})).await.status, 204);
    let given_up = agent.get("/v1/turns").await.body["given_up"].clone();
    assert_eq!(given_up[0]["message"]["id"], first["message"]["id"]);
    let third = agent.post("/v1/turns", &json!({"message_id": first["message"]["id"]})).await;
    assert_eq!(
        (third.status, &third.body["attempt"], &third.body["redelivered"]),
        (201, &json!(3), &json!(true))
    );
    let wrong = agent.post(&give_back(&third.body), &json!({"lease": 60})).await;
    assert_eq!((wrong.status, &wrong.body["error"]), (400, &json!("invalid_request")), "{}", wrong.body);
    let named = json!({"message_id": first["message"]["id"]});
    let open = agent.post("/v1/turns/retry", &named).await;
    assert_eq!(
        (open.status, &open.body["error"], &open.body["turn"]),
        (409, &json!("not_given_up"), &json!("open"))
    );
    agent.post(&give_back(&third.body), &json!({})).await;
    let put_back = agent.post("/v1/turns/retry", &named).await;
    assert_eq!((put_back.status, &put_back.body["attempt"]), (200, &json!(3)), "{}", put_back.body);
    let fourth = agent.post("/v1/turns", &json!({})).await;
    assert_eq!((fourth.status, &fourth.body["attempt"]), (201, &json!(4)), "it is next in line");
}

#[tokio::test]
async fn a_restart_of_the_daemon_keeps_the_turn_and_its_holder_may_end_it() {
    let (_broker, mut home, token) = with_agent(&["m1"]).await;
    let turn = home.agent(&token).post("/v1/turns", &json!({})).await.body;
    home.stop().await;
    home.start().await;
    let agent = home.agent(&token);
    let open = agent.post("/v1/turns", &json!({})).await;
    assert_eq!((open.status, &open.body["turn_id"]), (409, &turn["turn_id"]));
    let ended = agent.post(&end(&turn), &json!({"outcome": "failed", "error": "it went wrong"})).await;
    assert_eq!(ended.status, 200, "{}", ended.body);
    let shown = agent.get(&format!("/v1/turns/{}", turn["turn_id"].as_str().unwrap())).await.body;
    assert_eq!((&shown["state"], &shown["error"]), (&json!("failed"), &json!("it went wrong")));
}

#[tokio::test]
async fn turns_belong_to_their_agent_and_an_operator_may_take_one_as_it() {
    let (_broker, home, token) = with_agent(&["m1"]).await;
    home.unix().post("/v1/agents", &json!({"name": "other"})).await;
    let turn = home.unix().post_with("/v1/turns", ("postrider-as", "planner"), &json!({})).await;
    assert_eq!(turn.status, 201, "{}", turn.body);
    let others = home
        .unix()
        .post_with(&end(&turn.body), ("postrider-as", "other"), &json!({"outcome": "processed"}))
        .await;
    assert_eq!(others.status, 404);
    let own = home.agent(&token).post(&end(&turn.body), &json!({"outcome": "processed"})).await;
    assert_eq!(own.status, 200);
}

#[tokio::test]
async fn a_request_out_of_form_is_refused_and_begins_nothing() {
    let (_broker, home, token) = with_agent(&["m1"]).await;
    let agent = home.agent(&token);
    for bad in [
        json!({"lease": 0}),
        json!({"lease": 3601}),
        json!({"turn_id": "x"}),
        json!({"message_id": "x"}),
        json!({"holder": "a".repeat(65)}),
        json!({"bogus": 1}),
    ] {
        let answer = agent.post("/v1/turns", &bad).await;
        assert_eq!((answer.status, &answer.body["error"]), (400, &json!("invalid_request")), "{bad}");
    }
    let unknown =
        agent.post("/v1/turns", &json!({"message_id": "01890a5d-ac96-774b-bcce-b302099a8057"})).await;
    assert_eq!(unknown.status, 404);
    let turn = agent.post("/v1/turns", &json!({})).await.body;
    assert_eq!(turn["attempt"], 1);
    let too_long = json!({"outcome": "processed", "reply": {"body": "x".repeat(65_537)}});
    assert_eq!(agent.post(&end(&turn), &too_long).await.status, 413);
    let shown = agent.get(&format!("/v1/turns/{}", turn["turn_id"].as_str().unwrap())).await.body;
    assert_eq!(shown["state"], "open", "a refused end changes nothing");
}
