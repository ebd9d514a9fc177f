//! The tools at `/mcp`.

use std::net::SocketAddr;

use ::http::Method;
use ::http::header::{ACCEPT, AUTHORIZATION, HeaderName};
use net::client::{Ask, Client, Target};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use wire::local::ACT_AS_HEADER;

use super::scene::Scene;

async fn served(scene: &Scene) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let routes = mcp::router(scene.server());
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    Client::new(Target::of_url(&format!("http://{address}")).unwrap())
}

fn ask(id: u32, method: &str, params: Value) -> Ask {
    let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    Ask::new(Method::POST, mcp::PATH).json(&body).header(ACCEPT, "application/json, text/event-stream")
}

#[tokio::test]
async fn each_request_stands_alone_and_needs_no_session() {
    let scene = Scene::new();
    let client = served(&scene).await;
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = client.ask(ask(1, "initialize", hello)).await.unwrap();
    assert!(!answer.headers.contains_key("mcp-session-id"));
    assert_eq!(answer.json::<Value>().unwrap()["result"]["protocolVersion"], "2025-06-18");
    // Another connection, which never said hello.
    let other = served(&scene).await;
    let listed: Value = other.ask(ask(2, "tools/list", json!({}))).await.unwrap().json().unwrap();
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 8);
}

#[tokio::test]
async fn a_call_acts_with_its_callers_own_credential() {
    let scene = Scene::new();
    let client = served(&scene).await;
    let call = || ask(1, "tools/call", json!({"name": "list_members", "arguments": {}}));
    client.ask(call().header(AUTHORIZATION, "Bearer first")).await.unwrap();
    client.ask(call().header(AUTHORIZATION, "Bearer second")).await.unwrap();
    client.ask(call().header(HeaderName::from_static(ACT_AS_HEADER), "ci")).await.unwrap();
    client.ask(call()).await.unwrap();
    let callers = scene.fake.callers.lock().unwrap().clone();
    let token = |name: &str| Some(format!("Bearer {name}"));
    assert_eq!(
        callers,
        [(token("first"), None), (token("second"), None), (None, Some("ci".to_owned())), (None, None)]
    );
}
