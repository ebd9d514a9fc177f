//! Judging a batch in memory: what a transaction has read, and what the messages judged so far will change.
//!
//! All of a batch commits or none of it does. So a message may rest on one judged before it: a second copy of
//! an id finds the first, a second message to a log its new head.

use std::collections::{BTreeSet, HashMap};

use model::admission::{Known, KnownState};
use model::ageing::ForgottenUpto;
use model::outbox::BrokerReceipt;
use model::{
    ClientMessageId, Entropy, MemberId, MemberName, MessageId, NodeKey, NodeName, Timestamp, To, TopicName,
};

use crate::LinkRefused;
use crate::rules::{
    Destination, Facts, LogFacts, MemberFacts, Plan, Question, Speaker, Target, awaiting_after, empty_log,
    fenced, judge, lane_goes_on, next_place, pair, settled,
};
use crate::types::accept::{Admission, LaneSubmission, Outcome, Submission, Via};
use crate::types::mesh::Policies;

/// What the messages of a batch name, each thing once.
#[derive(Default)]
pub(crate) struct Asked<'a> {
    pub nodes: BTreeSet<&'a NodeName>,
    pub ids: BTreeSet<MemberId>,
    pub names: BTreeSet<&'a MemberName>,
    pub keys: BTreeSet<NodeKey>,
    pub topics: BTreeSet<&'a TopicName>,
    pub known: BTreeSet<(MemberId, &'a ClientMessageId)>,
}

impl<'a> Asked<'a> {
    pub fn of(frames: &'a [LaneSubmission]) -> Self {
        let mut asked = Self::default();
        for frame in frames {
            if let Via::Link(link) = &frame.via {
                asked.nodes.insert(&link.node);
            }
            asked.ids.insert(frame.sender);
            frame.messages.iter().for_each(|message| asked.message(frame.sender, message));
        }
        asked
    }

    fn message(&mut self, sender: MemberId, message: &'a Submission) {
        self.known.insert((sender, &message.client_message_id));
        self.names.extend(&message.mentions);
        match &message.to {
            To::Topic(name) => {
                self.topics.insert(name);
            }
            To::Member(name) => {
                self.names.insert(name);
            }
            To::Key(key) => {
                self.keys.insert(*key);
            }
            To::Me => {}
        }
    }
}

/// What names a log before it has a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum LogKey {
    Topic(TopicName),
    Dm(i64, i64),
}

/// A node as its links need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeFacts {
    pub number: i64,
    pub epoch: u64,
    pub removed: bool,
}

/// What the transaction has read.
#[derive(Clone)]
pub(crate) struct Desk {
    pub now: Timestamp,
    pub forgotten: ForgottenUpto,
    pub policies: Policies,
    pub nodes: HashMap<NodeName, NodeFacts>,
    pub by_id: HashMap<MemberId, MemberFacts>,
    pub by_name: HashMap<MemberName, MemberFacts>,
    pub by_key: HashMap<NodeKey, MemberFacts>,
    pub known: HashMap<(MemberId, ClientMessageId), Known>,
    pub logs: HashMap<LogKey, LogFacts>,
}

/// An accepted message with its place.
pub(crate) struct Entry<'a> {
    pub message: &'a Submission,
    pub plan: Plan,
    pub log: LogKey,
    pub receipt: BrokerReceipt,
    pub seq: i64,
}

/// One verdict per frame.
pub(crate) type Verdicts = Vec<Result<Vec<Outcome>, LinkRefused>>;

/// Verdicts on a batch.
pub(crate) struct Judged<'a> {
    /// One per frame.
    pub frames: Verdicts,
    /// The accepted messages, in the order they were judged.
    pub entries: Vec<Entry<'a>>,
    /// Each log that gets a message, as it is afterwards.
    pub logs: HashMap<LogKey, LogFacts>,
    /// Every change of what a log waits on, in order.
    pub edges: Vec<Edge>,
}

impl Judged<'_> {
    /// Whether no frame and no message of one was refused.
    pub fn accepts_all(&self) -> bool {
        let admitted = |outcome: &Outcome| matches!(outcome, Outcome::Admitted { .. });
        self.frames.iter().all(|frame| frame.as_ref().is_ok_and(|outcomes| outcomes.iter().all(admitted)))
    }
}

/// A change of what a log waits on.
pub(crate) struct Edge {
    pub log: LogKey,
    pub rev: i64,
    pub question: Option<Question>,
    pub at: Timestamp,
}

