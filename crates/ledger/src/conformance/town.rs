//! A mesh with homes in it, and short ways to send.

use std::sync::Arc;
use std::time::Duration;

use model::envelope::Body;
use model::outbox::{BrokerReceipt, DedupeWindow};
use model::{
    Deadline, Draft, Fingerprint, Kind, MemberId, MemberName, MessageId, NodeKey, NodeName, Priority,
    TopicName, limits,
};

use super::Bench;
use crate::*;

/// A node that joined, with its person.
#[derive(Clone, Debug)]
pub struct Home {
    /// Its link.
    pub link: Link,
    /// Its person.
    pub person: Member,
    /// Its key.
    pub key: NodeKey,
}

impl Home {
    /// Through its link.
    pub fn via(&self) -> Via {
        Via::Link(self.link.clone())
    }

    /// Its person.
    pub fn id(&self) -> MemberId {
        self.person.id
    }
}

/// Open topics, ids remembered for the shortest time allowed.
pub const POLICIES: Policies = Policies {
    topics: TopicPolicy::Open,
    dedupe: DedupeWindow::Days(limits::DEDUPE_DAYS_MIN),
    connections: ConnectionPolicy::PreferNewest,
};

/// A longer time than the shortest window.
pub const PAST_WINDOW: Duration = Duration::from_secs(8 * 24 * 3600);

/// The ledger with a mesh in it.
pub async fn mesh(bench: &impl Bench) -> Arc<dyn Ledger> {
    let ledger = bench.ledger();
    let setup = MeshSetup { slug: "home".into(), policies: POLICIES };
    ledger.setup(setup).await.unwrap();
    ledger
}

/// The ledger with a mesh and two homes, jane's and carl's. Jane owns the mesh.
pub async fn two_homes(bench: &impl Bench) -> (Arc<dyn Ledger>, Home, Home) {
    let ledger = mesh(bench).await;
    let jane = join(&*ledger, "jane", Role::Owner).await;
    let carl = join(&*ledger, "carl", Role::Member).await;
    (ledger, jane, carl)
}

/// A stored secret, told apart by its name.
pub fn secret(name: &str) -> SecretHash {
    let mut bytes = [0; 32];
    for (place, byte) in name.bytes().enumerate() {
        bytes[place % 32] ^= byte.rotate_left(u32::try_from(place / 32).unwrap_or(0));
    }
    bytes[31] ^= 0x5a;
    SecretHash(bytes)
}

/// The key of the node called `name`.
pub fn key(name: &str) -> NodeKey {
    NodeKey::from_bytes(secret(&format!("key-{name}")).0)
}

/// The node of the person called `name`.
pub fn node(name: &str) -> NodeName {
    format!("{name}-host").parse().unwrap()
}

/// Stores an invite that anybody may use for the usual time.
pub async fn invite(ledger: &dyn Ledger, token: &str, role: Role) {
    let expires_at = ledger.now().await.unwrap() + limits::INVITE_TTL;
    let invite = NewInvite { hash: secret(token), expected_node: None, role, expires_at };
    ledger.create_invite(invite).await.unwrap();
}

/// A request of `name`'s node by an invite.
pub fn by_invite(name: &str, token: &str, nonce: &str) -> Exchange {
    Exchange {
        by: Secret::Invite(secret(token)),
        node: node(name),
        public_key: key(name),
        nonce: secret(nonce),
        aud: "postrider-link".into(),
        ticket: secret(&format!("ticket-{nonce}")),
        person: Some(name.parse().unwrap()),
    }
}

/// The whole way in.
pub async fn join(ledger: &dyn Ledger, name: &str, role: Role) -> Home {
    let token = format!("invite-{name}");
    invite(ledger, &token, role).await;
    let exchange = by_invite(name, &token, &format!("nonce-{name}"));
    let ticket = exchange.ticket;
    ledger.exchange(exchange).await.unwrap();
    let joined = ledger.redeem(ticket, "postrider-link").await.unwrap();
    Home { link: joined.link, person: joined.person, key: key(name) }
}

/// The way back in, `again` telling one return from another.
pub async fn come_back(ledger: &dyn Ledger, name: &str, again: &str) -> Joined {
    let challenge = secret(&format!("challenge-{name}-{again}"));
    ledger.issue_challenge(&node(name), challenge).await.unwrap();
    let mut exchange = by_invite(name, "none", &format!("nonce-{name}-{again}"));
    exchange.by = Secret::Challenge(challenge);
    let ticket = exchange.ticket;
    ledger.exchange(exchange).await.unwrap();
    ledger.redeem(ticket, "postrider-link").await.unwrap()
}

