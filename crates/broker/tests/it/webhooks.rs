//! Webhooks of a running broker: managed over the link, pushed by its task.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use http::HeaderMap;
use ledger::PostgresLedger;
use model::{DeliveryRung, OsEntropy};
use standardwebhooks::Webhook as Oracle;
use testkit::postgres::Database;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
use wire::ask::{Done, Question, RecipientRung, TopicRow, Webhook, WebhookRow};

use crate::node::{Link, accepted, item};
use crate::scene::{Props, Scene};

/// No push of a healthy broker takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// An endpoint that writes down what it takes, and how many calls it had at once.
struct Endpoint {
    url: String,
    log: Arc<Log>,
    changes: watch::Receiver<usize>,
}

struct Log {
    calls: Mutex<Vec<(HeaderMap, String)>>,
    count: watch::Sender<usize>,
    /// Calls under way, by id.
    under_way: Mutex<HashMap<String, usize>>,
    clashes: Mutex<Vec<String>>,
    /// Answers nothing until this is true.
    open: watch::Sender<bool>,
}

impl Endpoint {
    async fn start(is_open: bool) -> Self {
        let (count, changes) = watch::channel(0);
        let log = Arc::new(Log {
            calls: Mutex::default(),
            count,
            under_way: Mutex::default(),
            clashes: Mutex::default(),
            open: watch::Sender::new(is_open),
        });
        let router = Router::new().route("/", post(take)).with_state(log.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, router).into_future());
        Self { url, log, changes }
    }

    /// Waits until `count` calls were taken; their headers and bodies.
    async fn calls(&mut self, count: usize) -> Vec<(HeaderMap, String)> {
        timeout(PATIENCE, self.changes.wait_for(|taken| *taken >= count)).await.unwrap().unwrap();
        self.log.calls.lock().unwrap().clone()
    }
}

async fn take(State(log): State<Arc<Log>>, headers: HeaderMap, body: String) {
    let id = headers["webhook-id"].to_str().unwrap().to_owned();
    let at_once = {
        let mut under_way = log.under_way.lock().unwrap();
        let calls = under_way.entry(id.clone()).or_default();
        *calls += 1;
        *calls
    };
    if at_once > 1 {
        log.clashes.lock().unwrap().push(id.clone());
    }
    log.open.subscribe().wait_for(|open| *open).await.unwrap();
    // Room for another broker to push the same row, if it would.
    tokio::task::yield_now().await;
    *log.under_way.lock().unwrap().get_mut(&id).unwrap() -= 1;
    log.calls.lock().unwrap().push((headers, body));
    log.count.send_modify(|count| *count += 1);
}

fn body_of(call: &(HeaderMap, String)) -> (String, String) {
    let told: serde_json::Value = serde_json::from_str(&call.1).unwrap();
    let text = |name: &str| told[name].as_str().unwrap().to_owned();
    (text("conversation"), text("body"))
}

/// Endpoints on this machine may be called.
fn calling_here() -> Props {
    Props { webhook_allowed_hosts: vec!["127.0.0.1".parse().unwrap()], ..Props::default() }
}

async fn with_owner() -> (Scene, Link) {
    let scene = Scene::with(calling_here()).await;
    let jane = scene.owner("jane").await.link().await;
    (scene, jane)
}

async fn create(link: &mut Link, name: &str, url: &str, topics: &[&str]) -> Result<Webhook, String> {
    let topics = topics.iter().map(|topic| topic.parse().unwrap()).collect();
    link.ask(Question::WebhookCreate { name: name.parse().unwrap(), url: url.to_owned(), topics }).await
}

