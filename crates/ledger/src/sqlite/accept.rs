//! Door ②: a message becomes accepted, whole or not at all.
//!
//! The one writer makes claiming and checking one step: what was read stays true until the commit. So every
//! check comes before the first write, and a refused message has written nothing.

use ::sqlite::rusqlite::{Connection, Row, params};
use model::outbox::BrokerReceipt;
use model::{ConversationId, MemberId, MemberName, MessageId, NodeKey, Timestamp, To};

use super::row::{at, change, id, one};
use super::status::{self, ACCEPTED};
use super::store::World;
use super::{link, mesh, sql};
use crate::rules::{
    Destination, Facts, LogFacts, MemberFacts, Plan, Question, Speaker, Target, awaiting_after, empty_log,
    forgotten_at, judge, lane_goes_on, next_place, pair, settled,
};
use crate::types::accept::{Admission, LaneSubmission, Outcome, Submission};
use crate::types::mesh::Policies;
use crate::types::read::ConversationKind;
use crate::{LinkError, StorageError};

pub(super) fn accept(
    conn: &Connection,
    world: &World,
    lane: &LaneSubmission,
) -> Result<Vec<Outcome>, LinkError> {
    let speaker = link::speaker(conn, &lane.via)?;
    let policies = mesh::read(conn)?.policies;
    let sender = member_by_id(conn, lane.sender)?;
    let frame = Frame { world, speaker, policies, sender };
    let mut outcomes = Vec::with_capacity(lane.messages.len());
    let mut goes_on = true;
    for message in &lane.messages {
        let outcome = if goes_on { frame.admit(conn, message)? } else { Outcome::NotTried };
        goes_on = goes_on && lane_goes_on(&outcome);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// What the messages of one frame have in common.
struct Frame<'a> {
    world: &'a World,
    speaker: Speaker,
    policies: Policies,
    sender: Option<MemberFacts>,
}

/// A message with its place.
struct Placed<'a> {
    message: &'a Submission,
    plan: &'a Plan,
    receipt: BrokerReceipt,
    log: LogFacts,
    seq: i64,
}

