//! A node as the broker sees it: raw frames over a real socket, without a daemon's cleverness.

use std::collections::VecDeque;
use std::time::Duration;

use model::{
    ClientMessageId, DeliveryRung, Fingerprint, MemberId, NodeKey, NodeName, OsEntropy, RowId, Timestamp,
};
use net::Secret;
use net::client::{Client, ClientError};
use net::handshake::{Claim, KeyPair, believe_answer, mint_nonce};
use net::socket::{Bounds, Close, Ended, Reader, Writer};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::timeout;
use wire::MessageFields;
use wire::ask::{AnswerResult, Question};
use wire::auth::{AUDIENCE_LINK, Challenge, ChallengeRequest, ExchangeAnswer, ExchangeRequest};
use wire::link::{
    Ack, AckRef, Acked, Ask, MailRow, NegotiationRequest, NegotiationResponse, Rows, Send, SendItem,
    SendOutcome, SendResult, ToBroker, ToNode,
};

/// No answer of a healthy broker takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Later than any test runs.
pub const FAR: Timestamp = Timestamp::from_micros(4_000_000_000_000_000);

/// A home without a daemon.
pub struct Node {
    pub name: NodeName,
    pub keys: KeyPair,
    client: Client,
    issuer: NodeKey,
}

/// An open link.
pub struct Link {
    pub person: MemberId,
    pub epoch: u64,
    pub hello: NegotiationResponse,
    reader: Reader,
    writer: Writer,
    n: u64,
    /// Frames that came while another was awaited.
    aside: VecDeque<Box<ToNode>>,
}

impl Node {
    pub fn new(name: &str, client: Client, issuer: NodeKey) -> Self {
        Self { name: name.parse().unwrap(), keys: KeyPair::mint(&OsEntropy), client, issuer }
    }

    /// The same node, dialling elsewhere.
    pub fn at(&self, client: Client) -> Self {
        Self { name: self.name.clone(), keys: self.keys.clone(), client, issuer: self.issuer }
    }

    /// The request of an exchange, properly proven.
    pub fn request(&self, secret: &str, by_invite: bool, nonce: &str) -> ExchangeRequest {
        self.request_for(AUDIENCE_LINK, secret, by_invite, nonce)
    }

    /// The same for another surface.
    pub fn request_for(&self, aud: &str, secret: &str, by_invite: bool, nonce: &str) -> ExchangeRequest {
        let (public_key, text) = (self.keys.public(), Secret::from(secret.to_owned()));
        let claim = Claim {
            issuer_key: &self.issuer,
            secret: &text,
            node_id: &self.name,
            public_key: &public_key,
            aud,
            nonce,
        };
        ExchangeRequest {
            invite_token: by_invite.then(|| secret.to_owned()),
            challenge: (!by_invite).then(|| secret.to_owned()),
            node_id: self.name.clone(),
            public_key,
            nonce: nonce.to_owned(),
            node_proof: claim.prove(&self.keys),
            aud: Some(aud.to_owned()),
            person: Some(self.name.to_string()),
            requested_rooms: None,
        }
    }

    pub async fn exchange(&self, request: &ExchangeRequest) -> Result<ExchangeAnswer, ClientError> {
        let heard = self.client.post("/v1/auth/exchange", request).await?;
        Ok(believe_answer(heard, &self.issuer).expect("the issuer signs what it answers"))
    }

    pub async fn ticket_by_invite(&self, token: &str) -> Result<Secret, ClientError> {
        let request = self.request(token, true, &mint_nonce(&OsEntropy));
        Ok(self.exchange(&request).await?.ws_ticket.into())
    }

    pub async fn challenge(&self) -> Result<Challenge, ClientError> {
        self.client.post("/v1/auth/challenge", &ChallengeRequest { node_id: self.name.clone() }).await
    }

    pub async fn ticket_by_challenge(&self) -> Result<Secret, ClientError> {
        self.ticket_for(AUDIENCE_LINK).await
    }

    /// A ticket for one surface, by the node's key.
    pub async fn ticket_for(&self, aud: &str) -> Result<Secret, ClientError> {
        let challenge = self.challenge().await?;
        let request = self.request_for(aud, &challenge.challenge, false, &mint_nonce(&OsEntropy));
        Ok(self.exchange(&request).await?.ws_ticket.into())
    }

