//! Cut answers, silent daemons, clients that give up.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject};
use rmcp::service::PeerRequestOptions;
use serde_json::{Value, json};

use super::scene::{MESSAGE, Scene, call, facts, text};

const BOUND: Duration = Duration::from_secs(20);

/// Waits until `holds`.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let looked = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(BOUND, looked).await.unwrap_or_else(|_| panic!("{what} never came"));
}

#[tokio::test]
async fn a_cut_answer_and_a_second_call_give_one_send() {
    let scene = Scene::new();
    let client = scene.client().await;
    scene.fake.cut.store(true, Ordering::SeqCst);
    let send = json!({"to": "ci", "body": "hi", "client_message_id": "a"});
    let cut = call(&client, "send", send.clone()).await;
    assert_eq!(cut.is_error, Some(true));
    assert!(
        text(&cut).contains("not known") && text(&cut).contains("same client_message_id"),
        "{}",
        text(&cut)
    );
    let again = call(&client, "send", send).await;
    assert_eq!((again.is_error, scene.stored()), (Some(false), 1));
}

#[tokio::test]
async fn a_cut_answer_and_a_second_call_give_one_reply() {
    let scene = Scene::new();
    let client = scene.client().await;
    scene.fake.cut.store(true, Ordering::SeqCst);
    let reply = json!({"message_id": MESSAGE, "client_message_id": "r", "body": "ok"});
    assert_eq!(call(&client, "reply", reply.clone()).await.is_error, Some(true));
    let again = call(&client, "reply", reply).await;
    assert_eq!((&facts(&again)["repeated"], scene.stored()), (&json!(true), 1));
}

#[tokio::test]
async fn other_words_under_a_used_id_are_refused_with_a_way_out() {
    let scene = Scene::new();
    let client = scene.client().await;
    let send = |body: &str| json!({"to": "ci", "body": body, "client_message_id": "a"});
    call(&client, "send", send("hi")).await;
    let other = call(&client, "send", send("bye")).await;
    assert_eq!(facts(&other)["error"], "idempotency_key_reused");
    assert!(text(&other).contains("fix: Choose a new client_message_id"), "{}", text(&other));
}

#[tokio::test]
async fn without_a_daemon_every_tool_names_the_fix() {
    let scene = Scene::silent();
    let client = scene.client().await;
    let calls: [(&'static str, Value); 8] = [
        ("send", json!({"to": "ci", "body": "hi", "client_message_id": "a"})),
        ("reply", json!({"message_id": MESSAGE, "client_message_id": "r", "body": "ok"})),
        ("read_inbox", json!({})),
        ("wait_for_mail", json!({"wait_seconds": 1})),
        ("list_agents", json!({})),
        ("list_topics", json!({})),
        ("list_members", json!({})),
        ("explain", json!({"id": "a"})),
    ];
    for (tool, arguments) in calls {
        let result = call(&client, tool, arguments).await;
        assert_eq!(
            (result.is_error, facts(&result)["error"].as_str()),
            (Some(true), Some("daemon_not_running"))
        );
        assert!(
            text(&result).contains("postrider up") && text(&result).contains("Nothing was stored"),
            "{tool}"
        );
    }
}

#[tokio::test]
async fn wrong_arguments_and_unknown_tools_are_told() {
    let scene = Scene::new();
    let client = scene.client().await;
    for (tool, arguments) in [
        ("send", json!({"to": "ci", "body": "hi"})),
        ("send", json!({"to": "ci", "body": "hi", "client_message_id": "a", "loud": true})),
        ("read_inbox", json!({"limit": "many"})),
        ("list_topics", json!({"x": 1})),
    ] {
        let result = call(&client, tool, arguments).await;
        assert_eq!(facts(&result)["error"], "invalid_request", "{tool}");
    }
    assert_eq!(scene.stored(), 0);
    assert!(client.call_tool(CallToolRequestParams::new("shout")).await.is_err());
}

#[tokio::test]
async fn a_wait_has_a_bound_whatever_is_asked() {
    let scene = Scene::new();
    let client = scene.client().await;
    call(&client, "wait_for_mail", json!({"wait_seconds": 86400})).await;
    call(&client, "wait_for_mail", json!({})).await;
    let queries = scene.fake.queries.lock().unwrap().clone();
    assert!(queries[0].contains("wait=50"), "{}", queries[0]);
    assert!(queries[1].contains("wait=30"), "{}", queries[1]);
}

#[tokio::test]
async fn a_client_that_gives_up_leaves_no_poll_behind() {
    let scene = Scene::new();
    let client = scene.client().await;
    let arguments: JsonObject = serde_json::from_value(json!({"from": "nobody"})).unwrap();
    let request = CallToolRequestParams::new("wait_for_mail").with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(request));
    let handle = client.send_cancellable_request(request, PeerRequestOptions::default()).await.unwrap();
    until("the poll", || scene.fake.polls.load(Ordering::SeqCst) == 1).await;
    handle.cancel(Some("enough".to_owned())).await.unwrap();
    until("the end of the poll", || scene.fake.polls.load(Ordering::SeqCst) == 0).await;
}