impl Frame<'_> {
    fn admit(&self, conn: &Connection, message: &Submission) -> Result<Outcome, StorageError> {
        if let Some(sender) = self.sender {
            let known = status::known(conn, sender.number, &message.client_message_id)?;
            if let Some(outcome) = settled(known.as_ref(), &message.fingerprint) {
                return Ok(outcome);
            }
        }
        let facts = self.facts(conn, message)?;
        match judge(message, &facts) {
            Ok(plan) => {
                let receipt = self.write(conn, facts.now, message, &plan)?;
                Ok(Outcome::Admitted { receipt, admission: Admission::New })
            }
            Err(refusal) => Ok(Outcome::Refused(refusal)),
        }
    }

    fn facts(&self, conn: &Connection, message: &Submission) -> Result<Facts, StorageError> {
        let peer = match &message.to {
            To::Topic(name) => return self.facts_with(conn, message, Destination::Topic(topic(conn, name)?)),
            To::Member(name) => member_by_name(conn, name)?,
            To::Me => self.sender,
            To::Key(key) => person_by_key(conn, key)?,
        };
        let log = match (self.sender, peer) {
            (Some(sender), Some(peer)) => dm(conn, sender.number, peer.number)?,
            (None, _) | (_, None) => None,
        };
        self.facts_with(conn, message, Destination::Dm { peer, log })
    }

    fn facts_with(
        &self,
        conn: &Connection,
        message: &Submission,
        destination: Destination,
    ) -> Result<Facts, StorageError> {
        let mentions =
            message.mentions.iter().map(|name| member_by_name(conn, name)).collect::<Result<_, _>>()?;
        let Frame { world, speaker, policies, sender } = self;
        Ok(Facts {
            now: world.now(),
            policies: *policies,
            speaker: *speaker,
            sender: *sender,
            destination,
            mentions,
        })
    }

    fn write(
        &self,
        conn: &Connection,
        now: Timestamp,
        message: &Submission,
        plan: &Plan,
    ) -> Result<BrokerReceipt, StorageError> {
        let log = self.target(conn, now, plan)?;
        let (seq, ts) = next_place(now, &log);
        self.world.regressions.note(now, ts);
        let receipt = BrokerReceipt {
            broker_message_id: MessageId::mint(ts, &*self.world.entropy),
            conversation: log.id,
            history_id: seq.unsigned_abs(),
            accepted_at: ts,
        };
        let placed = Placed { message, plan, receipt, log, seq };
        self.write_dedupe(conn, &placed)?;
        let number = self.write_message(conn, &placed)?;
        write_head(conn, &placed)?;
        write_deliveries(conn, &placed, number)?;
        Ok(receipt)
    }

    /// The log to write to, made when this message is its first.
    fn target(&self, conn: &Connection, now: Timestamp, plan: &Plan) -> Result<LogFacts, StorageError> {
        match &plan.target {
            Target::Topic(log) => Ok(*log),
            Target::Dm { log: Some(log), .. } => Ok(*log),
            Target::NewTopic(name) => {
                let log = create_topic(conn, self.world, name)?;
                subscribe(conn, now, log.number, plan.sender.number)?;
                Ok(log)
            }
            Target::Dm { peer, log: None } => {
                let id = ConversationId::mint(now, &*self.world.entropy);
                let (lo, hi) = pair(plan.sender.number, peer.number);
                change(conn, sql!("dm_insert"), params![id.as_bytes(), lo, hi, now.as_micros()])?;
                Ok(empty_log(conn.last_insert_rowid(), id))
            }
        }
    }

    fn write_dedupe(&self, conn: &Connection, placed: &Placed<'_>) -> Result<(), StorageError> {
        let Placed { message, plan, receipt, log, seq } = placed;
        let kind = match plan.target {
            Target::Topic(_) | Target::NewTopic(_) => ConversationKind::Topic,
            Target::Dm { .. } => ConversationKind::Dm,
        };
        let until = forgotten_at(receipt.accepted_at, self.policies.dedupe).map(Timestamp::as_micros);
        let params = params![
            plan.sender.number,
            message.client_message_id.as_str(),
            ACCEPTED,
            message.fingerprint.as_bytes(),
            receipt.broker_message_id.as_bytes(),
            log.number,
            seq,
            kind.code(),
            message.to.reference(),
            receipt.accepted_at.as_micros(),
            until
        ];
        change(conn, sql!("dedupe_insert"), params)?;
        Ok(())
    }

    fn write_message(&self, conn: &Connection, placed: &Placed<'_>) -> Result<i64, StorageError> {
        let Placed { message, plan, receipt, log, seq } = placed;
        let until = forgotten_at(receipt.accepted_at, self.policies.dedupe).map(Timestamp::as_micros);
        let params = params![
            log.number,
            seq,
            receipt.broker_message_id.as_bytes(),
            receipt.accepted_at.as_micros(),
            plan.sender.number,
            message.client_message_id.as_str(),
            message.envelope,
            message.deliver_by.map(Timestamp::as_micros),
            until
        ];
        change(conn, sql!("message_insert"), params)?;
        Ok(conn.last_insert_rowid())
    }
}

fn write_head(conn: &Connection, placed: &Placed<'_>) -> Result<(), StorageError> {
    let Placed { message, plan, receipt, log, seq } = placed;
    let (awaiting, rev) = awaiting_after(log, *seq, plan.sender.number, message.expects_input);
    let params = params![
        log.number,
        seq,
        receipt.accepted_at.as_micros(),
        awaiting.map(|question| question.seq),
        awaiting.map(|question| question.by),
        rev
    ];
    change(conn, sql!("conversation_advance"), params)?;
    if rev != log.awaiting_rev {
        let (question, by) = (awaiting.map(|question| question.seq), awaiting.map(|question| question.by));
        let params = params![log.number, rev, question, by, receipt.accepted_at.as_micros()];
        change(conn, sql!("escalation_insert"), params)?;
    }
    Ok(())
}

