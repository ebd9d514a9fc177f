//! A broker for tests: real frames over a real WebSocket, real tickets and signatures, no store. What it accepts
//! and answers is the test's to say.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use http::StatusCode;
use model::{
    ClientMessageId, Clock, ConversationId, DeliveryRung, Entropy, ErrorCode, MemberId, MemberKind, MeshId,
    MessageId, NodeKey, NodeName, OsEntropy, RowId, SystemClock, Timestamp,
};
use net::Secret;
use net::handshake::{Claim, Invite, KeyPair, sign_answer, verify_proof};
use net::respond::{Json, Refusal, json};
use net::serve::{Door, serve};
use net::socket::{Close, Reader, Socket, Upgrade, Writer};
use serde_json::value::{RawValue, to_raw_value};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::ask::{AnswerResult, MemberRow, Question, RecipientRung, StatusAnswer};
use wire::auth::{
    AUDIENCE_LINK, Challenge, ChallengeRequest, ExchangeAnswer, ExchangeRequest, MemberRef, MeshRef,
};
use wire::link::{
    AcceptedRow, Ack, AckRef, Acked, Answer, MailRow, Nack, NegotiationRequest, NegotiationResponse,
    ReceiptRow, Rows, Send as SendFrame, SendItem, SendOutcome, SendResult, Sent, ToBroker, ToNode,
};
use wire::message::Message;
use wire::{MessageFields, Refused};

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
            .route("/v1/auth/challenge", post(challenge))
            .route("/v1/auth/exchange", post(exchange))
            .route("/v1/link", get(link))
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

async fn challenge(
    State(broker): State<Broker>,
    Json(request): Json<ChallengeRequest>,
) -> Result<Response, Refusal> {
    let challenge = Secret::mint(&OsEntropy).reveal().to_owned();
    let mut books = broker.books();
    if let Some(code) = books.refuse {
        return Err(Refusal::plain(code));
    }
    if !books.nodes.contains_key(&request.node_id) {
        return Err(Refusal::plain(ErrorCode::UnknownNode));
    }
    books.challenges.push(challenge.clone());
    Ok(json(StatusCode::OK, &Challenge { challenge, now: broker.inner.clock.now() }))
}

async fn exchange(
    State(broker): State<Broker>,
    Json(request): Json<ExchangeRequest>,
) -> Result<Response, Refusal> {
    let issuer = broker.inner.issuer.lock().unwrap().clone();
    let now = broker.inner.clock.now();
    let mut books = broker.books();
    books.exchanges += 1;
    if let Some(code) = books.refuse {
        return Err(Refusal::plain(code));
    }
    let secret = match (&request.invite_token, &request.challenge) {
        (Some(token), None) if books.invites.contains(token) => token.clone(),
        (None, Some(challenge)) if books.challenges.contains(challenge) => challenge.clone(),
        _ => return Err(Refusal::plain(ErrorCode::InvalidToken)),
    };
    let proven = verify_proof(
        &Claim {
            issuer_key: &issuer.public(),
            secret: &Secret::from(secret),
            node_id: &request.node_id,
            public_key: &request.public_key,
            aud: AUDIENCE_LINK,
            nonce: &request.nonce,
        },
        &request.node_proof,
    );
    // A stand-in that signs with another key than it is asked for must get that far.
    let known = books.nodes.get(&request.node_id).is_none_or(|key| *key == request.public_key);
    if !known || (!proven && request.invite_token.is_some()) {
        return Err(Refusal::plain(ErrorCode::NodeProofInvalid));
    }
    books.nodes.insert(request.node_id.clone(), request.public_key);
    let ws_ticket = Secret::mint(&OsEntropy).reveal().to_owned();
    books.tickets.insert(ws_ticket.clone(), request.node_id);
    let answer = ExchangeAnswer {
        ws_ticket,
        expires_at: now + Duration::from_secs(30),
        rooms: Vec::new(),
        session_id: "s".to_owned(),
        mesh: books.mesh.clone(),
        member: None,
        now,
        issuer_key: issuer.public(),
        signature: String::new(),
    };
    Ok(json(StatusCode::OK, &sign_answer(answer, &issuer)))
}

async fn link(State(broker): State<Broker>, upgrade: Upgrade) -> Result<Response, Refusal> {
    let ticket = upgrade.ticket()?;
    let mut books = broker.books();
    let node =
        books.tickets.remove(ticket.reveal()).ok_or_else(|| Refusal::plain(ErrorCode::InvalidTicket))?;
    books.upgrades += 1;
    drop(books);
    tracing::debug!(%node, "a link");
    Ok(upgrade.accept(move |socket| linked(broker, socket)))
}

