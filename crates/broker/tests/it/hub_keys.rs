//! A hub write happens once under its key, whatever is repeated, raced, aged or made up.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::{HeaderName, IF_MATCH, IF_UNMODIFIED_SINCE};
use ledger::PostgresLedger;
use model::OsEntropy;
use net::client::{Answer, Ask, Client, ClientError};
use serde_json::{Value, json};
use testkit::postgres::Database;
use tokio::task::JoinSet;
use wire::hub::{CREATED_HEADER, KeyState, KeyStatus};
use wire::relay::hub_fingerprint;

use crate::hub::{ALL, ask, caller, hub, post, refused, under};
use crate::scene::{Props, Saturated, Scene};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn task(id: &str) -> Value {
    json!({"id": id, "title": "do it"})
}

fn create(id: &str, key: &str) -> Ask {
    under(ask(Method::POST, "/hub/tasks/", &task(id)), key)
}

fn done(key: &str) -> Ask {
    under(ask(Method::PATCH, "/hub/tasks/t1", &json!({"status": "done"})), key)
}

fn replayed(answer: &Answer) -> bool {
    answer.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
}

async fn key(client: &Client, key: &str, query: &str) -> KeyStatus {
    client.get(&format!("/hub/idempotency/{key}{query}")).await.unwrap()
}

async fn version(client: &Client, id: &str) -> u64 {
    client.get::<Value>(&format!("/hub/tasks/{id}")).await.unwrap()["version"].as_u64().unwrap()
}

#[tokio::test]
async fn a_copy_gets_the_first_answer_byte_for_byte_also_after_later_changes() {
    let (_scene, _owner, agent) = hub().await;
    let first = agent.ask(create("t1", "k1")).await.unwrap();
    assert!(!replayed(&first));
    let change = agent.ask(done("k2")).await.unwrap();
    let again = agent.ask(create("t1", "k1")).await.unwrap();
    assert_eq!((again.status, &again.body), (first.status, &first.body));
    assert_eq!(again.headers["etag"], first.headers["etag"]);
    assert!(replayed(&again));
    // A precondition is no part of what was asked, and it held when it was asked.
    let stale = agent.ask(done("k2").header(IF_MATCH, "\"1\"")).await.unwrap();
    assert!(replayed(&stale) && stale.body == change.body);
    assert_eq!(version(&agent, "t1").await, 2);
    let without_slash = under(ask(Method::POST, "/hub/tasks", &task("t1")), "k1");
    assert!(replayed(&agent.ask(without_slash).await.unwrap()));
}

#[tokio::test]
async fn a_question_about_a_key_names_the_request_as_a_relay_computes_it() {
    let (_scene, _owner, agent) = hub().await;
    let message = json!({"to": "#a", "body": "hi", "priority": "low"});
    for (name, method, path, body) in [
        ("k1", Method::POST, "/tasks/", task("t1")),
        ("k2", Method::PATCH, "/tasks/t1", json!({"status": "done"})),
        ("k3", Method::POST, "/workstreams", json!({"id": "w1", "title": "w"})),
        ("k4", Method::PATCH, "/workstreams/w1", json!({"title": "x"})),
        ("k5", Method::POST, "/messages/", message),
    ] {
        agent.ask(under(ask(method.clone(), &format!("/hub{path}"), &body), name)).await.unwrap();
        let status = key(&agent, name, "").await;
        let own = hub_fingerprint(method.as_str(), path, None, body.to_string().as_bytes());
        assert_eq!(status.fingerprint, own.map(|own| own.to_string()), "{method} {path}");
        assert!(status.fingerprint.is_some() && status.recorded_at.is_some_and(|at| at <= status.now));
    }
}

#[tokio::test]
async fn an_answer_names_the_instant_of_its_change_and_a_condition_with_it_finds_that_change() {
    let (_scene, _owner, agent) = hub().await;
    let sync = json!({"tasks": [{"id": "t1", "status": "done"}]});
    let batch = || ask(Method::POST, "/hub/tasks/bulk-status-sync", &sync);
    let mut seen = Vec::new();
    for write in [create("t1", "k1"), done("k2"), batch()] {
        let answer = agent.ask(write).await.unwrap();
        let changed_at = answer.headers["postrider-changed-at"].to_str().unwrap().to_owned();
        let task: Value = agent.get("/hub/tasks/t1").await.unwrap();
        assert_eq!(task["updated_at"], changed_at.as_str());
        seen.push(changed_at);
    }
    let since = |at: &str| batch().header(IF_UNMODIFIED_SINCE, at);
    assert_eq!(refused(agent.ask(since(&seen[1])).await).1, "state_conflict");
    assert!(agent.ask(since(&seen[2])).await.is_ok());
    let copy = agent.ask(create("t1", "k1")).await.unwrap();
    assert!(
        replayed(&copy) && !copy.headers.contains_key("postrider-changed-at"),
        "a copy tells of no change"
    );
}

