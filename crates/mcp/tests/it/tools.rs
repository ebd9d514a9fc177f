//! What each tool takes and says.

use mcp::ToolKind;
use rmcp::model::ProtocolVersion;
use rmcp::{ClientLifecycleMode, ClientServiceExt, ServiceExt};
use serde_json::json;

use super::scene::{MESSAGE, Scene, call, facts, text};

#[tokio::test]
async fn every_tool_is_listed_with_what_it_takes_and_gives() {
    let scene = Scene::new();
    let client = scene.client().await;
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    let all: Vec<&str> = ToolKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names, all);
    for tool in &tools {
        let name = &tool.name;
        assert!(tool.description.as_ref().is_some_and(|about| about.len() > 40), "{name}");
        assert_eq!(tool.input_schema["type"], "object", "{name}");
        assert_eq!(tool.input_schema["additionalProperties"], false, "{name} takes unknown arguments");
        assert!(tool.output_schema.is_some(), "{name}");
        let shapes = json!([*tool.input_schema, tool.output_schema]).to_string();
        assert!(!shapes.contains("null"), "{name} has a field of two types: {shapes}");
        let hints = tool.annotations.as_ref().unwrap();
        assert!(hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true), "{name}");
    }
    for write in tools.iter().filter(|tool| ["send", "reply"].contains(&tool.name.as_ref())) {
        let required = write.input_schema["required"].as_array().unwrap();
        assert!(required.contains(&json!("client_message_id")), "{}", write.name);
    }
}

#[tokio::test]
async fn both_eras_of_the_protocol_call_the_same_tools() {
    for version in ProtocolVersion::KNOWN_VERSIONS {
        let scene = Scene::new();
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let server = scene.server();
        tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
        let client = match version.as_str() >= "2026-07-28" {
            true => {
                let mode = ClientLifecycleMode::Discover { preferred_versions: vec![version.clone()] };
                ().serve_with_lifecycle(ours, mode).await.unwrap()
            }
            false => ().serve(ours).await.unwrap(),
        };
        assert_eq!(client.list_all_tools().await.unwrap().len(), ToolKind::ALL.len(), "{version}");
        let listed = call(&client, "list_members", json!({})).await;
        assert_eq!(facts(&listed)["members"].as_array().unwrap().len(), 2, "{version}");
    }
}

#[tokio::test]
async fn a_send_says_its_rung_what_that_means_and_no_more() {
    let scene = Scene::new();
    let client = scene.client().await;
    let result = call(&client, "send", json!({"to": "ci", "body": "hi", "client_message_id": "a"})).await;
    assert_eq!(result.is_error, Some(false));
    assert_eq!(facts(&result)["rung"], "queued");
    assert_eq!(facts(&result)["means"], "Safe on this host's disk. Nobody else has confirmed it yet.");
    assert!(text(&result).starts_with("queued: Safe on this host's disk."), "{}", text(&result));
    assert!(!text(&result).to_lowercase().contains("sent"), "{}", text(&result));
    let stored = scene.fake.stored.lock().unwrap()["a"].clone();
    assert_eq!((stored["to"].as_str(), stored["body"].as_str()), (Some("@ci"), Some("hi")));
}

#[tokio::test]
async fn a_send_that_waits_says_whether_the_rung_was_reached() {
    let scene = Scene::new();
    let client = scene.client().await;
    let send =
        |id: &str, rung: &str| json!({"to": "#t", "body": "", "client_message_id": id, "wait_for": rung});
    let reached = call(&client, "send", send("a", "accepted")).await;
    assert_eq!((&facts(&reached)["rung"], &facts(&reached)["reached"]), (&json!("delivered"), &json!(true)));
    let not = call(&client, "send", send("b", "processed")).await;
    assert_eq!((&facts(&not)["rung"], &facts(&not)["reached"]), (&json!("delivered"), &json!(false)));
    assert!(text(&not).contains("goes on by itself"), "{}", text(&not));
    let word = call(&client, "send", send("c", "sent")).await;
    assert_eq!((word.is_error, facts(&word)["error"].as_str()), (Some(true), Some("invalid_request")));
    assert_eq!(scene.stored(), 2, "what was refused was not stored");
}

#[tokio::test]
async fn mail_is_shown_whole_with_the_senders_words_set_off() {
    let scene = Scene::new();
    let client = scene.client().await;
    let page = call(&client, "read_inbox", json!({"mark_read": [MESSAGE]})).await;
    let letter = &facts(&page)["messages"][0];
    assert_eq!((letter["id"].as_str(), letter["body"].as_str()), (Some(MESSAGE), Some("one\ntwo")));
    assert_eq!((&facts(&page)["next_after"], &facts(&page)["unread"]), (&json!(7), &json!(1)));
    assert!(text(&page).contains("    one\n    two"), "{}", text(&page));
    let query = scene.fake.queries.lock().unwrap()[0].clone();
    assert!(query.contains("unread_only=true") && query.contains("after=0"), "{query}");
}

#[tokio::test]
async fn lists_name_whom_and_what_a_send_reaches() {
    let scene = Scene::new();
    let client = scene.client().await;
    let agents = call(&client, "list_agents", json!({})).await;
    assert_eq!(
        facts(&agents)["members"],
        json!([{"name": "ci", "kind": "agent", "home": "here", "role": "member"}])
    );
    let topics = call(&client, "list_topics", json!({})).await;
    assert_eq!(facts(&topics)["topics"], json!([{"name": "alerts", "messages": 4, "subscribed": true}]));
}

#[tokio::test]
async fn explain_speaks_of_known_ids_and_of_ids_nobody_has() {
    let scene = Scene::new();
    let client = scene.client().await;
    call(&client, "send", json!({"to": "ci", "body": "hi", "client_message_id": "a"})).await;
    let known = call(&client, "explain", json!({"id": "a"})).await;
    assert_eq!(facts(&known)["verdict"], "queued");
    let unknown = call(&client, "explain", json!({"id": "never"})).await;
    assert_eq!((unknown.is_error, facts(&unknown)["verdict"].as_str()), (Some(false), Some("never_seen")));
}

#[tokio::test]
async fn a_reply_ends_the_turn_of_its_message_once() {
    let scene = Scene::new();
    let client = scene.client().await;
    let reply = json!({"message_id": MESSAGE, "client_message_id": "r", "body": "ok"});
    let first = call(&client, "reply", reply.clone()).await;
    assert_eq!((&facts(&first)["outcome"], &facts(&first)["repeated"]), (&json!("processed"), &json!(false)));
    assert_eq!(facts(&first)["rung"], "delivered");
    let again = call(&client, "reply", reply).await;
    assert_eq!(
        (&facts(&again)["turn_id"], &facts(&again)["repeated"]),
        (&facts(&first)["turn_id"], &json!(true))
    );
    let other = json!({"message_id": MESSAGE, "client_message_id": "r", "failed": "no"});
    let other = call(&client, "reply", other).await;
    assert_eq!((other.is_error, facts(&other)["error"].as_str()), (Some(true), Some("turn_over")));
    let late = json!({"message_id": MESSAGE, "client_message_id": "another", "body": "ok"});
    let late = call(&client, "reply", late).await;
    assert_eq!((late.is_error, facts(&late)["error"].as_str()), (Some(true), Some("turn_over")));
    assert_eq!(scene.stored(), 1);
}
