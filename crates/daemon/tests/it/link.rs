//! The way in, what parks a mesh, and what a new link brings.

use model::ErrorCode;
use serde_json::json;

use crate::broker::{Broker, SOON};
use crate::home::Home;
use testkit::stopwatch::Stopwatch;

async fn parked(home: &Home) -> String {
    home.until_link("parked").await["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_refusal_that_will_be_repeated_parks_the_mesh_until_an_operator_acts() {
    let (broker, home) = Home::linked().await;
    broker.books().refuse = Some(ErrorCode::Revoked);
    broker.cut();
    assert!(parked(&home).await.starts_with("revoked"));
    let health = home.unix().get("/v1/health").await.body;
    assert!(health["problems"][0].as_str().unwrap().contains("revoked"), "{health}");
    assert_eq!(home.unix().send("a", "@ci", "x").await.status, 202, "a parked mesh still queues");
    let asked = home.unix().get("/v1/peers").await;
    assert_eq!((asked.status, &asked.body["error"]), (503, &json!("mesh_parked")));
    broker.books().refuse = None;
    assert_eq!(home.unix().post("/v1/meshes/home/resume", &json!({})).await.status, 202);
    broker.until_accepted(1).await;
}

#[tokio::test]
async fn a_link_taken_over_by_a_newer_one_parks() {
    let (broker, home) = Home::linked().await;
    broker.close_links(4003);
    assert!(parked(&home).await.starts_with("replaced_by_newer_connection"));
    assert_eq!(broker.books().upgrades, 1, "nobody is evicted in return");
}

#[tokio::test]
async fn a_broker_that_went_away_is_found_again() {
    let (broker, home) = Home::linked().await;
    for code in [1000, 1001, 4408] {
        let before = broker.books().upgrades;
        broker.close_links(code);
        broker.until("another link", |books| (books.upgrades > before).then_some(())).await;
        home.until_live().await;
        broker.until_linked().await;
    }
}

#[tokio::test]
async fn another_issuer_is_not_believed() {
    let (broker, home) = Home::linked().await;
    broker.change_issuer();
    broker.cut();
    assert!(parked(&home).await.starts_with("issuer_changed"));
    assert_eq!(broker.books().upgrades, 1, "no ticket of it is used");
}

#[tokio::test]
async fn a_broker_that_offers_too_little_gets_nothing() {
    for (change, reason) in [
        (
            json!({"client_message_id_dedupe": {"params": {"version": 2, "mode": "retention_scoped",
            "dedupe_retention_days": 3, "request_fingerprint": true}},
            "concurrent_connection_policy": {"params": {"version": 1}}}),
            "feature_param_below_floor",
        ),
        (json!({"concurrent_connection_policy": {"params": {"version": 1}}}), "feature_unavailable"),
    ] {
        let (broker, home) = Home::linked().await;
        broker.hang_up();
        home.until_link("away").await;
        home.unix().send("a", "@ci", "x").await;
        broker.books().features = change;
        broker.listen().await;
        assert!(parked(&home).await.starts_with(reason), "{reason}");
        assert!(broker.books().sends.is_empty());
    }
}

#[tokio::test]
async fn a_smaller_body_bound_of_the_broker_is_the_doors_too() {
    let (broker, home) = Home::linked().await;
    broker.books().features["max_payload"]["params"]["inline_bytes"] = json!(2048);
    broker.cut();
    broker.until("another link", |books| (books.negotiations.len() == 2).then_some(())).await;
    home.until_live().await;
    let said = home.unix().send("a", "@ci", &"x".repeat(2049)).await;
    assert_eq!((said.status, &said.body["error"]), (413, &json!("too_large")));
    assert_eq!(home.unix().send("a", "@ci", &"x".repeat(2048)).await.status, 202);
}

#[tokio::test]
async fn what_a_restored_broker_lost_is_sent_again_under_the_same_ids() {
    let (broker, home) = Home::linked().await;
    for n in 0..3 {
        home.unix().send(&format!("m{n}"), "@ci", &n.to_string()).await;
    }
    broker.until_accepted(3).await;
    home.until_rung("m2", "accepted").await;
    {
        let mut books = broker.books();
        books.accepted.truncate(1);
        books.restored = true;
    }
    broker.cut();
    assert_eq!(broker.until_accepted(3).await, ["0", "1", "2"]);
    assert_eq!(home.until_rung("m2", "accepted").await["status"], "done");
    let books = broker.books();
    let mut witnesses: Vec<String> =
        books.negotiations[1].done.iter().map(|done| done.client_message_id.to_string()).collect();
    witnesses.sort();
    assert_eq!(witnesses, ["m0", "m1", "m2"]);
}

#[tokio::test]
async fn a_question_without_a_link_is_refused_after_a_moment() {
    let (broker, home) = Home::linked().await;
    assert_eq!(home.unix().get("/v1/peers").await.body["peers"][0]["name"], "jane");
    assert_eq!(home.unix().get("/v1/topic/history?topic=%23alerts").await.body["messages"], json!([]));
    assert_eq!(home.unix().post("/v1/ask", &json!({"what": "topics"})).await.body, json!([]));
    broker.hang_up();
    home.until_link("away").await;
    let watch = Stopwatch::start();
    let said = home.unix().get("/v1/topic/history?topic=alerts").await;
    assert_eq!((said.status, &said.body["error"]), (503, &json!("broker_unreachable")));
    assert!(watch.elapsed() < SOON / 2, "{:?}", watch.elapsed());
}

#[tokio::test]
async fn a_question_the_broker_does_not_answer_is_refused_after_a_moment() {
    let (broker, home) = Home::linked().await;
    broker.books().answers = false;
    let said = home.unix().get("/v1/topic/list").await;
    assert_eq!((said.status, &said.body["error"]), (503, &json!("broker_unreachable")));
    home.unix().send("a", "@ci", "x").await;
    broker.until_accepted(1).await;
}

#[tokio::test]
async fn a_second_mesh_is_joined_by_invite_and_kept_apart() {
    let (first, mut home) = Home::linked().await;
    let second = Broker::start().await;
    let invite = second.invite().to_text();
    let joined = home.unix().post("/v1/meshes", &json!({"invite": invite.reveal(), "node": "laptop"})).await;
    assert_eq!(joined.body, json!({"mesh": "home-2", "node": "laptop", "person": "jane"}));
    let send = |mesh: &str| json!({"to": "@ci", "body": mesh, "mesh": mesh, "client_message_id": "one"});
    for mesh in ["home", "home-2"] {
        assert_eq!(home.unix().post("/v1/send", &send(mesh)).await.status, 202);
    }
    assert_eq!(first.until_accepted(1).await, ["home"]);
    assert_eq!(second.until_accepted(1).await, ["home-2"]);
    let again = home.unix().post("/v1/meshes", &json!({"invite": second.invite().to_text().reveal()})).await;
    assert_eq!((again.status, &again.body["error"]), (409, &json!("name_taken")));
    home.stop().await;
    home.start().await;
    second.until("it comes back", |books| (books.upgrades == 2).then_some(())).await;
    let meshes = home.unix().get("/v1/meshes").await.body;
    assert_eq!((&meshes["default_mesh"], meshes["meshes"].as_array().unwrap().len()), (&json!("home"), 2));
    assert_eq!(home.unix().delete("/v1/meshes/home-2").await.status, 200);
    let said = home.unix().post("/v1/send", &send("home-2")).await;
    assert_eq!((said.status, &said.body["error"]), (404, &json!("mesh_not_attached")));
    assert!(home.files().mailbox("home-2").exists(), "its rows stay");
}

#[tokio::test]
async fn a_refused_join_leaves_nothing_behind() {
    let (_first, home) = Home::linked().await;
    let second = Broker::start().await;
    let mut invite = second.invite();
    invite.token = net::Secret::from("wrong".to_owned());
    let said = home.unix().post("/v1/meshes", &json!({"invite": invite.to_text().reveal()})).await;
    assert_eq!((said.status, &said.body["error"]), (401, &json!("invalid_token")), "{said:?}");
    assert_eq!(home.unix().get("/v1/meshes").await.body["meshes"].as_array().unwrap().len(), 1);
    assert!(!home.files().mesh("home-2").exists());
    let far = format!("http://192.0.2.1:7440#i=x&k={}", "ab".repeat(32));
    let plain = home.unix().post("/v1/meshes", &json!({"invite": far})).await;
    assert_eq!(plain.status, 400);
    assert!(plain.body["message"].as_str().unwrap().contains("--insecure-lan"), "{plain:?}");
    assert_eq!(home.unix().post("/v1/meshes", &json!({"invite": "nonsense"})).await.status, 400);
}
