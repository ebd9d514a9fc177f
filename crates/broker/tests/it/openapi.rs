//! The document of the door.

use http::Method;
use net::client::{Ask, ClientError};
use serde_json::Value;

use crate::scene::Scene;

#[tokio::test]
async fn the_document_names_every_address_and_every_address_it_names_answers() {
    let scene = Scene::open().await;
    let client = scene.client();
    let document: Value = client.get("/openapi.json").await.unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(document["info"]["title"], "Postrider");
    let paths = document["paths"].as_object().unwrap();
    let mut names: Vec<_> = paths.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "/healthz",
            "/hub/decisions/",
            "/hub/decisions/{id}",
            "/hub/decisions/{id}/resolve",
            "/hub/health",
            "/hub/idempotency/{key}",
            "/hub/messages/",
            "/hub/messages/{id}/read",
            "/hub/progress/",
            "/hub/progress/{id}",
            "/hub/schemas",
            "/hub/tasks/",
            "/hub/tasks/bulk-status-sync",
            "/hub/tasks/{id}",
            "/hub/token-events/",
            "/hub/token-events/upsert",
            "/hub/token-events/{id}",
            "/hub/workplans/",
            "/hub/workplans/{id}",
            "/metrics",
            "/readyz",
            "/v1/auth/challenge",
            "/v1/auth/exchange",
            "/v1/conversations",
            "/v1/conversations/{id}",
            "/v1/conversations/{id}/events",
            "/v1/conversations/{id}/messages",
            "/v1/conversations/{id}/read",
            "/v1/explain/{id}",
            "/v1/link",
            "/v1/members",
            "/v1/meshes/{mesh}/messages",
            "/v1/meshes/{mesh}/messages/{client_message_id}",
            "/v1/session",
            "/v1/subscribe",
            "/v1/tickets",
        ]
    );
    for (path, operations) in paths {
        for method in operations.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            match client.ask(Ask::new(method, path.as_str())).await {
                Ok(_) => {}
                Err(ClientError::Refused { status, .. }) => {
                    assert!(![404, 405].contains(&status), "{path} {status}")
                }
                Err(other) => panic!("{path}: {other}"),
            }
        }
    }
}

#[tokio::test]
async fn every_schema_the_document_refers_to_is_in_it() {
    let scene = Scene::open().await;
    let document: Value = scene.client().get("/openapi.json").await.unwrap();
    let mut missing = Vec::new();
    let mut queue = vec![&document];
    while let Some(value) = queue.pop() {
        match value {
            Value::Object(entries) => {
                if let Some(reference) = entries.get("$ref").and_then(Value::as_str) {
                    let pointer = reference.trim_start_matches('#');
                    if document.pointer(pointer).is_none() {
                        missing.push(reference.to_owned());
                    }
                }
                queue.extend(entries.values());
            }
            Value::Array(items) => queue.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    let send = &document["components"]["schemas"]["SendRequest"];
    assert_eq!(
        send["additionalProperties"], false,
        "callers' unknown fields are refused, and the document says so"
    );
    assert_eq!(send["required"], serde_json::json!(["to"]));
}