#[tokio::test]
async fn a_committed_message_is_pushed_and_its_receiver_believes_it() {
    let (scene, mut jane) = with_owner().await;
    let mut endpoint = Endpoint::start(true).await;
    jane.ask::<TopicRow>(Question::TopicCreate { topic: "alerts".parse().unwrap() }).await.unwrap();
    let made = create(&mut jane, "deploys", &endpoint.url, &["alerts"]).await.unwrap();
    let direct = accepted(jane.send_one("@deploys", "m1", "direct").await);
    accepted(jane.send_one("#alerts", "m2", "posted").await);
    let calls = endpoint.calls(2).await;
    let oracle = Oracle::new(&made.secret).unwrap();
    for (headers, body) in &calls {
        oracle.verify(body.as_bytes(), headers).unwrap();
    }
    let bodies: HashSet<String> = calls.iter().map(|call| body_of(call).1).collect();
    assert_eq!(bodies, HashSet::from(["direct".to_owned(), "posted".to_owned()]));
    // The record follows the answer: asked until it is there.
    let rungs = async {
        loop {
            let rungs = Question::Rungs { id: direct.broker_message_id };
            let rows: Vec<RecipientRung> = jane.ask(rungs).await.unwrap();
            if rows[0].rung == DeliveryRung::Delivered {
                return;
            }
        }
    };
    timeout(PATIENCE, rungs).await.unwrap();
    scene.stop().await;
}

#[tokio::test]
async fn webhooks_are_the_owners_and_show_their_secret_once() {
    let (scene, mut jane) = with_owner().await;
    let mut tom = scene.joined("tom").await.link().await;
    let url = "http://127.0.0.1:9/";
    let name: model::MemberName = "deploys".parse().unwrap();
    assert_eq!(create(&mut tom, "deploys", url, &[]).await.err().unwrap(), "forbidden");
    assert_eq!(tom.ask::<Vec<WebhookRow>>(Question::Webhooks).await.unwrap_err(), "forbidden");
    for question in [
        Question::WebhookRotate { name: name.clone() },
        Question::WebhookEnable { name: name.clone() },
        Question::WebhookRemove { name: name.clone() },
    ] {
        assert_eq!(tom.ask::<serde_json::Value>(question).await.unwrap_err(), "forbidden");
    }
    let made = create(&mut jane, "deploys", url, &[]).await.unwrap();
    assert!(made.secret.starts_with("whsec_"));
    assert_eq!(create(&mut jane, "deploys", url, &[]).await.err().unwrap(), "name_taken");
    assert_eq!(create(&mut jane, "tom", url, &[]).await.err().unwrap(), "name_taken");
    assert_eq!(create(&mut jane, "other", url, &["nowhere"]).await.err().unwrap(), "topic_not_found");
    for refused in ["http://10.0.0.1/", "http://[::1]/", "http://169.254.169.254/"] {
        assert_eq!(create(&mut jane, "other", refused, &[]).await.err().unwrap(), "webhook_url_refused");
    }
    for malformed in ["", "deploys", "ftp://127.0.0.1/", "http://a:b@127.0.0.1/", "http://2130706433/"] {
        assert_eq!(create(&mut jane, "other", malformed, &[]).await.err().unwrap(), "invalid_request");
    }
    let listed: serde_json::Value = jane.ask(Question::Webhooks).await.unwrap();
    assert_eq!((&listed[0]["name"], &listed[0]["url"]), (&"deploys".into(), &url.into()));
    assert!(!listed.to_string().contains(&made.secret["whsec_".len()..]), "{listed}");
    let rotated: Webhook = jane.ask(Question::WebhookRotate { name: name.clone() }).await.unwrap();
    assert_ne!(rotated.secret, made.secret);
    jane.ask::<WebhookRow>(Question::WebhookEnable { name: name.clone() }).await.unwrap();
    jane.ask::<Done>(Question::WebhookRemove { name: name.clone() }).await.unwrap();
    let gone = jane.ask::<Done>(Question::WebhookRemove { name }).await.unwrap_err();
    assert_eq!(gone, "not_found");
    assert!(jane.ask::<Vec<WebhookRow>>(Question::Webhooks).await.unwrap().is_empty());
    scene.stop().await;
}

