//! What users of earlier systems hit and no other test here states; `docs/lessons.md` lists all of them.

use std::time::Duration;

use serde_json::{Value, json};
use wire::link::{Rows, ToNode};

use crate::broker::{Broker, SOON};
use crate::home::{Home, look_again};

/// A home in two meshes: `home`, and `far` at a broker of its own.
async fn in_two_meshes() -> (Broker, Broker, Home) {
    let (near, home) = Home::linked().await;
    let far = Broker::start().await;
    let invite = far.invite().to_text();
    let join = json!({"invite": invite.reveal(), "mesh_as": "far", "node": "mbp", "person": "jane"});
    let joined = home.unix().post("/v1/meshes", &join).await;
    assert_eq!(joined.status, 201, "{joined:?}");
    (near, far, home)
}

#[tokio::test]
async fn a_mesh_whose_broker_is_dead_holds_up_no_other() {
    let (near, far, home) = in_two_meshes().await;
    far.hang_up();
    for n in 0..40 {
        let message =
            json!({"to": "@ci", "body": "x", "client_message_id": format!("far-{n}"), "mesh": "far"});
        assert_eq!(home.unix().post("/v1/send", &message).await.status, 202);
    }
    let message = json!({"to": "@ci", "body": "x", "client_message_id": "near", "mesh": "home"});
    assert_eq!(home.unix().post("/v1/send", &message).await.status, 202);
    near.until_accepted(1).await;
    let waiting = home.unix().get("/v1/outbox?mesh=far&limit=1").await.body;
    assert_eq!(waiting["counts"]["dead"], 0, "and nothing of it is given up: {waiting}");
}

#[tokio::test]
async fn a_send_that_names_no_mesh_goes_to_the_default_one_and_to_no_other() {
    let (near, far, home) = in_two_meshes().await;
    assert_eq!(home.unix().send("a", "@ci", "x").await.status, 202);
    near.until_accepted(1).await;
    assert!(far.books().accepted.is_empty(), "the other mesh hears nothing");
    let unknown = json!({"to": "@ci", "body": "x", "mesh": "nowhere"});
    let said = home.unix().post("/v1/send", &unknown).await;
    assert_eq!((said.status, &said.body["error"]), (404, &json!("mesh_not_attached")));
}

#[tokio::test]
async fn an_agents_token_and_its_mail_survive_a_restart() {
    let (broker, mut home) = Home::linked().await;
    let agent = home.unix().post("/v1/agents", &json!({"name": "planner"})).await.body;
    let token = agent["token"].as_str().unwrap().to_owned();
    assert_eq!(home.agent(&token).send("before", "@ci", "x").await.status, 202);
    broker.until_accepted(1).await;
    home.stop().await;
    home.start().await;
    let said = home.agent(&token).get("/v1/messages/before").await;
    assert_eq!((said.status, &said.body["sender"]), (200, &json!("planner")), "{said:?}");
}

#[tokio::test]
async fn meta_of_any_json_arrives_as_it_was_sent() {
    let (broker, home) = Home::linked().await;
    let meta = json!({"n": 1, "f": 2.5, "t": true, "z": null, "l": [1, "a", {"b": false}], "s": "text"});
    let message = json!({"to": "@ci", "body": "x", "meta": meta, "client_message_id": "m"});
    assert_eq!(home.unix().post("/v1/send", &message).await.status, 202);
    broker.until_accepted(1).await;
    let mut row = serde_json::to_value(broker.mail("in", "hello")).unwrap();
    row["message"]["meta"] = meta.clone();
    broker.push(ToNode::Mail(Rows { rows: vec![serde_json::from_value(row).unwrap()] })).await;
    let arrived = async {
        loop {
            let inbox = home.unix().get("/v1/inbox").await.body;
            if let Some(item) = inbox["items"].as_array().and_then(|items| items.first()) {
                return item.clone();
            }
            look_again().await;
        }
    };
    let item: Value = tokio::time::timeout(SOON, arrived).await.expect("the mail arrives");
    assert_eq!(item["meta"], meta);
}

#[tokio::test]
async fn no_answer_of_the_door_shows_a_secret() {
    let (_broker, home) = Home::linked().await;
    let agent = home.unix().post("/v1/agents", &json!({"name": "planner"})).await.body;
    let token = agent["token"].as_str().unwrap().to_owned();
    let local = home.files().read_token().unwrap();
    let key = std::fs::read_to_string(home.files().mesh("home").join("keypair.json")).unwrap();
    let key: Value = serde_json::from_str(&key).unwrap();
    let secrets: Vec<&str> = key
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| *name != "public")
        .filter_map(|(_, value)| value.as_str())
        .collect();
    for path in
        ["/v1/health", "/v1/version", "/v1/metrics", "/v1/meshes", "/v1/peers", "/v1/outbox", "/v1/inbox"]
    {
        let said = home.unix().get(path).await.body.to_string();
        assert!(!said.contains(&token) && !said.contains(local.reveal()), "{path}: {said}");
        assert!(secrets.iter().all(|secret| secret.len() < 32 || !said.contains(secret)), "{path}: {said}");
    }
}

#[tokio::test]
async fn two_homes_on_one_machine_have_doors_of_their_own() {
    let (_one_broker, one) = Home::linked().await;
    let (_other_broker, other) = Home::linked().await;
    assert_ne!(one.daemon().http().unwrap().port(), other.daemon().http().unwrap().port());
    assert_ne!(one.daemon().socket(), other.daemon().socket());
    one.unix().send("a", "@ci", "x").await;
    assert_eq!(other.unix().get("/v1/messages/a").await.status, 404);
}

#[tokio::test]
async fn a_broker_that_comes_back_after_many_tries_finds_everything_still_there() {
    let (broker, home) = Home::linked().await;
    broker.hang_up();
    for n in 0..5 {
        assert_eq!(home.unix().send(&format!("a{n}"), "@ci", "x").await.status, 202);
    }
    let lost = home.until_link("away").await;
    assert_eq!(lost["outbox"]["dead"], 0);
    broker.listen().await;
    let resumed = home.unix().post("/v1/meshes/home/resume", &json!({})).await;
    assert_eq!(resumed.status, 202, "{resumed:?}");
    tokio::time::timeout(Duration::from_secs(60), broker.until_accepted(5)).await.expect("they are carried");
}