async fn linked(broker: Broker, socket: Socket) {
    let (mut reader, writer) = socket.split();
    if negotiate(&broker, &mut reader, &writer).await.is_none() {
        return;
    }
    broker.books().links.push(writer.clone());
    broker.changed();
    while let Ok(text) = reader.next().await {
        let Ok(frame) = ToBroker::parse(&text) else { break };
        // Told after the answer left: a test that waits for the frame may push what must come behind it.
        if let Some(answer) = broker.hear(frame, &writer) {
            let _ = writer.send(answer.text()).await;
        }
        broker.changed();
    }
    broker.changed();
}

async fn negotiate(broker: &Broker, reader: &mut Reader, writer: &Writer) -> Option<()> {
    let Ok(ToBroker::FeatureNegotiationRequest(request)) = ToBroker::parse(&reader.next().await.ok()?) else {
        return None;
    };
    let response = {
        let mut books = broker.books();
        books.negotiations.push(request);
        books.epoch += 1;
        NegotiationResponse {
            supported: serde_json::from_value(books.features.clone()).unwrap(),
            missing_required: Vec::new(),
            now: broker.inner.clock.now(),
            link_epoch: books.epoch,
            mesh: books.mesh.clone(),
            restored: std::mem::take(&mut books.restored),
            members: books.members.clone(),
            version: "test".to_owned(),
        }
    };
    writer.send(ToNode::FeatureNegotiationResponse(response).text()).await.ok()
}

impl Broker {
    fn hear(&self, frame: ToBroker, writer: &Writer) -> Option<ToNode> {
        let mut books = self.books();
        match frame {
            ToBroker::FeatureNegotiationRequest(_) => None,
            ToBroker::Answer(answer) => {
                books.answers_heard.push(answer);
                None
            }
            ToBroker::Send(send) => self.take(&mut books, send, writer),
            ToBroker::Ack(acks) => {
                let acked = |ack: &Ack| Acked { row: ack.row.clone(), read: ack.read_at.is_some() };
                let rows = acks.rows.iter().map(acked).collect();
                books.acks.extend(acks.rows);
                books.confirms.then_some(ToNode::Acked(Rows { rows }))
            }
            ToBroker::Nack(nacks) => {
                books.nacks.extend(nacks.rows);
                None
            }
            ToBroker::ReceiptsAck(acks) => {
                books.receipt_acks.extend(acks.rows);
                None
            }
            ToBroker::Ask(ask) => {
                let result = books.answer(ask.question);
                books.answers.then_some(ToNode::Answer(Answer { n: ask.n, result }))
            }
        }
    }

    fn take(&self, books: &mut Books, send: SendFrame, writer: &Writer) -> Option<ToNode> {
        let items: Vec<SendItem> =
            send.messages.iter().map(|raw| serde_json::from_str(raw.get()).unwrap()).collect();
        let fields: Vec<MessageFields> =
            items.iter().map(|item| serde_json::from_str(item.message.get()).unwrap()).collect();
        books.sends.push(SentFrame {
            lane: (send.sender, fields[0].to.to_string()),
            ids: fields.iter().map(|fields| fields.client_message_id.to_string()).collect(),
            rows: items.iter().map(|item| item.row).collect(),
            deadlines: items.iter().map(|item| item.send_deadline).collect(),
        });
        let (mut results, mut stopped, mut silent) = (Vec::new(), false, false);
        for (item, fields) in items.into_iter().zip(fields) {
            let outcome = if stopped {
                SendOutcome::NotTried
            } else {
                let known = books.known(send.sender, &fields);
                match if known.is_some() { Reply::Accept } else { (books.script)(&fields) } {
                    Reply::Accept => books.accept(send.sender, &item, fields, self.inner.clock.now()),
                    Reply::AcceptSilently => {
                        silent = true;
                        books.accept(send.sender, &item, fields, self.inner.clock.now())
                    }
                    Reply::Silence => {
                        silent = true;
                        SendOutcome::NotTried
                    }
                    Reply::Close(code) => {
                        writer.close(Close::new(code, ""));
                        silent = true;
                        SendOutcome::NotTried
                    }
                    Reply::Refuse(code) => refused(code, None),
                    Reply::RefuseFor(code, wait_ms) => refused(code, Some(wait_ms)),
                }
            };
            if let SendOutcome::Refused { error, .. } = &outcome {
                let code = ErrorCode::parse(&error.error).unwrap();
                stopped |= code.class() != model::Class::Permanent;
            }
            results.push(SendResult { row: item.row, outcome });
        }
        (!silent).then_some(ToNode::Sent(Sent { n: send.n, results }))
    }
}

