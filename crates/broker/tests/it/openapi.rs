//! The document of the door.

use http::Method;
use model::limits;
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

#[tokio::test]
async fn the_document_says_the_bounds_the_doors_check() {
    let scene = Scene::open().await;
    let document: Value = scene.client().get("/openapi.json").await.unwrap();
    let (id, name) = (limits::CLIENT_MESSAGE_ID_BYTES_MAX, limits::NAME_BYTES_MAX);
    let (reference, body) = (limits::REFERENCE_BYTES_MAX, limits::BODY_BYTES_MAX);
    for (schema, field, bound, value) in [
        ("SendRequest", "client_message_id", "maxLength", id),
        ("SendRequest", "body", "maxLength", body),
        ("SendRequest", "message", "maxLength", body),
        ("SendRequest", "mentions", "maxItems", limits::MENTIONS_MAX),
        ("SendRequest", "reply_to", "maxLength", reference),
        ("SendRequest", "corr_id", "maxLength", reference),
        ("SendRequest", "hops", "maximum", limits::HOPS_MAX.into()),
        ("PostRequest", "client_message_id", "maxLength", id),
        ("PostRequest", "body", "maxLength", body),
        ("PostRequest", "mentions", "maxItems", limits::MENTIONS_MAX),
        ("PostRequest", "hops", "maximum", limits::HOPS_MAX.into()),
        ("ChallengeRequest", "nodeId", "maxLength", name),
        ("ExchangeRequest", "nodeId", "maxLength", name),
        ("NewTask", "id", "maxLength", id),
        ("NewProgress", "id", "maxLength", id),
        ("NewTokenEvent", "source_id", "maxLength", id),
        ("StatusSync", "tasks", "maxItems", limits::HUB_SYNC_TASKS_MAX),
    ] {
        let said = &document["components"]["schemas"][schema]["properties"][field][bound];
        assert_eq!(said.as_u64(), Some(value as u64), "{schema}.{field} {bound}");
    }
    let rows = limits::PAGE_ROWS_MAX as u64;
    for (path, parameter, value) in [
        ("/v1/conversations", "limit", rows),
        ("/v1/conversations/{id}", "limit", rows),
        ("/v1/conversations/{id}", "wait", limits::LONG_POLL_MAX.as_secs()),
        ("/hub/tasks/", "limit", rows),
    ] {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
        let said = parameters.iter().find(|said| said["name"] == parameter).unwrap();
        assert_eq!(said["schema"]["maximum"].as_u64(), Some(value), "{path} {parameter}");
    }
}