/// What a node says when nothing is unusual.
pub fn opening(link: &Link, inbox_epoch: &str) -> LinkOpening {
    LinkOpening {
        link: link.clone(),
        inbox_epoch: inbox_epoch.into(),
        inbox_epoch_before: None,
        members: Vec::new(),
        done: Vec::new(),
        received: None,
    }
}

/// A message with nothing but a text.
pub fn text(to: &str, id: &str, body: &str) -> Submission {
    let draft = Draft {
        client_message_id: id.parse().unwrap(),
        kind: Kind::Message,
        to: to.parse().unwrap(),
        body: Body::parse(body.into()).unwrap(),
        meta: None,
        mentions: Vec::new(),
        reply_to: None,
        corr_id: None,
        priority: Priority::Next,
        expects_input: false,
        deadline: Deadline::None,
        hops: 0,
    };
    Submission {
        fingerprint: Fingerprint::of(&draft),
        client_message_id: draft.client_message_id,
        to: draft.to,
        mentions: Vec::new(),
        expects_input: false,
        send_deadline: None,
        deliver_by: None,
        envelope: body.into(),
    }
}

/// The same message naming members.
pub fn mentioning(mut message: Submission, names: &[&str]) -> Submission {
    message.mentions = names.iter().map(|name| name.parse().unwrap()).collect();
    message
}

/// Hands one frame in through the home's link.
pub async fn send(ledger: &dyn Ledger, from: &Home, messages: Vec<Submission>) -> Vec<Outcome> {
    ledger.accept(LaneSubmission { via: from.via(), sender: from.id(), messages }).await.unwrap()
}

/// Hands one message in and expects it to be accepted now.
pub async fn accepted(ledger: &dyn Ledger, from: &Home, message: Submission) -> BrokerReceipt {
    match send(ledger, from, vec![message]).await.remove(0) {
        Outcome::Admitted { receipt, admission: Admission::New { .. } } => receipt,
        other => panic!("to be accepted now, not {other:?}"),
    }
}

/// Hands one message in and expects a refusal.
pub async fn refused(ledger: &dyn Ledger, from: &Home, message: Submission) -> Refusal {
    match send(ledger, from, vec![message]).await.remove(0) {
        Outcome::Refused(refusal) => refusal,
        other => panic!("to be refused, not {other:?}"),
    }
}

/// All mail waiting at a home.
pub async fn mail(ledger: &dyn Ledger, at: &Home) -> Vec<MailRow> {
    ledger.mail(&at.link, &[], 1_000).await.unwrap()
}

/// All receipts waiting at a home.
pub async fn receipts(ledger: &dyn Ledger, at: &Home) -> Vec<ReceiptRow> {
    ledger.receipts(&at.link, &[], 1_000).await.unwrap()
}

/// The newest page of a topic.
pub async fn newest(ledger: &dyn Ledger, topic: &str, reader: MemberId) -> History {
    let log = Log::Topic(topic.parse().unwrap());
    ledger.history(&log, reader, HistoryPage::Newest, 1_000).await.unwrap().unwrap()
}

/// The texts of a page.
pub fn bodies(history: &History) -> Vec<String> {
    history.rows.iter().map(|row| String::from_utf8(row.envelope.clone()).unwrap()).collect()
}

/// An ack of `rung` for a row of mail.
pub fn ack(row: &MailRow, rung: model::DeliveryRung) -> Ack {
    Ack { id: row.id, recipient: row.recipient, rung, at: row.created_at, read_at: None, place: None }
}

/// Rungs of one message, by recipient name.
pub async fn rungs(ledger: &dyn Ledger, id: MessageId) -> Vec<(String, model::DeliveryRung)> {
    let mut named = Vec::new();
    for (member, rung) in ledger.rungs(id).await.unwrap() {
        named.push((ledger.member(member).await.unwrap().unwrap().name.to_string(), rung));
    }
    named.sort();
    named
}

/// How many ids a walk over all of them forgot.
pub async fn forgotten(ledger: &dyn Ledger) -> u64 {
    let (mut forgotten, mut from) = (0, Some(IdPlace::default()));
    while let Some(place) = from {
        let step = ledger.expire_dedupe(place, 100).await.unwrap();
        (forgotten, from) = (forgotten + step.ids, step.next);
    }
    forgotten
}

/// `name` as a topic.
pub fn topic(name: &str) -> TopicName {
    name.parse().unwrap()
}

/// `name` as a member's.
pub fn member_name(name: &str) -> MemberName {
    name.parse().unwrap()
}

/// How many rows each table holds.
pub async fn row_counts(bench: &impl Bench) -> Vec<(&'static str, u64)> {
    let mut counts = Vec::new();
    for table in super::TABLES {
        counts.push((*table, bench.count(table).await));
    }
    counts
}
