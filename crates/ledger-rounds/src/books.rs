//! A ledger with a mesh in it: a topic with subscribers at a node, and as many senders as there are callers.

use crate::Measured;
use crate::callers::{self, Caller, id};
use anyhow::{Context, bail};
use ledger::{
    Admission, Exchange, LaneSubmission, Ledger, Link, MeshSetup, NewInvite, Outcome, Policies,
    PostgresLedger, Registered, Role, Secret, SecretHash, SqliteLedger, Submission, Via,
};
use model::{
    ClientMessageId, Clock, Fingerprint, MemberId, MemberKind, MemberName, NodeKey, OsEntropy, SystemClock,
    TopicName, limits,
};
use std::path::Path;
use std::sync::Arc;

/// Recipients of every message.
pub const FAN_OUT: usize = 10;
/// As many as ever call at once.
const SENDERS: usize = 64;
/// The envelope that is kept: about 256 bytes, as a short message has.
const ENVELOPE: [u8; 256] = [b'x'; 256];
const AUDIENCE: &str = "postrider-link";
/// A topic with [`FAN_OUT`] subscribers.
const BUSY: &str = "busy";
/// A topic nobody subscribed to: what fills a ledger is ids and messages.
const QUIET: &str = "quiet";

/// See the module.
pub struct Books {
    ledger: Arc<dyn Ledger>,
    file: Option<Arc<SqliteLedger>>,
    senders: Vec<MemberId>,
    link: Link,
}

/// One sender.
struct Sender {
    ledger: Arc<dyn Ledger>,
    member: MemberId,
    link: Link,
}

impl Books {
    /// In a new file.
    pub async fn sqlite(path: &Path) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let file = Arc::new(SqliteLedger::open(path, clock, Arc::new(OsEntropy))?);
        Self::inhabited(file.clone(), Some(file)).await
    }

    /// In a new database.
    pub async fn postgres(url: &str) -> anyhow::Result<Self> {
        let ledger = PostgresLedger::open(url, Arc::new(OsEntropy)).await?;
        Self::inhabited(Arc::new(ledger), None).await
    }

    async fn inhabited(ledger: Arc<dyn Ledger>, file: Option<Arc<SqliteLedger>>) -> anyhow::Result<Self> {
        ledger.setup(MeshSetup { slug: "home".into(), policies: Policies::default() }).await?;
        let (near, _) = join(&*ledger, "near", Role::Owner).await?;
        let (far, _) = join(&*ledger, "far", Role::Member).await?;
        let (busy, quiet): (TopicName, TopicName) = (BUSY.parse()?, QUIET.parse()?);
        let mut senders = Vec::with_capacity(SENDERS);
        for number in 0..SENDERS {
            senders.push(agent(&*ledger, &near, &format!("sender-{number}")).await?);
        }
        for topic in [&busy, &quiet] {
            ledger.create_topic(senders[0], topic).await?;
            ledger.unsubscribe(senders[0], topic).await?;
        }
        for number in 0..FAN_OUT {
            let reader = agent(&*ledger, &far, &format!("reader-{number}")).await?;
            ledger.subscribe(reader, &busy).await?;
        }
        Ok(Self { ledger, file, senders, link: near })
    }

    /// One round of accepts with fan-out.
    pub async fn round(&self, callers: usize) -> anyhow::Result<Measured> {
        let sender = |number: usize| Sender {
            ledger: self.ledger.clone(),
            member: self.senders[number],
            link: self.link.clone(),
        };
        callers::round((0..callers).map(sender).collect()).await
    }

    /// Accepts messages `from..to` without readers, many at once.
    pub async fn fill(&self, from: u64, to: u64) -> anyhow::Result<()> {
        let frame = limits::FRAME_MESSAGES_MAX as u64;
        let lanes = SENDERS as u64;
        let mut start = from;
        while start < to {
            let mut under_way = Vec::new();
            for (lane, sender) in self.senders.iter().enumerate() {
                let first = start + lane as u64 * frame;
                let ids = (first..(first + frame).min(to)).map(|n| format!("fill-{n:010}"));
                let messages: Vec<_> =
                    ids.map(|id| submission(QUIET, id.parse()?)).collect::<anyhow::Result<_>>()?;
                if messages.is_empty() {
                    break;
                }
                let via = Via::Link(self.link.clone());
                under_way.push(self.ledger.accept(LaneSubmission { via, sender: *sender, messages }));
            }
            for lane in under_way {
                admitted(&lane.await?)?;
            }
            start += frame * lanes;
        }
        Ok(())
    }

    /// Leaves the file as one piece.
    pub async fn close(self) {
        if let Some(file) = self.file {
            file.db().clone().close().await;
        }
    }
}

impl Caller for Sender {
    async fn call(&mut self, _: u64) -> anyhow::Result<()> {
        let message = submission(BUSY, id())?;
        let known = self.ledger.known(self.member, &message.client_message_id).await?;
        anyhow::ensure!(known.is_none(), "every message of a round is new");
        let via = Via::Link(self.link.clone());
        let lane = LaneSubmission { via, sender: self.member, messages: vec![message] };
        admitted(&self.ledger.accept(lane).await?)
    }
}

fn admitted(outcomes: &[Outcome]) -> anyhow::Result<()> {
    for outcome in outcomes {
        match outcome {
            Outcome::Admitted { admission: Admission::New { .. }, .. } => {}
            Outcome::Admitted { .. } | Outcome::Refused(_) | Outcome::NotTried => {
                bail!("a new message was answered {outcome:?}")
            }
        }
    }
    Ok(())
}

/// The fingerprint is made before the door; any 32 bytes cost the ledger the same.
fn submission(topic: &str, id: ClientMessageId) -> anyhow::Result<Submission> {
    let mut fingerprint = [0; 32];
    for (byte, of_id) in fingerprint.iter_mut().zip(id.as_str().bytes().rev()) {
        *byte = of_id;
    }
    Ok(Submission {
        client_message_id: id,
        fingerprint: Fingerprint::from_bytes(fingerprint),
        to: format!("#{topic}").parse()?,
        mentions: Vec::new(),
        expects_input: false,
        send_deadline: None,
        deliver_by: None,
        envelope: ENVELOPE.to_vec(),
    })
}

/// The whole way in of a node: its link, and its person.
///
/// # Errors
/// When the ledger refuses a step.
pub async fn join(ledger: &dyn Ledger, name: &str, role: Role) -> anyhow::Result<(Link, MemberId)> {
    let secret = |of: u8| {
        let mut bytes = [of; 32];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        SecretHash(bytes)
    };
    let expires_at = ledger.now().await? + limits::INVITE_TTL;
    ledger.create_invite(NewInvite { hash: secret(1), expected_node: None, role, expires_at }).await?;
    let exchange = Exchange {
        by: Secret::Invite(secret(1)),
        node: name.parse()?,
        public_key: NodeKey::from_bytes(secret(2).0),
        nonce: secret(3),
        aud: AUDIENCE.to_owned(),
        ticket: secret(4),
        person: Some(name.parse()?),
    };
    ledger.exchange(exchange).await?;
    let joined = ledger.redeem(secret(4), AUDIENCE).await?;
    Ok((joined.link, joined.person.id))
}

async fn agent(ledger: &dyn Ledger, home: &Link, name: &str) -> anyhow::Result<MemberId> {
    let name: MemberName = name.parse().context("a name")?;
    let registered = ledger.register_member(home, &name, MemberKind::Agent).await?;
    Ok(match registered {
        Registered::New(member) | Registered::Known(member) => member.id,
    })
}