fn refused(code: ErrorCode, wait_ms: Option<u64>) -> SendOutcome {
    let mut refused = Refused::plain(code);
    if let Some(wait_ms) = wait_ms {
        refused = refused.with("retry_after_ms", wait_ms);
    }
    SendOutcome::Refused { status: wire::status::http_status(code), error: refused.into() }
}

impl Books {
    fn known(&self, sender: MemberId, fields: &MessageFields) -> Option<&Accepted> {
        let id = &fields.client_message_id;
        self.accepted.iter().find(|row| row.sender == sender && row.fields.client_message_id == *id)
    }

    fn accept(
        &mut self,
        sender: MemberId,
        item: &SendItem,
        fields: MessageFields,
        now: Timestamp,
    ) -> SendOutcome {
        if let Some(known) = self.known(sender, &fields) {
            let row = AcceptedRow { status: 200, duplicate: true, ..known.row.clone() };
            return SendOutcome::Accepted(row);
        }
        let row = AcceptedRow {
            status: 201,
            request_fingerprint: item.request_fingerprint,
            broker_message_id: MessageId::mint(now, &OsEntropy),
            conversation: ConversationId::from_bytes([7; 16]),
            history_id: self.accepted.len() as u64 + 1,
            created_at: now,
            duplicate: false,
            history_available: true,
        };
        self.accepted.push(Accepted { sender, fields, row: row.clone() });
        SendOutcome::Accepted(row)
    }

    fn answer(&mut self, question: Question) -> AnswerResult {
        self.questions.push(serde_json::to_string(&question).unwrap());
        match question {
            Question::MessageStatus { sender, client_message_id, request_fingerprint, fence, .. } => {
                let id = &client_message_id;
                let known = self
                    .accepted
                    .iter()
                    .find(|row| row.sender == sender && row.fields.client_message_id == *id);
                let status = match known {
                    Some(known) if known.row.request_fingerprint == request_fingerprint => {
                        StatusAnswer::Accepted(known.row.clone())
                    }
                    Some(_) => StatusAnswer::AcceptedOtherFingerprint,
                    None => {
                        assert!(fence, "the daemon asks with a fence");
                        self.retired.push((sender, client_message_id));
                        StatusAnswer::Absent
                    }
                };
                ok(&status)
            }
            Question::MemberRegister { name, kind } => {
                if name.as_str() == "elsewhere" {
                    let error = Refused::plain(ErrorCode::NameTaken).into();
                    return AnswerResult::Refused { status: 409, error };
                }
                let known = self.members.iter().find(|member| member.name == name).cloned();
                let member = known.unwrap_or_else(|| {
                    let mut random = [0; 16];
                    OsEntropy.fill(&mut random);
                    MemberRef { id: MemberId::from_bytes(random), name, kind: MemberKind::to_string(&kind) }
                });
                if self.members.iter().all(|known| known.id != member.id) {
                    self.members.push(member.clone());
                }
                ok(&MemberRow { member, home: Some("node".to_owned()), role: "member".to_owned() })
            }
            Question::Members => {
                let rows: Vec<MemberRow> = self
                    .members
                    .iter()
                    .map(|member| MemberRow { member: member.clone(), home: None, role: "member".to_owned() })
                    .collect();
                ok(&rows)
            }
            Question::Rungs { .. } => {
                let copies = self
                    .copies
                    .iter()
                    .map(|rung| RecipientRung { recipient: MemberId::from_bytes([9; 16]), rung: *rung });
                ok(&copies.collect::<Vec<_>>())
            }
            Question::TopicHistory { .. } => {
                ok(&serde_json::json!({"messages": [], "cursor": "", "before": "",
                "has_more": false}))
            }
            _ => ok(&serde_json::json!([])),
        }
    }
}

fn ok(value: &impl serde::Serialize) -> AnswerResult {
    let value: Box<RawValue> = to_raw_value(value).unwrap();
    AnswerResult::Ok(value)
}
