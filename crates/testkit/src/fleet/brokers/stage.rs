//! The servers of a run, and what its threads share.

use super::balancer::Balancer;
use super::clocks::Clocks;
use super::writer::{Way, Writer};
use crate::bin::Binary;
use crate::fleet::FleetError;
use crate::fleet::caller::Caller;
use crate::fleet::servers::{Broker, Node};
use crate::history::Recorder;
use crate::kills::told::Told;
use crate::{postgres, redis};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The one topic of a run.
pub(super) const TOPIC: &str = "fleet";
/// The homes, named like their person.
pub(super) const NODES: [&str; 2] = ["ann", "bob"];
/// Members that call a broker themselves; the last one is impatient.
const CALLERS: [&str; 4] = ["carl", "dora", "emil", "hasty"];

/// What faults fall on.
pub(super) struct Servers {
    pub brokers: [Broker; 2],
    pub redis: redis::Private,
    pub postgres: postgres::Private,
    pub clocks: Clocks,
}

pub(super) struct Stage {
    pub told: Told,
    pub nodes: Vec<Node>,
    addresses: Vec<SocketAddr>,
    tokens: Vec<String>,
    history: PathBuf,
    over: AtomicBool,
    unanswered: AtomicU64,
    hung_up: AtomicU64,
    amiss: Mutex<Vec<String>>,
    _balancer: Balancer,
}

impl Stage {
    /// Both brokers up, with clocks of their own, both daemons joined and subscribed, a token for each caller.
    pub(super) fn open(
        binary: &Binary,
        postgres: postgres::Private,
        history: &Path,
    ) -> Result<(Self, Servers), FleetError> {
        let (redis, mut clocks) = (redis::Private::start()?, Clocks::new()?);
        let balancer = Balancer::start()?;
        let args = [
            "--store",
            &postgres.url(),
            "--limiter",
            &redis.url(),
            "--public-url",
            &balancer.url(),
            "--limit-member",
            "100000",
            "--limit-mesh",
            "1000000",
        ]
        .map(str::to_owned);
        let one = Broker::start(binary, &args, &[clocks.set(0)?])?;
        balancer.add(one.address);
        let first = Node::join(binary, NODES[0], one.owner_invite.as_deref().unwrap_or_default())?;
        first.quiet(&["topic", "create", TOPIC])?;
        let two = Broker::start(binary, &args, &[clocks.set(1)?])?;
        balancer.add(two.address);
        let second = Node::join(binary, NODES[1], &first.quiet(&["invite"])?)?;
        for node in [&first, &second] {
            node.quiet(&["topic", "subscribe", TOPIC])?;
        }
        let token = |name: &&str| first.quiet(&["token", "create", "--as", name]);
        let tokens = CALLERS.iter().map(token).collect::<Result<_, _>>()?;
        let stage = Self {
            told: Told::default(),
            nodes: vec![first, second],
            addresses: vec![one.address, two.address],
            tokens,
            history: history.to_owned(),
            over: AtomicBool::new(false),
            unanswered: AtomicU64::new(0),
            hung_up: AtomicU64::new(0),
            amiss: Mutex::default(),
            _balancer: balancer,
        };
        Ok((stage, Servers { brokers: [one, two], redis, postgres, clocks }))
    }

    /// One writer a home and one a caller.
    pub(super) fn writers(&self, seed: u64) -> Result<Vec<Writer<'_>>, FleetError> {
        let homes = NODES.iter().zip(&self.nodes).map(|(name, node)| (*name, Way::Home(node.door())));
        let callers = CALLERS.iter().zip(&self.tokens).enumerate().map(|(n, (name, token))| {
            let caller = Caller::new(self.addresses.clone(), n, token);
            (*name, if n + 1 == CALLERS.len() { Way::Hasty(caller) } else { Way::Direct(caller) })
        });
        let all = homes.chain(callers).enumerate();
        all.map(|(n, (name, way))| Writer::new(self, name, way, seed ^ (n as u64 + 1) << 32)).collect()
    }

    /// A client's pen.
    pub(super) fn pen(&self, proc: &str) -> Result<Recorder, FleetError> {
        Ok(Recorder::open(&self.history, proc)?)
    }

    /// Writers begin nothing more.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    pub(super) fn note_unanswered(&self) {
        self.unanswered.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::SeqCst)
    }

    pub(super) fn note_hung_up(&self) {
        self.hung_up.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn hung_up(&self) -> u64 {
        self.hung_up.load(Ordering::SeqCst)
    }

    pub(super) fn note_amiss(&self, sentence: String) {
        self.amiss.lock().unwrap_or_else(PoisonError::into_inner).push(sentence);
    }

    pub(super) fn amiss(&self) -> Vec<String> {
        self.amiss.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The reader of a home's inbox, after the run.
pub(super) fn inbox_of(name: &str) -> String {
    format!("inbox-{name}")
}

/// The reader of the topic's log, after the run.
pub(super) const LOG: &str = "log-fleet";
/// What the last message of a writer is called, before its name.
pub(super) const LAST: &str = "last.";

/// Everybody who must see a message of `sender`.
pub(super) fn readers(sender: &str) -> Vec<String> {
    let inboxes = NODES.into_iter().filter(|name| *name != sender).map(inbox_of);
    inboxes.chain([LOG.to_owned()]).collect()
}

/// How many last messages reach the inbox of `name`: everybody's but its own.
pub(super) fn lasts_for(name: &str) -> usize {
    NODES.iter().chain(&CALLERS).filter(|writer| **writer != name).count()
}