#[tokio::test]
async fn explain_says_what_an_endpoint_answered_last_and_not_where_it_is() {
    let (scene, mut jane) = with_owner().await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let made = create(&mut jane, "deploys", &format!("http://{nobody}/S3CRET"), &[]).await.unwrap();
    accepted(jane.send_one("@deploys", "m1", "hi").await);
    let answered = async {
        loop {
            let explained: serde_json::Value = jane.ask(Question::Explain { id: "m1".into() }).await.unwrap();
            if explained["records"][0]["webhooks"][0]["last_answer"].is_string() {
                return explained;
            }
        }
    };
    let explained = timeout(PATIENCE, answered).await.unwrap();
    let webhook = &explained["records"][0]["webhooks"][0];
    let expected = serde_json::json!({"name": "deploys", "state": "waiting", "attempts": 1, "last_answer": "unreachable"});
    assert_eq!(webhook, &expected);
    let text = explained.to_string();
    assert!(!text.contains("S3CRET") && !text.contains(&made.secret["whsec_".len()..]), "{text}");
    scene.stop().await;
}

#[tokio::test]
async fn a_slow_endpoint_stops_nobody_else() {
    let (scene, mut jane) = with_owner().await;
    let (slow, mut quick) = (Endpoint::start(false).await, Endpoint::start(true).await);
    create(&mut jane, "slow", &slow.url, &[]).await.unwrap();
    create(&mut jane, "quick", &quick.url, &[]).await.unwrap();
    for n in 0..8 {
        let mention = serde_json::json!({"client_message_id": format!("s{n}"), "to": format!("#t{n}"), "body": "s",
            "mentions": ["slow"]});
        accepted(jane.send(vec![crate::node::item_of(mention).1]).await.remove(0));
    }
    let messages = (0..20).map(|n| item("@quick", &format!("q{n}"), &format!("{n}")).1).collect();
    assert_eq!(jane.send(messages).await.into_iter().map(accepted).count(), 20);
    let order: Vec<String> = quick.calls(20).await.iter().map(|call| body_of(call).1).collect();
    assert_eq!(order, (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(slow.log.calls.lock().unwrap().is_empty());
    slow.log.open.send_replace(true);
    scene.stop().await;
}

/// Rows of several logs for one webhook, posted through one broker while two push.
async fn pushed_by_two(one: Scene, two: Scene) {
    const LOGS: usize = 6;
    const EACH: usize = 10;
    let mut jane = one.owner("jane").await.link().await;
    let mut endpoint = Endpoint::start(true).await;
    let topics: Vec<String> = (0..LOGS).map(|n| format!("t{n}")).collect();
    for topic in &topics {
        jane.ask::<TopicRow>(Question::TopicCreate { topic: topic.parse().unwrap() }).await.unwrap();
    }
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    create(&mut jane, "deploys", &endpoint.url, &topics).await.unwrap();
    for topic in &topics {
        let post = |n| item(&format!("#{topic}"), &format!("{topic}-{n}"), &format!("{n:03}")).1;
        let messages = (0..EACH).map(post).collect();
        assert_eq!(jane.send(messages).await.into_iter().map(accepted).count(), EACH);
    }
    let calls = endpoint.calls(LOGS * EACH).await;
    let id = |(headers, _): &(HeaderMap, String)| headers["webhook-id"].to_str().unwrap().to_owned();
    let ids: HashSet<String> = calls.iter().map(id).collect();
    assert_eq!((calls.len(), ids.len()), (LOGS * EACH, LOGS * EACH), "each row once");
    assert!(endpoint.log.clashes.lock().unwrap().is_empty());
    let mut logs: HashMap<String, Vec<String>> = HashMap::new();
    for call in &calls {
        let (log, body) = body_of(call);
        logs.entry(log).or_default().push(body);
    }
    assert_eq!(logs.len(), LOGS);
    assert!(logs.values().all(|bodies| bodies.is_sorted()), "{logs:?}");
    two.stop().await;
    one.stop().await;
}

#[tokio::test]
async fn two_brokers_over_one_file_push_each_row_once_and_in_order() {
    let one = Scene::with(calling_here()).await;
    let two = Scene::over(one.ledger.clone(), calling_here()).await.unwrap();
    pushed_by_two(one, two).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_brokers_over_one_postgresql_push_each_row_once_and_in_order() {
    let database = Database::create().unwrap();
    let open = || async {
        let ledger = PostgresLedger::open(&database.url(), Arc::new(OsEntropy)).await.unwrap();
        Scene::over(Arc::new(ledger), calling_here()).await.unwrap()
    };
    pushed_by_two(open().await, open().await).await;
}
