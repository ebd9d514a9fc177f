//! A broker for tests: real frames over a real WebSocket, real tickets and signatures, no store. What it accepts
//! and answers is the test's to say.

mod books;
mod way_in;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use axum::routing::{get, post};
use model::{
    ClientMessageId, Clock, ConversationId, DeliveryRung, ErrorCode, MemberId, MeshId, MessageId, NodeKey,
    NodeName, OsEntropy, RowId, SystemClock, Timestamp,
};
use net::Secret;
use net::handshake::{Invite, KeyPair};
use net::serve::{Door, serve};
use net::socket::{Close, Writer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::MessageFields;
use wire::auth::{MemberRef, MeshRef};
use wire::link::{AcceptedRow, Ack, AckRef, Answer, MailRow, Nack, NegotiationRequest, ReceiptRow, ToNode};
use wire::message::Message;

/// How long a test waits for something that must happen; a busy disk may hold a sync for many seconds.
pub const SOON: Duration = Duration::from_secs(120);

#[derive(Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

struct Inner {
    address: Mutex<Option<SocketAddr>>,
    stop: Mutex<CancellationToken>,
    issuer: Mutex<KeyPair>,
    clock: SystemClock,
    books: Mutex<Books>,
    changed: watch::Sender<()>,
}

/// What the broker holds and has heard.
pub struct Books {
    pub mesh: MeshRef,
    pub person: MemberRef,
    pub nodes: HashMap<NodeName, NodeKey>,
    /// In the order of acceptance.
    pub accepted: Vec<Accepted>,
    /// Every frame of messages as it came.
    pub sends: Vec<SentFrame>,
    pub acks: Vec<Ack>,
    pub nacks: Vec<Nack>,
    /// What the node said about its own books.
    pub answers_heard: Vec<Answer>,
    pub receipt_acks: Vec<AckRef>,
    pub negotiations: Vec<NegotiationRequest>,
    pub questions: Vec<String>,
    pub retired: Vec<(MemberId, ClientMessageId)>,
    pub members: Vec<MemberRef>,
    pub exchanges: usize,
    pub upgrades: usize,
    /// What the next messages are answered, by the test.
    pub script: Script,
    /// The features offered.
    pub features: serde_json::Value,
    pub restored: bool,
    /// Exchanges are refused with this.
    pub refuse: Option<ErrorCode>,
    /// Whether acks are confirmed.
    pub confirms: bool,
    /// Whether questions are answered.
    pub answers: bool,
    /// Copies of every topic's message.
    pub copies: Vec<DeliveryRung>,
    invites: Vec<String>,
    challenges: Vec<String>,
    tickets: HashMap<String, NodeName>,
    links: Vec<Writer>,
    epoch: u64,
}

/// One accepted message.
#[derive(Clone, Debug)]
pub struct Accepted {
    pub sender: MemberId,
    pub fields: MessageFields,
    pub row: AcceptedRow,
}

/// One `send` frame.
#[derive(Clone, Debug)]
pub struct SentFrame {
    pub lane: (MemberId, String),
    pub ids: Vec<String>,
    pub rows: Vec<RowId>,
    pub deadlines: Vec<Timestamp>,
}

/// What a message is answered.
pub enum Reply {
    /// Accepted, or known.
    Accept,
    /// Refused with this code and these further fields.
    Refuse(ErrorCode),
    /// Refused, come back later.
    RefuseFor(ErrorCode, u64),
    /// Accepted, and the frame is never answered.
    AcceptSilently,
    /// Not accepted, and the frame is never answered.
    Silence,
    /// The link is closed with this code.
    Close(u16),
}

pub type Script = Box<dyn FnMut(&MessageFields) -> Reply + Send>;

impl Broker {
    /// A broker that listens and accepts everything.
    pub async fn start() -> Self {
        let broker = Self::deaf();
        broker.listen().await;
        broker
    }

    /// A broker nobody can reach yet; its address is kept free for it.
    pub fn deaf() -> Self {
        let clock = SystemClock::start();
        let now = clock.now();
        let person = MemberRef {
            id: MemberId::mint(now, &OsEntropy),
            name: "jane".parse().unwrap(),
            kind: "person".to_owned(),
        };
        let books = Books {
            mesh: MeshRef { id: MeshId::mint(now, &OsEntropy), slug: "home".to_owned() },
            members: vec![person.clone()],
            person,
            nodes: HashMap::new(),
            accepted: Vec::new(),
            sends: Vec::new(),
            acks: Vec::new(),
            nacks: Vec::new(),
            answers_heard: Vec::new(),
            receipt_acks: Vec::new(),
            negotiations: Vec::new(),
            questions: Vec::new(),
            retired: Vec::new(),
            exchanges: 0,
            upgrades: 0,
            script: Box::new(|_| Reply::Accept),
            features: serde_json::json!({
                "client_message_id_dedupe": {"params": {"version": 2, "mode": "retention_scoped",
                    "dedupe_retention_days": 30, "request_fingerprint": true}},
                "concurrent_connection_policy": {"params": {"version": 1}},
                "max_payload": {"params": {"version": 1, "inline_bytes": 65536}},
            }),
            restored: false,
            refuse: None,
            confirms: true,
            answers: true,
            copies: Vec::new(),
            invites: Vec::new(),
            challenges: Vec::new(),
            tickets: HashMap::new(),
            links: Vec::new(),
            epoch: 0,
        };
        let inner = Inner {
            address: Mutex::new(None),
            stop: Mutex::new(CancellationToken::new()),
            issuer: Mutex::new(KeyPair::mint(&OsEntropy)),
            clock,
            books: Mutex::new(books),
            changed: watch::Sender::new(()),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Begins to listen, at the address it had.
    pub async fn listen(&self) {
        let known = *self.inner.address.lock().unwrap();
        let address = known.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
        let listener = TcpListener::bind(address).await.expect("the broker's port is free");
        *self.inner.address.lock().unwrap() = Some(listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        *self.inner.stop.lock().unwrap() = stop.clone();
        let router = axum::Router::new()
            .route("/v1/auth/challenge", post(way_in::challenge))
            .route("/v1/auth/exchange", post(way_in::exchange))
            .route("/v1/link", get(way_in::link))
            .with_state(self.clone());
        tokio::spawn(serve(Door::tcp(listener), router, stop));
    }

    /// An address is taken and given back, so that a daemon can be told it before anybody listens there.
    pub async fn reserve_address(&self) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        *self.inner.address.lock().unwrap() = Some(listener.local_addr().unwrap());
    }

    /// Stops listening and cuts its links.
    pub fn hang_up(&self) {
        self.inner.stop.lock().unwrap().cancel();
        self.cut();
    }

    /// Cuts the links.
    pub fn cut(&self) {
        self.close_links(Close::GOING_AWAY);
    }

    /// Closes the links with `code`.
    pub fn close_links(&self, code: u16) {
        for link in self.books().links.drain(..) {
            link.close(Close::new(code, ""));
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.inner.address.lock().unwrap().expect("the broker has an address"))
    }

    pub fn books(&self) -> MutexGuard<'_, Books> {
        self.inner.books.lock().unwrap()
    }

    /// Says how messages are answered from now on.
    pub fn script(&self, script: impl FnMut(&MessageFields) -> Reply + Send + 'static) {
        self.books().script = Box::new(script);
    }

    /// Signs with another key from now on.
    pub fn change_issuer(&self) {
        *self.inner.issuer.lock().unwrap() = KeyPair::mint(&OsEntropy);
    }

    /// An invite for one join.
    pub fn invite(&self) -> Invite {
        let token = Secret::mint(&OsEntropy);
        self.books().invites.push(token.reveal().to_owned());
        Invite { url: self.url(), token, issuer_key: self.inner.issuer.lock().unwrap().public() }
    }

    /// Until `look` finds something in the books.
    pub async fn until<T>(&self, what: &str, mut look: impl FnMut(&Books) -> Option<T>) -> T {
        let mut changed = self.inner.changed.subscribe();
        let found = async {
            loop {
                changed.mark_unchanged();
                if let Some(found) = look(&self.books()) {
                    return found;
                }
                changed.changed().await.expect("the broker lives");
            }
        };
        match tokio::time::timeout(SOON, found).await {
            Ok(found) => found,
            Err(_) => panic!("waited in vain: {what}"),
        }
    }

    /// Until so many messages were accepted; their bodies in order.
    pub async fn until_accepted(&self, count: usize) -> Vec<String> {
        self.until(&format!("{count} accepted"), |books| {
            let bodies: Vec<String> = books.accepted.iter().map(|row| row.fields.body.clone()).collect();
            (bodies.len() >= count).then_some(bodies)
        })
        .await
    }

    /// Until a link is open.
    pub async fn until_linked(&self) {
        self.until("a link", |books| (!books.links.is_empty()).then_some(())).await;
    }

    /// Pushes frames to the newest link.
    pub async fn push(&self, frame: ToNode) {
        self.push_text(frame.text()).await;
    }

    pub async fn push_text(&self, text: String) {
        let link = self.books().links.last().cloned().expect("a link is open");
        link.send(text).await.expect("the link takes frames");
    }

    /// A message for the person, from somebody else.
    pub fn mail(&self, client_message_id: &str, body: &str) -> MailRow {
        let now = self.inner.clock.now();
        let recipient = self.books().person.id;
        let fields = serde_json::json!({"client_message_id": client_message_id, "to": "@jane", "body": body});
        MailRow {
            recipient,
            sender_id: MemberId::from_bytes([9; 16]),
            deliver_by: None,
            read_at: None,
            again: None,
            message: Message {
                id: MessageId::mint(now, &OsEntropy),
                conversation: ConversationId::from_bytes([8; 16]),
                conversation_name: Some("@tom".to_owned()),
                history_id: 1,
                sender: "tom".parse().unwrap(),
                created_at: now,
                cursor: String::new(),
                redelivered: false,
                fields: serde_json::from_value(fields).unwrap(),
            },
        }
    }

    /// A receipt for the newest accepted message.
    pub fn receipt(&self, rung: DeliveryRung) -> ReceiptRow {
        let books = self.books();
        let newest = books.accepted.last().expect("a message was accepted");
        ReceiptRow {
            row: AckRef { id: newest.row.broker_message_id, recipient: MemberId::from_bytes([9; 16]), rung },
            sender: newest.sender,
            client_message_id: newest.fields.client_message_id.clone(),
            at: self.inner.clock.now(),
            ended_code: None,
        }
    }

    fn changed(&self) {
        self.inner.changed.send_replace(());
    }
}

/// Gives a home in this process its invites, as `postrider up` does.
pub struct Letting(pub Broker);

#[async_trait]
impl daemon::Invites for Letting {
    async fn fresh(&self) -> Option<Invite> {
        Some(self.0.invite())
    }
}