    /// The socket before negotiation.
    pub async fn upgrade(&self, ticket: &Secret) -> Result<(Reader, Writer), ClientError> {
        Ok(self.client.upgrade("/v1/link", ticket, Bounds::default()).await?.split())
    }

    /// The first join; the link is closed again.
    pub async fn join(&self, token: &str) -> Result<(), ClientError> {
        let ticket = self.ticket_by_invite(token).await?;
        self.upgrade(&ticket).await.map(drop)
    }

    /// A negotiated link of a node that joined before.
    pub async fn link(&self) -> Link {
        let ticket = self.ticket_by_challenge().await.unwrap();
        let (reader, writer) = self.upgrade(&ticket).await.unwrap();
        Link::negotiate(reader, writer, negotiation()).await.ok().expect("the broker offers what is required")
    }
}

/// What an ordinary daemon says first.
pub fn negotiation() -> NegotiationRequest {
    NegotiationRequest {
        require: vec![wire::link::FEATURE_DEDUPE.into(), wire::link::FEATURE_CONNECTIONS.into()],
        inbox_epoch: "e1".into(),
        ..NegotiationRequest::default()
    }
}

/// A message as an outbox holds it.
pub fn item(to: &str, id: &str, body: &str) -> (RowId, Box<RawValue>) {
    item_of(serde_json::json!({"client_message_id": id, "to": to, "body": body}))
}

/// The same with any fields.
pub fn item_of(fields: serde_json::Value) -> (RowId, Box<RawValue>) {
    item_with(fields, FAR)
}

pub fn item_with(fields: serde_json::Value, send_deadline: Timestamp) -> (RowId, Box<RawValue>) {
    let fields: MessageFields = serde_json::from_value(fields).unwrap();
    let draft = fields.clone().into_draft(FAR).unwrap();
    let row = RowId::mint(Timestamp::from_micros(1), &OsEntropy);
    let item = SendItem {
        row,
        request_fingerprint: Fingerprint::of(&draft),
        send_deadline,
        deliver_by: draft.deadline.deliver_by(),
        message: raw(&fields),
    };
    (row, raw(&item))
}

