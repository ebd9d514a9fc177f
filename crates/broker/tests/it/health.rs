//! Health, figures and the answer to addresses nobody serves.

use http::Method;
use net::client::{Ask, ClientError};

use crate::node::accepted;
use crate::scene::Scene;

#[tokio::test]
async fn a_live_broker_is_healthy_ready_and_shows_its_figures() {
    let scene = Scene::open().await;
    let client = scene.client();
    let health: serde_json::Value = client.get("/healthz").await.unwrap();
    assert_eq!(health["status"], "ok");
    let ready: serde_json::Value = client.get("/readyz").await.unwrap();
    assert_eq!(ready["status"], "ready");
    let mut link = scene.joined("lab").await.link().await;
    accepted(link.send_one("#a", "m1", "hi").await);
    let answer = client.ask(Ask::new(Method::GET, "/metrics")).await.unwrap();
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    for line in [
        "cm_broker_connections_active 1",
        "cm_broker_messages_routed_total{priority=\"next\"} 1",
        "cm_broker_db_healthy 1",
        "cm_broker_rate_limit_local_mode 0",
    ] {
        assert!(text.lines().any(|have| have == line), "{line} in {text}");
    }
    assert!(answer.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
}

#[tokio::test]
async fn a_stopping_broker_is_alive_and_not_ready() {
    let scene = Scene::open().await;
    scene.broker.stop().await;
    assert!(scene.client().get::<serde_json::Value>("/healthz").await.is_ok());
    let refused = scene.client().get::<serde_json::Value>("/readyz").await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused { status: 503, .. }), "{refused}");
}

#[tokio::test]
async fn an_address_nobody_serves_answers_in_json() {
    let scene = Scene::open().await;
    let refused = scene.client().get::<serde_json::Value>("/v1/nothing").await.unwrap_err();
    let ClientError::Refused { status: 404, body, .. } = refused else { panic!("404, not {refused}") };
    assert_eq!(body.error, "not_found");
    let refused = scene.client().post::<serde_json::Value>("/healthz", &1).await.unwrap_err();
    let ClientError::Refused { status: 405, body, .. } = refused else { panic!("405, not {refused}") };
    assert_eq!(body.error, "method_not_allowed");
}
