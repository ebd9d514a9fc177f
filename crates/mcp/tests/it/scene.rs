//! A daemon's local door that remembers what it was asked and can be told to break off, and a client before it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ::http::HeaderMap;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream;
use mcp::{Door, Server};
use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::UnixListener;

pub const ROW: &str = "01M7GH3C2R6V0D9QK1TJX4N8YE";
pub const MESSAGE: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// What the daemon was asked, and how it is to behave.
#[derive(Default)]
pub struct Fake {
    /// Bodies by client id: what is stored, whatever the caller heard of it.
    pub stored: Mutex<BTreeMap<String, Value>>,
    /// Every request's `authorization` and `postrider-as`.
    pub callers: Mutex<Vec<(Option<String>, Option<String>)>>,
    /// Queries of the inbox.
    pub queries: Mutex<Vec<String>>,
    /// Break off the next answer to a send, after storing.
    pub cut: AtomicBool,
    /// Long polls under way.
    pub polls: AtomicUsize,
}

/// The daemon on a socket of its own.
pub struct Scene {
    pub fake: Arc<Fake>,
    folder: TempDir,
}

/// Counts a long poll as long as somebody waits for it.
struct Poll(Arc<Fake>);

impl Drop for Poll {
    fn drop(&mut self) {
        self.0.polls.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Scene {
    /// A daemon that answers.
    pub fn new() -> Self {
        let scene = Self::silent();
        let listener = UnixListener::bind(scene.socket()).unwrap();
        let routes = Router::new()
            .route("/v1/send", post(send))
            .route("/v1/messages/{id}", get(life))
            .route("/v1/inbox", get(inbox))
            .route("/v1/inbox/seen", post(async || Json(json!({"marked_seen": 1}))))
            .route("/v1/turns", post(begin))
            .route("/v1/turns/{id}/end", post(end))
            .route("/v1/peers", get(peers))
            .route("/v1/topic/list", get(topics))
            .route("/v1/explain/{id}", get(explain))
            .with_state(scene.fake.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        scene
    }

    /// A home whose daemon does not run.
    pub fn silent() -> Self {
        Self { fake: Arc::default(), folder: tempfile::tempdir().unwrap() }
    }

    pub fn server(&self) -> Server {
        Server::new(Door::at(self.socket(), "the test's socket".to_owned()), "0.0.0-test")
    }

    /// A client of the SDK, connected.
    pub async fn client(&self) -> RunningService<RoleClient, ()> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let server = self.server();
        tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
        ().serve(ours).await.unwrap()
    }

    pub fn stored(&self) -> usize {
        self.fake.stored.lock().unwrap().len()
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("sock")
    }
}

/// Calls a tool with an object of arguments.
pub async fn call(
    client: &RunningService<RoleClient, ()>,
    tool: &'static str,
    arguments: Value,
) -> CallToolResult {
    let arguments: JsonObject = serde_json::from_value(arguments).unwrap();
    let request = CallToolRequestParams::new(tool).with_arguments(arguments);
    client.call_tool(request).await.unwrap()
}

/// The text of a result.
pub fn text(result: &CallToolResult) -> String {
    let block = serde_json::to_value(&result.content[0]).unwrap();
    block["text"].as_str().unwrap().to_owned()
}

/// The data of a result.
pub fn facts(result: &CallToolResult) -> &Value {
    result.structured_content.as_ref().unwrap()
}

async fn send(State(fake): State<Arc<Fake>>, headers: HeaderMap, Json(asked): Json<Value>) -> Response {
    fake.heard(&headers);
    let id = asked["client_message_id"].as_str().unwrap().to_owned();
    let first = fake.stored.lock().unwrap().entry(id.clone()).or_insert_with(|| asked.clone()).clone();
    if first != asked {
        let refusal = json!({"error": "idempotency_key_reused", "message": "Used for another message."});
        return (::http::StatusCode::CONFLICT, Json(refusal)).into_response();
    }
    if fake.cut.swap(false, Ordering::SeqCst) {
        let pieces = [Ok(Bytes::from_static(b"{\"client_")), Err(io::Error::other("cut"))];
        return Response::new(Body::from_stream(stream::iter(pieces)));
    }
    let receipt = json!({"rung": "queued", "by": "here", "at": "2027-01-01T00:00:00Z"});
    let answer = json!({"client_message_id": id, "row": ROW, "status": "queued", "receipt": receipt});
    (::http::StatusCode::ACCEPTED, Json(answer)).into_response()
}

async fn life(State(fake): State<Arc<Fake>>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    fake.heard(&headers);
    if id != ROW && !fake.stored.lock().unwrap().contains_key(&id) {
        let refusal = json!({"error": "not_found", "message": "This node holds no such message."});
        return (::http::StatusCode::NOT_FOUND, Json(refusal)).into_response();
    }
    let rung = |rung: &str, by: &str| json!({"rung": rung, "by": by, "at": "2027-01-01T00:00:00Z"});
    Json(json!({
        "direction": "out", "id": ROW, "client_message_id": "a", "sender": "jane", "to": "@ci", "status": "done",
        "receipt": rung("delivered", "broker"), "rungs": [rung("queued", "here"), rung("accepted", "broker")],
        "attempts": 1, "enqueued_at": "2027-01-01T00:00:00Z", "broker_message_id": MESSAGE, "history_id": 3,
    }))
    .into_response()
}

async fn inbox(State(fake): State<Arc<Fake>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    fake.heard(&headers);
    let query = query.unwrap_or_default();
    fake.queries.lock().unwrap().push(query.clone());
    if query.contains("from=nobody") {
        fake.polls.fetch_add(1, Ordering::SeqCst);
        let _poll = Poll(fake.clone());
        std::future::pending::<()>().await;
    }
    Json(json!({"items": [letter()], "unread": 1, "total": 1, "cursor": "1:e"})).into_response()
}

fn letter() -> Value {
    json!({
        "id": MESSAGE, "conversation": MESSAGE, "conversation_name": "@tom", "history_id": 1, "sender": "tom",
        "created_at": "2027-01-01T00:00:00Z", "cursor": "", "client_message_id": "theirs", "to": "@jane",
        "body": "one\ntwo", "recipient": "jane", "inbox_seq": 7, "received_at": "2027-01-01T00:00:00Z",
        "rung": "delivered", "seen": false,
    })
}

async fn begin(State(fake): State<Arc<Fake>>, headers: HeaderMap, Json(asked): Json<Value>) -> Response {
    fake.heard(&headers);
    if !fake.stored.lock().unwrap().is_empty() {
        let refusal = json!({"error": "turn_over", "message": "The message has had its turn."});
        return (::http::StatusCode::CONFLICT, Json(refusal)).into_response();
    }
    let turn = json!({
        "turn_id": asked["turn_id"], "message": letter(), "attempt": 1, "redelivered": false, "state": "open",
        "lease_until": "2027-01-01T00:01:00Z", "began_at": "2027-01-01T00:00:00Z",
    });
    (::http::StatusCode::CREATED, Json(turn)).into_response()
}

/// An end is taken once; the same end again is answered from the first.
async fn end(State(fake): State<Arc<Fake>>, Path(turn): Path<String>, Json(asked): Json<Value>) -> Response {
    let mut stored = fake.stored.lock().unwrap();
    let known = stored.get(&turn).cloned();
    if known.is_none() && !stored.is_empty() {
        let refusal = json!({"error": "not_found", "message": "There is no such turn."});
        return (::http::StatusCode::NOT_FOUND, Json(refusal)).into_response();
    }
    match &known {
        Some(first) if *first != asked => {
            let refusal = json!({"error": "turn_over", "message": "It ended otherwise."});
            return (::http::StatusCode::CONFLICT, Json(refusal)).into_response();
        }
        Some(_) | None => stored.insert(turn.clone(), asked.clone()),
    };
    drop(stored);
    if fake.cut.swap(false, Ordering::SeqCst) {
        let pieces = [Ok(Bytes::from_static(b"{\"turn")), Err(io::Error::other("cut"))];
        return Response::new(Body::from_stream(stream::iter(pieces)));
    }
    let reply = asked["reply"]["client_message_id"].as_str();
    let reply = reply.map(|id| json!({"client_message_id": id, "row": ROW}));
    let mut ended = json!({"turn_id": turn, "outcome": asked["outcome"], "duplicate": known.is_some()});
    if let Some(reply) = reply {
        ended["reply"] = reply;
    }
    Json(ended).into_response()
}

async fn peers(State(fake): State<Arc<Fake>>, headers: HeaderMap) -> Json<Value> {
    fake.heard(&headers);
    let member = |name: &str, kind: &str| json!({"id": MESSAGE, "name": name, "kind": kind, "home": "here", "role": "member"});
    Json(json!({"mesh": "home", "peers": [member("jane", "person"), member("ci", "agent")]}))
}

async fn topics() -> Json<Value> {
    let topic = json!({"topic": "alerts", "conversation": MESSAGE, "head": 4, "subscribed": true});
    Json(json!({"mesh": "home", "topics": [topic]}))
}

async fn explain(State(fake): State<Arc<Fake>>, Path(id): Path<String>) -> Json<Value> {
    let known = fake.stored.lock().unwrap().contains_key(&id);
    let (verdict, sentence) = if known { ("queued", "safe here") } else { ("never_seen", "nobody has it") };
    Json(json!({
        "id": id, "verdict": verdict, "sentence": sentence, "needs_person": false, "rungs": [], "recipients": [],
        "broker": "never_committed", "asked": ["here"], "unasked": [], "next": "nothing to do", "fix": [],
    }))
}

impl Fake {
    fn heard(&self, headers: &HeaderMap) {
        let line = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        self.callers.lock().unwrap().push((line("authorization"), line("postrider-as")));
    }
}