impl Desk {
    /// Judges every frame in order.
    pub fn judge<'a>(mut self, frames: &'a [LaneSubmission], entropy: &dyn Entropy) -> Judged<'a> {
        let mut judged = Judged {
            frames: Vec::with_capacity(frames.len()),
            entries: Vec::new(),
            logs: HashMap::new(),
            edges: Vec::new(),
        };
        for frame in frames {
            let verdict = self.frame(frame, entropy, &mut judged);
            judged.frames.push(verdict);
        }
        for entry in &judged.entries {
            let log = self.logs.get(&entry.log).copied();
            judged.logs.extend(log.map(|log| (entry.log.clone(), log)));
        }
        judged
    }

    fn frame<'a>(
        &mut self,
        frame: &'a LaneSubmission,
        entropy: &dyn Entropy,
        judged: &mut Judged<'a>,
    ) -> Result<Vec<Outcome>, LinkRefused> {
        let speaker = self.speaker(&frame.via)?;
        let mut outcomes = Vec::with_capacity(frame.messages.len());
        let mut goes_on = true;
        for message in &frame.messages {
            let outcome = if goes_on {
                self.message(frame.sender, speaker, message, entropy, judged)
            } else {
                Outcome::NotTried
            };
            goes_on = goes_on && lane_goes_on(&outcome);
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    fn speaker(&self, via: &Via) -> Result<Speaker, LinkRefused> {
        match via {
            Via::Broker => Ok(Speaker::Broker),
            Via::Link(link) => {
                let node = self.nodes.get(&link.node).ok_or(LinkRefused::UnknownNode)?;
                fenced(node.epoch, node.removed, link)?;
                Ok(Speaker::Node(node.number))
            }
        }
    }

    fn message<'a>(
        &mut self,
        sender: MemberId,
        speaker: Speaker,
        message: &'a Submission,
        entropy: &dyn Entropy,
        judged: &mut Judged<'a>,
    ) -> Outcome {
        let key = (sender, message.client_message_id.clone());
        if let Some(outcome) = settled(self.known.get(&key), &message.fingerprint) {
            return outcome;
        }
        let plan = match judge(message, &self.facts(sender, speaker, message)) {
            Ok(plan) => plan,
            Err(refusal) => return Outcome::Refused(refusal),
        };
        let entry = self.place(message, plan, entropy, &mut judged.edges);
        let receipt = entry.receipt;
        let generation = self.logs.get(&entry.log).map(|log| log.generation);
        let state = KnownState::Accepted { receipt, history_available: true };
        self.known.insert(key, Known { fingerprint: message.fingerprint, state });
        judged.entries.push(entry);
        Outcome::Admitted { receipt, admission: Admission::New { generation } }
    }

    fn facts(&self, sender: MemberId, speaker: Speaker, message: &Submission) -> Facts {
        let sender = self.by_id.get(&sender).copied();
        let peer = match &message.to {
            To::Topic(_) => None,
            To::Member(name) => self.by_name.get(name).copied(),
            To::Me => sender,
            To::Key(key) => self.by_key.get(key).copied(),
        };
        let destination = match &message.to {
            To::Topic(name) => Destination::Topic(self.logs.get(&LogKey::Topic(name.clone())).copied()),
            To::Member(_) | To::Me | To::Key(_) => {
                let key = sender.zip(peer).map(|(sender, peer)| dm_key(&sender, &peer));
                Destination::Dm { peer, log: key.and_then(|key| self.logs.get(&key).copied()) }
            }
        };
        let mentions = message.mentions.iter().map(|name| self.by_name.get(name).copied()).collect();
        Facts {
            now: self.now,
            forgotten: self.forgotten,
            policies: self.policies,
            speaker,
            sender,
            destination,
            mentions,
        }
    }

    /// Takes the next place in the message's log. A log that is not there yet counts from nothing.
    fn place<'a>(
        &mut self,
        message: &'a Submission,
        plan: Plan,
        entropy: &dyn Entropy,
        edges: &mut Vec<Edge>,
    ) -> Entry<'a> {
        let (key, log) = match (&plan.target, &message.to) {
            (Target::Topic(log), To::Topic(name)) => (LogKey::Topic(name.clone()), Some(*log)),
            (Target::NewTopic(name), _) => (LogKey::Topic(name.clone()), None),
            (Target::Dm { peer, log }, _) => (dm_key(&plan.sender, peer), *log),
            (Target::Topic(_), _) => unreachable!("only a message to a topic is judged to go to one"),
        };
        let mut log = log.unwrap_or_else(|| empty_log(0, model::ConversationId::from_bytes([0; 16])));
        let (seq, ts) = next_place(self.now, &log);
        let (awaiting, awaiting_rev) = awaiting_after(&log, seq, plan.sender.number, message.expects_input);
        if awaiting_rev != log.awaiting_rev {
            edges.push(Edge { log: key.clone(), rev: awaiting_rev, question: awaiting, at: ts });
        }
        log = LogFacts { head_seq: seq, head_ts: ts, awaiting, awaiting_rev, ..log };
        self.logs.insert(key.clone(), log);
        let receipt = BrokerReceipt {
            broker_message_id: MessageId::mint(ts, entropy),
            conversation: log.id,
            history_id: seq.unsigned_abs(),
            accepted_at: ts,
        };
        Entry { message, plan, log: key, receipt, seq }
    }
}

fn dm_key(one: &MemberFacts, other: &MemberFacts) -> LogKey {
    let (lo, hi) = pair(one.number, other.number);
    LogKey::Dm(lo, hi)
}
