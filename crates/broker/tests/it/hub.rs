//! The hub's records through its doors.

use http::Method;
use http::header::{ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use model::{DeliveryRung, Timestamp};
use net::Secret;
use net::client::{Answer, Ask, Client, ClientError};
use serde_json::{Map, Value, json};
use wire::ask::{Question, Scope, Token};
use wire::direct::AcceptAnswer;
use wire::hub::{Health, INSTANCE_HEADER, MessageList, RecordList, WasRead};

use crate::node::Link;
use crate::scene::{Props, Scene};

pub const ALL: &[Scope] = &[Scope::Send, Scope::Read, Scope::Hub];

/// A client that acts as `member`.
pub async fn caller(scene: &Scene, owner: &mut Link, member: &str, scopes: &[Scope]) -> Client {
    let question = Question::TokenCreate { member: member.parse().unwrap(), scopes: scopes.to_vec() };
    let token: Token = owner.ask(question).await.unwrap();
    scene.client().with_bearer(&Secret::from(token.token))
}

/// A scene with its owner's link and an agent that uses the hub.
pub async fn hub() -> (Scene, Link, Client) {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let agent = caller(&scene, &mut owner, "ci", ALL).await;
    (scene, owner, agent)
}

pub fn ask(method: Method, path: &str, body: &Value) -> Ask {
    Ask::new(method, path).json(body)
}

pub fn under(ask: Ask, key: &str) -> Ask {
    ask.header(HeaderName::from_static("idempotency-key"), key)
}

pub async fn post(client: &Client, path: &str, body: Value) -> Result<Answer, ClientError> {
    client.ask(ask(Method::POST, path, &body)).await
}

async fn patch(
    client: &Client,
    path: &str,
    version: Option<u64>,
    body: Value,
) -> Result<Answer, ClientError> {
    let mut asked = ask(Method::PATCH, path, &body);
    if let Some(version) = version {
        asked = asked.header(IF_MATCH, &format!("\"{version}\""));
    }
    client.ask(asked).await
}

/// Status, code and further fields of a refusal.
pub fn refused(result: Result<Answer, ClientError>) -> (u16, String, Map<String, Value>) {
    match result {
        Err(ClientError::Refused { status, body, .. }) => (status, body.error, body.more),
        Err(other) => panic!("a refusal, not {other}"),
        Ok(answer) => panic!("a refusal, not {}", String::from_utf8_lossy(&answer.body)),
    }
}

fn json_of(answer: &Answer) -> Value {
    answer.json().unwrap()
}

fn tag(answer: &Answer) -> &str {
    answer.headers.get(ETAG).map_or("", |tag| tag.to_str().unwrap())
}

#[tokio::test]
async fn every_kind_is_made_read_listed_and_deleted() {
    let (_scene, _owner, agent) = hub().await;
    for (word, id, body) in [
        ("progress", "p1", json!({"id": "p1", "summary": "built it", "event": "session_close"})),
        ("token-events", "s-1", json!({"source_id": "s-1", "input_tokens": 10, "output_tokens": 2})),
        ("decisions", "d1", json!({"id": "d1", "title": "which store?", "options": ["a", "b"]})),
        ("tasks", "t1", json!({"id": "t1", "title": "do it"})),
        ("workplans", "w1", json!({"id": "w1", "title": "ship", "tasks": ["t1"]})),
    ] {
        let (all, one) = (format!("/hub/{word}/"), format!("/hub/{word}/{id}"));
        let made = post(&agent, &all, body.clone()).await.unwrap();
        assert_eq!((made.status.as_u16(), tag(&made)), (201, "\"1\""), "{word}");
        let made = json_of(&made);
        assert_eq!(
            (&made["id"], &made["version"], &made["created_by"]),
            (&json!(id), &json!(1), &json!("ci"))
        );
        assert_eq!(agent.get::<Value>(&one).await.unwrap(), made);
        let list: RecordList = agent.get(&all).await.unwrap();
        assert_eq!((list.records.len(), list.has_more), (1, false));
        assert_eq!(serde_json::to_value(&list.records[0]).unwrap(), made);
        let (status, code, more) = refused(post(&agent, all.trim_end_matches('/'), body).await);
        assert_eq!((status, code.as_str(), &more["current_version"]), (409, "state_conflict", &json!(1)));
        let gone = agent.ask(Ask::new(Method::DELETE, &one)).await.unwrap();
        assert_eq!(json_of(&gone), json!({"id": id, "deleted": true, "version": 2}));
        assert_eq!(refused(agent.ask(Ask::new(Method::GET, &one)).await).0, 404);
        assert_eq!(refused(agent.ask(Ask::new(Method::DELETE, &one)).await).0, 404);
        let list: RecordList = agent.get(&format!("{all}?after={}", list.cursor)).await.unwrap();
        assert!(list.records.is_empty());
    }
}

#[tokio::test]
async fn a_minted_id_is_told_and_defaults_are_stored() {
    let (_scene, _owner, agent) = hub().await;
    let task = json_of(&post(&agent, "/hub/tasks/", json!({"title": "do it"})).await.unwrap());
    assert_eq!((task["id"].as_str().unwrap().len(), &task["status"]), (26, &json!("todo")));
    let decision = json_of(&post(&agent, "/hub/decisions/", json!({"title": "?"})).await.unwrap());
    assert_eq!(decision["status"], "open");
    let plan = json_of(&post(&agent, "/hub/workplans/", json!({"title": "ship"})).await.unwrap());
    let path = format!("/hub/workstreams/{}", plan["id"].as_str().unwrap());
    let changed = patch(&agent, &path, None, json!({"status": "done"})).await.unwrap();
    assert_eq!((json_of(&changed)["status"].as_str(), tag(&changed)), (Some("done"), "\"2\""));
    let seen: Value = agent.get(&path.replace("workstreams", "workplans")).await.unwrap();
    assert_eq!(seen["version"], 2);
}

#[tokio::test]
async fn a_patch_changes_what_it_names_if_the_record_is_as_it_was_seen() {
    let (scene, mut owner, agent) = hub().await;
    let other = caller(&scene, &mut owner, "planner", ALL).await;
    post(&agent, "/hub/tasks/", json!({"id": "t1", "title": "do it", "assignee": "ci"})).await.unwrap();
    let first = patch(&other, "/hub/tasks/t1", Some(1), json!({"status": "in_progress"})).await.unwrap();
    let first = json_of(&first);
    assert_eq!(
        (&first["title"], &first["updated_by"], &first["version"]),
        (&json!("do it"), &json!("planner"), &json!(2))
    );
    let late = patch(&agent, "/hub/tasks/t1", Some(1), json!({"status": "done", "assignee": null})).await;
    let (status, code, more) = refused(late);
    assert_eq!((status, code.as_str(), &more["current_version"]), (409, "state_conflict", &json!(2)));
    let now =
        patch(&agent, "/hub/tasks/t1", Some(2), json!({"status": "done", "assignee": null})).await.unwrap();
    assert!(json_of(&now).get("assignee").is_none());
    let since = |instant: &str| {
        ask(Method::PATCH, "/hub/tasks/t1", &json!({"priority": "high"})).header(IF_UNMODIFIED_SINCE, instant)
    };
    assert_eq!(refused(agent.ask(since("Sun, 06 Nov 1994 08:49:37 GMT")).await).1, "state_conflict");
    let seen = json_of(&now)["updated_at"].as_str().unwrap().to_owned();
    assert!(agent.ask(since(&seen)).await.is_ok());
    assert_eq!(refused(agent.ask(since("soon")).await).0, 400);
    assert_eq!(refused(patch(&agent, "/hub/tasks/t9", None, json!({"status": "done"})).await).0, 404);
}

#[tokio::test]
async fn a_version_that_was_seen_is_not_sent_again() {
    let (_scene, _owner, agent) = hub().await;
    post(&agent, "/hub/tasks/", json!({"id": "t1", "title": "do it"})).await.unwrap();
    let get = |tag: &str| Ask::new(Method::GET, "/hub/tasks/t1").header(IF_NONE_MATCH, tag);
    let Err(ClientError::Refused { status, .. }) = agent.ask(get("\"1\"")).await else {
        panic!("not modified")
    };
    assert_eq!(status, 304);
    assert_eq!(agent.ask(get("\"2\"")).await.unwrap().status.as_u16(), 200);
}

#[tokio::test]
async fn a_decision_is_resolved_once() {
    let (_scene, _owner, agent) = hub().await;
    post(&agent, "/hub/decisions/", json!({"id": "d1", "title": "which?"})).await.unwrap();
    assert_eq!(refused(patch(&agent, "/hub/decisions/d1", None, json!({"status": "resolved"})).await).0, 400);
    patch(&agent, "/hub/decisions/d1", Some(1), json!({"options": ["a"]})).await.unwrap();
    let resolved =
        post(&agent, "/hub/decisions/d1/resolve", json!({"resolution": "a", "rationale": "b"})).await;
    let resolved = json_of(&resolved.unwrap());
    assert_eq!((&resolved["status"], &resolved["resolved_by"]), (&json!("resolved"), &json!("ci")));
    let again = refused(post(&agent, "/hub/decisions/d1/resolve", json!({"resolution": "b"})).await);
    assert_eq!((again.0, again.1.as_str(), &again.2["current_version"]), (409, "state_conflict", &json!(3)));
}

#[tokio::test]
async fn an_upsert_is_by_the_sources_id() {
    let (_scene, _owner, agent) = hub().await;
    let event = |tokens: u64| json!({"source_id": "s1", "input_tokens": tokens, "output_tokens": 1});
    let upsert = "/hub/token-events/upsert";
    assert_eq!(post(&agent, upsert, event(1)).await.unwrap().status.as_u16(), 201);
    let second = post(&agent, upsert, event(2)).await.unwrap();
    assert_eq!((second.status.as_u16(), tag(&second)), (200, "\"2\""));
    assert_eq!(agent.get::<Value>("/hub/token-events/s1").await.unwrap()["input_tokens"], 2);
    let (status, _, more) =
        refused(post(&agent, upsert, json!({"input_tokens": 1, "output_tokens": 1})).await);
    assert_eq!((status, &more["field"]), (400, &json!("source_id")));
}

#[tokio::test]
async fn a_status_sync_changes_all_or_names_what_stood_in_the_way() {
    let (_scene, _owner, agent) = hub().await;
    for id in ["t1", "t2"] {
        post(&agent, "/hub/tasks/", json!({"id": id, "title": "do it"})).await.unwrap();
    }
    let sync = "/hub/tasks/bulk-status-sync";
    let mixed = json!({"tasks": [{"id": "t1", "status": "done"}, {"id": "t2", "status": "done", "version": 7},
        {"id": "t9", "status": "done"}]});
    let (status, code, more) = refused(post(&agent, sync, mixed).await);
    assert_eq!((status, code.as_str()), (409, "state_conflict"));
    let expected = json!([{"id": "t2", "error": "state_conflict", "current_version": 1},
        {"id": "t9", "error": "not_found"}]);
    assert_eq!(more["refused"], expected);
    assert_eq!(agent.get::<Value>("/hub/tasks/t1").await.unwrap()["version"], 1);
    let good = json!({"tasks": [{"id": "t1", "status": "blocked"}, {"id": "t2", "status": "done", "version": 1},
        {"id": "t1", "status": "done"}]});
    let done = json_of(&post(&agent, sync, good.clone()).await.unwrap());
    assert_eq!(
        done["tasks"],
        json!([{"id": "t1", "version": 3}, {"id": "t2", "version": 2}, {"id": "t1", "version": 3}])
    );
    let stale = ask(Method::POST, sync, &json!({"tasks": [{"id": "t1", "status": "todo"}]}));
    let stale = stale.header(IF_UNMODIFIED_SINCE, "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(refused(agent.ask(stale).await).2["refused"][0]["id"], "t1");
    let tagged = ask(Method::POST, sync, &good).header(IF_MATCH, "\"1\"");
    assert_eq!(refused(agent.ask(tagged).await).0, 400);
    let many: Vec<_> = (0..513).map(|n| json!({"id": format!("t{n}"), "status": "done"})).collect();
    for bad in
        [json!({"tasks": []}), json!({"tasks": many}), json!({"tasks": [{"id": "a/b", "status": "done"}]})]
    {
        assert_eq!(refused(post(&agent, sync, bad).await).0, 400);
    }
}

#[tokio::test]
async fn a_list_is_followed_by_its_own_cursor() {
    let (_scene, _owner, agent) = hub().await;
    for n in 0..5 {
        post(&agent, "/hub/progress/", json!({"id": format!("p{n}"), "summary": "x"})).await.unwrap();
    }
    let page = |list: &RecordList| list.records.iter().map(|record| record.id.clone()).collect::<Vec<_>>();
    let first: RecordList = agent.get("/hub/progress/?limit=2").await.unwrap();
    assert_eq!((page(&first), first.has_more), (vec!["p0".to_owned(), "p1".to_owned()], true));
    let rest: RecordList =
        agent.get(&format!("/hub/progress/?limit=10&after={}", first.cursor)).await.unwrap();
    assert_eq!((page(&rest).len(), rest.has_more), (3, false));
    let end: RecordList = agent.get(&format!("/hub/progress/?after={}", rest.cursor)).await.unwrap();
    assert_eq!((page(&end).len(), &end.cursor), (0, &rest.cursor));
    let big = "x".repeat(60_000);
    for n in 0..20 {
        post(&agent, "/hub/workplans/", json!({"id": format!("w{n}"), "title": big})).await.unwrap();
    }
    let bounded: RecordList = agent.get("/hub/workplans/?limit=1000").await.unwrap();
    assert!(bounded.records.len() < 20 && bounded.has_more, "a page ends at its bytes");
    for (query, status, code) in [
        (format!("?after={}", bounded.cursor), 400, "invalid_cursor"),
        ("?after=tasks:x".into(), 400, "invalid_cursor"),
        ("?after=tasks:99".into(), 410, "cursor_expired"),
        ("?limit=many".into(), 400, "invalid_request"),
        ("?since=1".into(), 400, "invalid_request"),
    ] {
        let answer = refused(agent.ask(Ask::new(Method::GET, format!("/hub/tasks/{query}"))).await);
        assert_eq!((answer.0, answer.1.as_str()), (status, code), "{query}");
    }
}

#[tokio::test]
async fn a_message_through_the_hub_is_an_accept_under_its_key_and_is_marked_read() {
    let (scene, mut owner, agent) = hub().await;
    let body = json!({"to": "@jane", "body": "done"});
    let send = || under(ask(Method::POST, "/hub/messages/", &body), "m1");
    let first = agent.ask(send()).await.unwrap();
    let sent: AcceptAnswer = first.json().unwrap();
    assert_eq!((first.status.as_u16(), sent.client_message_id.as_str(), sent.duplicate), (201, "m1", false));
    assert!(first.headers.get("idempotency-replayed").is_none());
    let again = agent.ask(send()).await.unwrap();
    assert_eq!((again.status, &again.body), (first.status, &first.body));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    let mail = owner.mail().await;
    assert_eq!((mail.len(), mail[0].message.id), (1, sent.broker_message_id));
    owner.ack(&mail, DeliveryRung::Delivered).await;
    let other = under(ask(Method::POST, "/hub/messages/", &json!({"to": "@jane", "body": "other"})), "m1");
    assert_eq!(refused(agent.ask(other).await).1, "idempotency_key_reused");
    let jane = caller(&scene, &mut owner, "jane", ALL).await;
    let path = format!("/hub/messages/{}/read", sent.broker_message_id);
    let read = jane.ask(Ask::new(Method::PATCH, &path)).await.unwrap();
    let read: WasRead = read.json().unwrap();
    let again = jane.ask(ask(Method::PATCH, &path, &json!({"read": true}))).await.unwrap();
    assert_eq!(again.json::<WasRead>().unwrap(), read);
    assert_eq!(refused(jane.ask(ask(Method::PATCH, &path, &json!({"read": false}))).await).0, 400);
    assert_eq!(
        refused(agent.ask(Ask::new(Method::PATCH, &path)).await).0,
        404,
        "it is not the sender's to read"
    );
    assert_eq!(refused(jane.ask(Ask::new(Method::PATCH, "/hub/messages/nonsense/read")).await).0, 404);
}

#[tokio::test]
async fn messages_are_listed_newest_first_for_whoever_may_read_them() {
    let (scene, mut owner, agent) = hub().await;
    for (n, to) in ["@jane", "#a", "@jane"].into_iter().enumerate() {
        let message = ask(Method::POST, "/hub/messages/", &json!({"to": to, "body": n.to_string()}));
        agent.ask(under(message, &format!("m{n}"))).await.unwrap();
    }
    let jane = caller(&scene, &mut owner, "jane", ALL).await;
    let other = caller(&scene, &mut owner, "other", ALL).await;
    let bodies = |page: &MessageList| -> Vec<String> {
        page.messages.iter().map(|listed| listed.message.fields.body.clone()).collect()
    };
    let first: MessageList = jane.get("/hub/messages/?limit=2").await.unwrap();
    assert_eq!((bodies(&first), first.has_more), (vec!["2".into(), "1".into()], true));
    let last: MessageList = jane.get(&format!("/hub/messages/?before={}", first.before)).await.unwrap();
    assert_eq!((bodies(&last), last.has_more, last.before.as_str()), (vec!["0".into()], false, ""));
    let theirs: MessageList = other.get("/hub/messages").await.unwrap();
    assert_eq!(bodies(&theirs), ["1"], "a direct conversation is its two members'");
    let path = format!("/hub/messages/{}/read", last.messages[0].message.id);
    jane.ask(Ask::new(Method::PATCH, &path)).await.unwrap();
    let read: MessageList = jane.get("/hub/messages/").await.unwrap();
    let read: Vec<bool> = read.messages.iter().map(|listed| listed.read_at.is_some()).collect();
    assert_eq!(read, [false, false, true]);
    for bad in ["before=7", "before=tasks:7", "before=messages:x"] {
        let answer = refused(jane.ask(Ask::new(Method::GET, format!("/hub/messages/?{bad}"))).await);
        assert_eq!((answer.0, answer.1.as_str()), (400, "invalid_cursor"), "{bad}");
    }
    let deaf = caller(&scene, &mut owner, "deaf", &[Scope::Hub, Scope::Send]).await;
    assert_eq!(refused(deaf.ask(Ask::new(Method::GET, "/hub/messages/")).await).0, 403);
}

#[tokio::test]
async fn a_token_uses_the_hub_as_far_as_its_scopes_go() {
    let (scene, mut owner, _agent) = hub().await;
    let message = json!({"to": "#a", "body": "hi"});
    let task = json!({"title": "do it"});
    let path = "/hub/messages/01890a5d-ac96-774b-bcce-b302099a8057/read";
    for (name, scopes, tasks, messages, read) in [
        ("none", &[Scope::Send, Scope::Read][..], 403, 403, 403),
        ("hub", &[Scope::Hub], 201, 403, 403),
        ("send", &[Scope::Hub, Scope::Send], 201, 201, 403),
        ("read", &[Scope::Hub, Scope::Read], 201, 403, 404),
    ] {
        let client = caller(&scene, &mut owner, name, scopes).await;
        let status = |result: Result<Answer, ClientError>| match result {
            Ok(answer) => answer.status.as_u16(),
            Err(error) => refused(Err(error)).0,
        };
        assert_eq!(status(post(&client, "/hub/tasks/", task.clone()).await), tasks, "{name}");
        assert_eq!(status(post(&client, "/hub/messages/", message.clone()).await), messages, "{name}");
        assert_eq!(status(client.ask(Ask::new(Method::PATCH, path)).await), read, "{name}");
    }
    assert_eq!(refused(post(&scene.client(), "/hub/tasks/", task).await).0, 401);
}

#[tokio::test]
async fn every_answer_names_the_hub_and_its_health_tells_its_time() {
    let (props, clock) = Props::with_manual_clock();
    let scene = Scene::with(props).await;
    let health = scene.client().ask(Ask::new(Method::GET, "/hub/health")).await.unwrap();
    let told: Health = health.json().unwrap();
    let instance = scene.broker.mesh().id.to_string();
    assert_eq!((told.status.as_str(), &told.instance, told.idempotency_days), ("ok", &instance, 14));
    assert_eq!(told.now, model::Clock::now(&*clock));
    assert_eq!(health.headers[INSTANCE_HEADER].to_str().unwrap(), instance);
    let other = Scene::open().await;
    assert_ne!(other.broker.mesh().id.to_string(), instance);
    assert!(told.now > Timestamp::from_micros(0));
}

#[tokio::test]
async fn the_schema_of_each_kind_is_served() {
    let (_scene, _owner, agent) = hub().await;
    let served: Value = agent.get("/hub/schemas").await.unwrap();
    for (kind, required) in [
        ("progress", json!(["summary"])),
        ("token-events", json!(["input_tokens", "output_tokens"])),
        ("decisions", json!(["title"])),
        ("tasks", json!(["title"])),
        ("workplans", json!(["title"])),
    ] {
        let schema = &served["schemas"][kind];
        assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &required), "{kind}");
        assert_eq!(schema["additionalProperties"], false, "{kind}");
    }
}