fn write_deliveries(conn: &Connection, placed: &Placed<'_>, number: i64) -> Result<(), StorageError> {
    let Placed { plan, receipt, log, .. } = placed;
    let (sender, ts) = (plan.sender.number, receipt.accepted_at.as_micros());
    match &plan.target {
        Target::Topic(_) | Target::NewTopic(_) => {
            change(conn, sql!("delivery_to_subscribers"), params![number, log.number, sender, ts])?;
            for member in &plan.mentioned {
                change(conn, sql!("mention_insert"), params![member.number, number])?;
                if member.number != sender {
                    change(conn, sql!("delivery_to_mentioned"), params![number, member.number, sender, ts])?;
                }
            }
        }
        Target::Dm { peer, .. } => {
            change(conn, sql!("delivery_to_peer"), params![number, peer.number, sender, ts])?;
            // Only its two read a direct message; a third who is named in it has nothing to find.
            for member in
                plan.mentioned.iter().filter(|member| [peer.number, sender].contains(&member.number))
            {
                change(conn, sql!("mention_insert"), params![member.number, number])?;
            }
        }
    }
    Ok(())
}

/// A topic without messages or subscribers.
pub(super) fn create_topic(
    conn: &Connection,
    world: &World,
    name: &model::TopicName,
) -> Result<LogFacts, StorageError> {
    let now = world.now();
    let id = ConversationId::mint(now, &*world.entropy);
    change(conn, sql!("topic_insert"), params![id.as_bytes(), name.as_str(), now.as_micros()])?;
    Ok(empty_log(conn.last_insert_rowid(), id))
}

pub(super) fn subscribe(
    conn: &Connection,
    now: Timestamp,
    log: i64,
    member: i64,
) -> Result<(), StorageError> {
    change(conn, sql!("subscription_insert"), params![log, member, now.as_micros()])?;
    Ok(())
}

pub(super) fn topic(conn: &Connection, name: &model::TopicName) -> Result<Option<LogFacts>, StorageError> {
    Ok(one(conn, sql!("log_by_topic"), [name.as_str()], log_facts)?)
}

pub(super) fn member_by_id(conn: &Connection, id: MemberId) -> Result<Option<MemberFacts>, StorageError> {
    Ok(one(conn, sql!("member_facts_by_id"), [id.as_bytes()], member_facts)?)
}

pub(super) fn member_by_name(
    conn: &Connection,
    name: &MemberName,
) -> Result<Option<MemberFacts>, StorageError> {
    Ok(one(conn, sql!("member_facts_by_name"), [name.as_str()], member_facts)?)
}

fn person_by_key(conn: &Connection, key: &NodeKey) -> Result<Option<MemberFacts>, StorageError> {
    Ok(one(conn, sql!("member_facts_by_key"), [key.as_bytes()], member_facts)?)
}

fn dm(conn: &Connection, one_member: i64, other: i64) -> Result<Option<LogFacts>, StorageError> {
    Ok(one(conn, sql!("log_by_pair"), <[i64; 2]>::from(pair(one_member, other)), log_facts)?)
}

fn member_facts(row: &Row<'_>) -> ::sqlite::rusqlite::Result<MemberFacts> {
    Ok(MemberFacts {
        number: row.get(0)?,
        home: row.get(1)?,
        removed: row.get::<_, Option<i64>>(2)?.is_some(),
    })
}

fn log_facts(row: &Row<'_>) -> ::sqlite::rusqlite::Result<LogFacts> {
    let question = match (row.get(5)?, row.get(6)?) {
        (Some(seq), Some(by)) => Some(Question { seq, by }),
        (None, _) | (_, None) => None,
    };
    Ok(LogFacts {
        number: row.get(0)?,
        id: id(row, 1, ConversationId::from_bytes)?,
        head_seq: row.get(2)?,
        head_ts: at(row, 3)?,
        closed: row.get(4)?,
        awaiting: question,
        awaiting_rev: row.get(7)?,
    })
}