#[tokio::test]
async fn the_three_conflicts_are_told_apart_by_their_code() {
    let (scene, mut owner, agent) = hub().await;
    agent.ask(create("t1", "k1")).await.unwrap();
    for other in [
        create("t2", "k1"),
        under(ask(Method::POST, "/hub/decisions/", &task("t1")), "k1"),
        under(ask(Method::PATCH, "/hub/tasks/t1", &json!({"status": "done"})), "k1"),
        under(ask(Method::POST, "/hub/messages/", &json!({"to": "#a", "body": "hi"})), "k1"),
        under(Ask::new(Method::DELETE, "/hub/tasks/t1"), "k1"),
    ] {
        let (status, code, _) = refused(agent.ask(other).await);
        assert_eq!((status, code.as_str()), (409, "idempotency_key_reused"));
    }
    let stale = done("k2").header(IF_MATCH, "\"7\"");
    assert_eq!(refused(agent.ask(stale).await).1, "state_conflict");
    assert!(agent.ask(done("k2")).await.is_ok(), "a conflict used no key up");
    let other = caller(&scene, &mut owner, "planner", ALL).await;
    assert!(!replayed(&other.ask(create("t2", "k1")).await.unwrap()), "a key is its principal's");
}

#[tokio::test]
async fn sixty_four_copies_at_once_are_one_change_and_others_wait_or_repeat() {
    for store in ["sqlite", "postgres"] {
        let database = Database::create().unwrap();
        let scene = match store {
            "sqlite" => Scene::open().await,
            _ => {
                let ledger = PostgresLedger::open(&database.url(), Arc::new(OsEntropy)).await.unwrap();
                Scene::over(Arc::new(ledger), Props::default()).await.unwrap()
            }
        };
        let mut owner = scene.owner("jane").await.link().await;
        let agent = caller(&scene, &mut owner, "ci", ALL).await;
        agent.ask(create("t1", "made")).await.unwrap();
        let mut set = JoinSet::new();
        for _ in 0..64 {
            let agent = agent.clone();
            set.spawn(async move { agent.ask(done("k")).await });
        }
        let (mut first, mut copies, mut waiting) = (0, 0, 0);
        for result in set.join_all().await {
            match result {
                Ok(answer) if replayed(&answer) => copies += 1,
                Ok(_) => first += 1,
                Err(ClientError::Refused { status: 409, body, retry_after }) => {
                    assert_eq!(body.error, "idempotency_in_progress");
                    assert!(retry_after.is_some());
                    waiting += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!((first, copies + waiting), (1, 63), "{store}");
        assert_eq!(version(&agent, "t1").await, 2, "{store}");
        assert!(replayed(&agent.ask(done("k")).await.unwrap()));
    }
}

#[tokio::test]
async fn two_hubs_over_one_database_are_one_hub() {
    let database = Database::create().unwrap();
    let over = async || {
        let ledger = PostgresLedger::open(&database.url(), Arc::new(OsEntropy)).await.unwrap();
        Scene::over(Arc::new(ledger), Props::default()).await.unwrap()
    };
    let (one, two) = (over().await, over().await);
    let mut owner = one.owner("jane").await.link().await;
    let question = wire::ask::Question::TokenCreate { member: "ci".parse().unwrap(), scopes: ALL.to_vec() };
    let token: wire::ask::Token = owner.ask(question).await.unwrap();
    let token = net::Secret::from(token.token);
    let (here, there) = (one.client().with_bearer(&token), two.client().with_bearer(&token));
    here.ask(create("t1", "made")).await.unwrap();
    let mut set = JoinSet::new();
    for way in 0..32 {
        let client = if way % 2 == 0 { here.clone() } else { there.clone() };
        set.spawn(async move { client.ask(done("k")).await });
    }
    let fresh = set.join_all().await.into_iter().flatten().filter(|answer| !replayed(answer)).count();
    assert_eq!((fresh, version(&there, "t1").await), (1, 2));
    let instance = |answer: Answer| answer.headers["postrider-instance"].clone();
    assert_eq!(
        instance(here.ask(Ask::new(Method::GET, "/hub/health")).await.unwrap()),
        instance(there.ask(Ask::new(Method::GET, "/hub/health")).await.unwrap())
    );
}

#[tokio::test]
async fn a_known_key_is_answered_when_no_budget_is_left_and_a_new_one_is_told_to_wait() {
    let (props, _clock) = Props::with_manual_clock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = ledger::SqliteLedger::open(&path, props.clock.clone(), Arc::new(OsEntropy)).unwrap();
    let ledger: Arc<dyn ledger::Ledger> = Arc::new(ledger);
    let free = Scene::over(ledger.clone(), props).await.unwrap();
    let mut owner = free.owner("jane").await.link().await;
    let question = wire::ask::Question::TokenCreate { member: "ci".parse().unwrap(), scopes: ALL.to_vec() };
    let token: wire::ask::Token = owner.ask(question).await.unwrap();
    let token = net::Secret::from(token.token);
    free.client().with_bearer(&token).ask(create("t1", "k1")).await.unwrap();
    let props = Props { limiter: Some(Arc::new(Saturated)), ..Props::default() };
    let spent = Scene::over(ledger, props).await.unwrap();
    let agent = spent.client().with_bearer(&token);
    assert!(replayed(&agent.ask(create("t1", "k1")).await.unwrap()));
    let (status, code, more) = refused(agent.ask(create("t2", "k2")).await);
    assert_eq!((status, code.as_str(), &more["retry_after_ms"]), (429, "rate_limited", &json!(1500)));
    let malformed = under(ask(Method::POST, "/hub/tasks/", &json!({"titel": "x"})), "k1");
    assert_eq!(
        refused(agent.ask(malformed).await).1,
        "idempotency_key_reused",
        "the key comes before the shape"
    );
}

#[tokio::test]
async fn ce19_ce20_a_fenced_key_answers_every_later_copy_with_retired() {
    let (_scene, _owner, agent) = hub().await;
    assert_eq!(key(&agent, "k1", "").await.state, KeyState::Absent);
    assert_eq!(key(&agent, "k1", "?fence=true").await.state, KeyState::Retired);
    let (status, code, _) = refused(agent.ask(create("t1", "k1")).await);
    assert_eq!((status, code.as_str()), (409, "idempotency_key_retired"));
    let message = under(ask(Method::POST, "/hub/messages/", &json!({"to": "#a", "body": "hi"})), "k1");
    assert_eq!(refused(agent.ask(message).await).1, "idempotency_key_retired");
    let first = agent.ask(create("t1", "k2")).await.unwrap();
    let status = key(&agent, "k2", "?fence=true").await;
    assert_eq!(
        (status.state, status.status, status.etag.as_deref()),
        (KeyState::Committed, Some(201), Some("\"1\""))
    );
    assert_eq!(status.body, Some(first.json().unwrap()));
    assert!(replayed(&agent.ask(create("t1", "k2")).await.unwrap()), "a fence changes nothing that is done");
    let sent = under(ask(Method::POST, "/hub/messages/", &json!({"to": "#a", "body": "hi"})), "m1");
    let sent = agent.ask(sent).await.unwrap();
    let status = key(&agent, "m1", "?fence=true").await;
    assert_eq!((status.state, status.body), (KeyState::Committed, Some(sent.json().unwrap())));
}

#[tokio::test]
async fn ce21_a_copy_past_the_memory_is_refused_and_its_key_is_unknown() {
    let (props, clock) = Props::with_manual_clock();
    let scene = Scene::with(props).await;
    let mut owner = scene.owner("jane").await.link().await;
    let agent = caller(&scene, &mut owner, "ci", ALL).await;
    agent.ask(create("t1", "made")).await.unwrap();
    let created = model::Clock::now(&*clock).to_string();
    let header = HeaderName::from_static(CREATED_HEADER);
    let copy = || done("k").header(header.clone(), &created);
    agent.ask(copy()).await.unwrap();
    clock.advance(DAY * 15);
    assert!(replayed(&agent.ask(copy()).await.unwrap()), "what is known is answered at any age");
    while scene.ledger.expire_hub_keys(100).await.unwrap() > 0 {}
    let (status, code, _) = refused(agent.ask(copy()).await);
    assert_eq!((status, code.as_str()), (422, "idempotency_key_expired"));
    assert_eq!(key(&agent, "k", &format!("?fence=true&created={created}")).await.state, KeyState::Unknown);
    let message = under(ask(Method::POST, "/hub/messages/", &json!({"to": "#a", "body": "hi"})), "m");
    assert_eq!(refused(agent.ask(message.header(header, &created)).await).1, "idempotency_key_expired");
    assert_eq!(version(&agent, "t1").await, 2);
}

#[tokio::test]
async fn what_no_polite_client_would_ask_gets_its_named_answer() {
    let (scene, _owner, agent) = hub().await;
    let long = "x".repeat(70_000);
    let key_header = HeaderName::from_static("idempotency-key");
    for (body, status, code) in [
        (json!({"title": long}), 413, "too_large"),
        (json!({"title": "t", "surprise": 1}), 400, "invalid_request"),
        (json!({"title": 7}), 400, "invalid_request"),
        (json!({"title": ""}), 400, "invalid_request"),
        (json!({"title": "t", "id": "../x"}), 400, "invalid_request"),
        (json!({"title": "t", "id": ".."}), 400, "invalid_request"),
        (json!({"title": "t", "version": 9}), 400, "invalid_request"),
        (json!({"title": "t", "meta": {"n": 9_007_199_254_740_993_u64}}), 400, "invalid_request"),
        (json!([1, 2]), 400, "invalid_request"),
        (json!("title"), 400, "invalid_request"),
    ] {
        let answer = refused(post(&agent, "/hub/tasks/", body.clone()).await);
        assert_eq!((answer.0, answer.1.as_str()), (status, code), "{:.60}", body.to_string());
    }
    for bad in ["", "a b", "é", &"k".repeat(129), &"k".repeat(10_000)] {
        let asked = ask(Method::POST, "/hub/tasks/", &task("t1")).header(key_header.clone(), bad);
        assert_eq!(refused(agent.ask(asked).await).0, 400, "{:.20}", bad);
    }
    assert_eq!(refused(agent.ask(Ask::new(Method::POST, "/hub/tasks/")).await).0, 400, "no body");
    for path in ["/hub/tasks/%2e%2e", "/hub/tasks/a%2Fb", "/hub/tasks/%00", "/hub/nothing/", "/hub/tasks/a/b"]
    {
        assert_eq!(refused(agent.ask(Ask::new(Method::GET, path)).await).0, 404, "{path}");
    }
    let overridden = ask(Method::POST, "/hub/tasks/", &task("t1"))
        .header(HeaderName::from_static("x-http-method-override"), "DELETE");
    assert_eq!(agent.ask(overridden).await.unwrap().status.as_u16(), 201, "a method is what it says it is");
    let created = ask(Method::POST, "/hub/tasks/", &task("t2"))
        .header(HeaderName::from_static(CREATED_HEADER), "yesterday");
    assert_eq!(refused(agent.ask(created).await).0, 400);
    assert_eq!(refused(agent.ask(Ask::new(Method::GET, "/hub/idempotency/a%20b")).await).0, 400);
    let with_body = ask(Method::DELETE, "/hub/tasks/t1", &json!({"why": "because"}));
    assert_eq!(refused(agent.ask(with_body).await).0, 400);
    let text =
        String::from_utf8(scene.client().ask(Ask::new(Method::GET, "/metrics")).await.unwrap().body.to_vec());
    let text = text.unwrap();
    assert!(text.contains("cm_hub_writes_total 1\n"), "{text}");
    assert!(text.contains("cm_hub_refused_total{reason=\"too_large\"} 1\n"), "{text}");
}

#[tokio::test]
async fn a_removed_members_token_writes_nothing() {
    let (_scene, mut owner, agent) = hub().await;
    agent.ask(create("t1", "k1")).await.unwrap();
    let question = wire::ask::Question::MemberRemove { name: "ci".parse().unwrap() };
    owner.ask::<wire::ask::Done>(question).await.unwrap();
    assert_eq!(refused(agent.ask(create("t1", "k1")).await).0, 401, "not even a replay");
}