pub fn raw(value: &impl serde::Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

/// The next frame, or how the socket ended.
pub async fn next(reader: &mut Reader) -> Result<ToNode, Ended> {
    let text = timeout(PATIENCE, reader.next()).await.expect("the broker answers in time")?;
    Ok(ToNode::parse(&text).expect("the broker writes frames that parse"))
}

/// The close that ends the socket; frames before it are thrown away.
pub async fn close_of(reader: &mut Reader) -> Close {
    loop {
        match next(reader).await {
            Ok(_) => {}
            Err(Ended::Closed(close)) => return close,
            Err(other) => panic!("the broker closes with a code, not: {other}"),
        }
    }
}

impl Link {
    pub async fn negotiate(
        mut reader: Reader,
        writer: Writer,
        request: NegotiationRequest,
    ) -> Result<Link, Box<(Reader, NegotiationResponse)>> {
        writer.send(ToBroker::FeatureNegotiationRequest(request).text()).await.unwrap();
        let Ok(ToNode::FeatureNegotiationResponse(hello)) = next(&mut reader).await else {
            panic!("the first frame answers the negotiation");
        };
        if !hello.missing_required.is_empty() {
            return Err(Box::new((reader, hello)));
        }
        let person = hello.members.first().expect("a node has a person").id;
        Ok(Link { person, epoch: hello.link_epoch, hello, reader, writer, n: 0, aside: VecDeque::new() })
    }

    pub async fn say(&self, frame: ToBroker) {
        self.writer.send(frame.text()).await.unwrap();
    }

    /// Whether the link still takes frames.
    pub async fn try_say_text(&mut self, text: &str) -> bool {
        self.writer.send(text.to_owned()).await.is_ok()
    }

    pub async fn say_text(&self, text: &str) {
        self.writer.send(text.to_owned()).await.unwrap();
    }

    /// The next frame that `pick` takes; others are kept for later.
    pub async fn await_frame<T>(&mut self, mut pick: impl FnMut(ToNode) -> Result<T, Box<ToNode>>) -> T {
        for _ in 0..self.aside.len() {
            let frame = self.aside.pop_front().expect("counted");
            match pick(*frame) {
                Ok(found) => return found,
                Err(frame) => self.aside.push_back(frame),
            }
        }
        loop {
            let frame = next(&mut self.reader).await.expect("the link stays open");
            match pick(frame) {
                Ok(found) => return found,
                Err(frame) => self.aside.push_back(frame),
            }
        }
    }

    pub async fn close(&mut self) -> Close {
        close_of(&mut self.reader).await
    }

    /// Sends a frame without waiting for its answer; its number.
    pub async fn start_send(&mut self, sender: MemberId, messages: Vec<Box<RawValue>>) -> u64 {
        self.n += 1;
        self.say(ToBroker::Send(Send { n: self.n, sender, messages })).await;
        self.n
    }

    pub async fn sent(&mut self, n: u64) -> Vec<SendResult> {
        self.await_frame(|frame| match frame {
            ToNode::Sent(sent) if sent.n == n => Ok(sent.results),
            other => Err(other.into()),
        })
        .await
    }

    /// Sends messages of one lane as the node's person and waits for the answers.
    pub async fn send(&mut self, messages: Vec<Box<RawValue>>) -> Vec<SendOutcome> {
        let person = self.person;
        let n = self.start_send(person, messages).await;
        self.sent(n).await.into_iter().map(|result| result.outcome).collect()
    }

    /// Sends one message and waits for its answer.
    pub async fn send_one(&mut self, to: &str, id: &str, body: &str) -> SendOutcome {
        self.send(vec![item(to, id, body).1]).await.remove(0)
    }

    pub async fn mail(&mut self) -> Vec<MailRow> {
        self.await_frame(|frame| match frame {
            ToNode::Mail(rows) => Ok(rows.rows),
            other => Err(other.into()),
        })
        .await
    }

    /// At least `count` mail rows.
    pub async fn mail_rows(&mut self, count: usize) -> Vec<MailRow> {
        let mut rows = Vec::new();
        while rows.len() < count {
            rows.extend(self.mail().await);
        }
        rows
    }

    pub async fn ack(&mut self, rows: &[MailRow], rung: DeliveryRung) -> Vec<Acked> {
        self.ack_read(rows, rung, None).await
    }

    /// An ack that may also say when the recipient read it.
    pub async fn ack_read(
        &mut self,
        rows: &[MailRow],
        rung: DeliveryRung,
        read_at: Option<Timestamp>,
    ) -> Vec<Acked> {
        let rows = rows.iter().map(|row| Ack {
            row: AckRef { id: row.message.id, recipient: row.recipient, rung },
            at: Timestamp::from_micros(1_798_761_600_000_001),
            read_at,
            place: None,
        });
        self.say(ToBroker::Ack(Rows { rows: rows.collect() })).await;
        self.await_frame(|frame| match frame {
            ToNode::Acked(rows) => Ok(rows.rows),
            other => Err(other.into()),
        })
        .await
    }

    pub async fn ask_as<T: DeserializeOwned>(
        &mut self,
        asker: MemberId,
        question: Question,
    ) -> Result<T, String> {
        self.n += 1;
        let n = self.n;
        self.say(ToBroker::Ask(Ask { n, asker, question })).await;
        let result = self
            .await_frame(|frame| match frame {
                ToNode::Answer(answer) if answer.n == n => Ok(answer.result),
                other => Err(other.into()),
            })
            .await;
        match result {
            AnswerResult::Ok(value) => Ok(serde_json::from_str(value.get()).unwrap()),
            AnswerResult::Refused { error, .. } => Err(error.error),
        }
    }

    /// Asks as the node's person.
    pub async fn ask<T: DeserializeOwned>(&mut self, question: Question) -> Result<T, String> {
        self.ask_as(self.person, question).await
    }
}

/// The accepted row, or a failure that shows what came instead.
pub fn accepted(outcome: SendOutcome) -> wire::link::AcceptedRow {
    match outcome {
        SendOutcome::Accepted(row) => row,
        other => panic!("accepted, not {other:?}"),
    }
}

/// Status and code of a refusal, and its further fields.
pub fn refused(outcome: &SendOutcome) -> (u16, &str, &serde_json::Map<String, serde_json::Value>) {
    match outcome {
        SendOutcome::Refused { status, error } => (*status, error.error.as_str(), &error.more),
        other => panic!("refused, not {other:?}"),
    }
}

pub fn client_id(text: &str) -> ClientMessageId {
    text.parse().unwrap()
}
