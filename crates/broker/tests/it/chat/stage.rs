//! A broker with members who have tokens, and a raw subscriber.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use http::Method;
use ledger::conformance::town;
use ledger::{Follower, LaneSubmission, Ledger, NewToken, PostgresLedger, Role, Scopes, SecretHash, Via};
use model::{Clock, ConversationId, Cursor, MemberId, MemberKind, OsEntropy, SystemClock, Timestamp};
use net::Secret;
use net::client::{Ask, Client, ClientError};
use net::socket::{Bounds, Close, Ended, Reader, Writer};
use serde_json::{Value, json};
use testkit::postgres::Database;
use tokio::time::timeout;
use wire::direct::AcceptAnswer;
use wire::log::Page;

use crate::scene::{Props, Scene};

/// Whatever takes longer will not come.
const PATIENCE: Duration = Duration::from_secs(20);
/// Rows written in one transaction.
const MANY: usize = 500;

/// One broker, or two over one PostgreSQL.
pub struct Stage {
    pub scene: Scene,
    pub other: Option<Scene>,
    clock: StoreClock,
    _database: Option<Database>,
}

/// The hand on the clock that dates messages.
enum StoreClock {
    Sqlite(Arc<Shifted>),
    /// One for each broker.
    Postgres(Vec<Arc<PostgresLedger>>),
}

/// The machine's clock, and how far it is set back.
struct Shifted {
    clock: SystemClock,
    back_us: AtomicI64,
}

impl Clock for Shifted {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock.now().as_micros() - self.back_us.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
}

/// A member with a token.
#[derive(Clone)]
pub struct Member {
    pub client: Client,
    pub token: Secret,
    /// At the other broker, where there is one.
    pub elsewhere: Client,
}

/// One WebSocket.
pub struct Subscriber {
    reader: Reader,
    pub writer: Writer,
    /// What waited for an answer when it connected.
    pub waiting: Vec<Value>,
}

/// Runs each fact on SQLite and on PostgreSQL, there with two brokers.
macro_rules! on_both_stores {
    ($($fact:ident)*) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $fact() {
                super::$fact($crate::chat::stage::Stage::sqlite().await).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $fact() {
                super::$fact($crate::chat::stage::Stage::postgres().await).await;
            })*
        }
    };
}
pub(crate) use on_both_stores;

impl Stage {
    pub async fn sqlite() -> Self {
        let clock = Arc::new(Shifted { clock: SystemClock::start(), back_us: AtomicI64::new(0) });
        let scene = Scene::with(Props { clock: clock.clone(), ..Props::default() }).await;
        Self { scene, other: None, clock: StoreClock::Sqlite(clock), _database: None }
    }

    pub async fn postgres() -> Self {
        let database = Database::create().unwrap();
        let open =
            async || Arc::new(PostgresLedger::open(&database.url(), Arc::new(OsEntropy)).await.unwrap());
        let ledgers = vec![open().await, open().await];
        let over = async |place: usize| Scene::over(ledgers[place].clone(), Props::default()).await.unwrap();
        let (scene, other) = (over(0).await, over(1).await);
        Self { scene, other: Some(other), clock: StoreClock::Postgres(ledgers), _database: Some(database) }
    }

    /// The same books behind a broker with other props; the first one stays beside it.
    pub async fn behind(self, props: Props) -> Self {
        let scene = Scene::over(self.scene.ledger.clone(), props).await.unwrap();
        Self { scene, other: Some(self.scene), ..self }
    }

    /// Sets the clock of the store back.
    pub fn set_back(&self, span: Duration) {
        let micros = i64::try_from(span.as_micros()).unwrap();
        match &self.clock {
            StoreClock::Sqlite(clock) => drop(clock.back_us.fetch_add(micros, Ordering::Relaxed)),
            StoreClock::Postgres(ledgers) => ledgers.iter().for_each(|ledger| ledger.shift_clock(-micros)),
        }
    }

    /// Writes `count` numbered rows to `#t` as a member the broker hosts, many to a transaction.
    pub async fn write_many(&self, name: &str, count: usize) {
        let sender = self.ledger().member_named(&name.parse().unwrap()).await.unwrap().unwrap().id;
        for from in (0..count).step_by(MANY) {
            let row = |n: usize| {
                let (id, body) = (format!("many{n}"), n.to_string());
                let envelope = json!({"client_message_id": id, "to": "#t", "body": body});
                let message = town::text("#t", &id, &body);
                ledger::Submission { envelope: envelope.to_string().into_bytes(), ..message }
            };
            let messages = (from..count.min(from + MANY)).map(row).collect();
            self.ledger().accept(LaneSubmission { via: Via::Broker, sender, messages }).await.unwrap();
        }
    }

    pub fn ledger(&self) -> &dyn Ledger {
        &*self.scene.ledger
    }

    /// A member the broker hosts, with a token for everything.
    pub async fn member(&self, name: &str) -> Member {
        let member = self.ledger().host_member(&name.parse().unwrap(), MemberKind::Service).await.unwrap();
        self.with_token(member.member().id).await
    }

    /// The mesh's owner, at home at a node of its own.
    pub async fn owner(&self, name: &str) -> Member {
        self.scene.owner(name).await;
        let member = self.ledger().member_named(&name.parse().unwrap()).await.unwrap().unwrap();
        assert_eq!(member.role, Role::Owner);
        self.with_token(member.id).await
    }

    async fn with_token(&self, member: MemberId) -> Member {
        let secret = Secret::mint(&OsEntropy);
        let hash = SecretHash(*secret.token_hash().as_bytes());
        let scopes = Scopes { send: true, read: true, hub: false };
        self.ledger().create_token(NewToken { hash, member, scopes }).await.unwrap();
        let other = self.other.as_ref().unwrap_or(&self.scene);
        Member {
            client: self.scene.client().with_bearer(&secret),
            elsewhere: other.client().with_bearer(&secret),
            token: secret.clone(),
        }
    }

    /// How many rows a log has.
    pub async fn head(&self, conversation: &str) -> u64 {
        let id: ConversationId = conversation.parse().unwrap();
        let rows = self.ledger().follow(id, Follower::Broker, Cursor::Start, usize::MAX / 2).await;
        rows.unwrap().unwrap().rows.len() as u64
    }
}

impl Member {
    /// Posts to `to` and answers with what was accepted.
    pub async fn post(&self, to: &str, body: &str) -> AcceptAnswer {
        self.post_with(json!({"to": to, "body": body})).await
    }

    pub async fn post_with(&self, body: Value) -> AcceptAnswer {
        self.client.post("/v1/meshes/home/messages", &body).await.unwrap()
    }

    /// Posts `count` texts, numbered, and answers with the conversation.
    pub async fn fill(&self, to: &str, from: usize, count: usize) -> String {
        let mut conversation = String::new();
        for n in from..from + count {
            conversation = self.post(to, &n.to_string()).await.conversation.to_string();
        }
        conversation
    }

    pub async fn page(&self, conversation: &str) -> Page {
        self.client.get(&format!("/v1/conversations/{conversation}")).await.unwrap()
    }

    pub async fn subscriber(&self) -> Subscriber {
        Subscriber::open(&self.client).await
    }

    /// Follows a conversation from `cursor` on; answers with the texts that were there.
    pub async fn follow(&self, conversation: &str, cursor: &str) -> (Subscriber, Vec<String>) {
        let mut subscriber = self.subscriber().await;
        subscriber.subscribe(conversation, cursor, "s").await;
        let (texts, _) = subscriber.caught_up().await;
        (subscriber, texts)
    }

    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, (u16, String)> {
        call(&self.client, method, path, body).await
    }
}

/// An answer's JSON, or the status and code of its refusal.
pub async fn call(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Result<Value, (u16, String)> {
    let ask = Ask::new(method, path);
    let ask = match &body {
        Some(body) => ask.json(body),
        None => ask,
    };
    match client.ask(ask).await {
        Ok(answer) => Ok(answer.json().unwrap_or(Value::Null)),
        Err(ClientError::Refused { status, body, .. }) => Err((status, body.error)),
        Err(other) => panic!("{path}: {other}"),
    }
}

impl Subscriber {
    pub async fn open(client: &Client) -> Self {
        let socket = client.upgrade_as_bearer("/v1/subscribe", Bounds::default()).await.unwrap();
        Self::over(socket).await
    }

    pub async fn over(socket: net::socket::Socket) -> Self {
        let (reader, writer) = socket.split();
        let mut subscriber = Self { reader, writer, waiting: Vec::new() };
        let first = subscriber.next().await;
        assert_eq!(first["type"], "escalations");
        subscriber.waiting = first["escalations"].as_array().unwrap().clone();
        subscriber
    }

    pub async fn say(&self, frame: &Value) {
        self.writer.send(frame.to_string()).await.unwrap();
    }

    pub async fn subscribe(&self, conversation: &str, cursor: &str, sub: &str) {
        let frame =
            json!({"type": "subscribe", "conversation_id": conversation, "since_cursor": cursor, "sub": sub});
        self.say(&frame).await;
    }

    pub async fn unsubscribe(&self, conversation: &str) {
        self.say(&json!({"type": "unsubscribe", "conversation_id": conversation})).await;
    }

    /// The next frame.
    pub async fn next(&mut self) -> Value {
        let text = timeout(PATIENCE, self.reader.next()).await.expect("a frame in time").unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// The next frame, or how the socket was closed.
    pub async fn try_next(&mut self) -> Result<Value, Close> {
        match timeout(PATIENCE, self.reader.next()).await.expect("a frame or an end in time") {
            Ok(text) => Ok(serde_json::from_str(&text).unwrap()),
            Err(Ended::Closed(close)) => Err(close),
            Err(other) => panic!("a close, not {other}"),
        }
    }

    /// Texts up to `subscribed`, and that frame.
    pub async fn caught_up(&mut self) -> (Vec<String>, Value) {
        let mut texts = Vec::new();
        loop {
            let frame = self.next().await;
            match frame["type"].as_str().unwrap() {
                "message" => texts.push(frame["body"].as_str().unwrap().to_owned()),
                "subscribed" => return (texts, frame),
                _ => panic!("a message or subscribed, not {frame}"),
            }
        }
    }

    /// The next message.
    pub async fn message(&mut self) -> Value {
        let frame = self.next().await;
        assert_eq!(frame["type"], "message", "{frame}");
        frame
    }

    /// The next `count` messages' texts.
    pub async fn texts(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(self.message().await["body"].as_str().unwrap().to_owned());
        }
        texts
    }

    /// Everything that comes before the answer to a ping.
    pub async fn barrier(&mut self) -> Vec<Value> {
        self.say(&json!({"type": "ping"})).await;
        let mut before = Vec::new();
        loop {
            let frame = self.next().await;
            if frame["type"] == "pong" {
                return before;
            }
            before.push(frame);
        }
    }
}

/// `from..upto` as texts.
pub fn numbers(from: usize, upto: usize) -> Vec<String> {
    (from..upto).map(|n| n.to_string()).collect()
}
