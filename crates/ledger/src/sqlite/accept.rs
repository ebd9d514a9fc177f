//! Door ②: a batch of frames becomes accepted, whole or not at all.
//!
//! The one writer makes claiming and checking one step: what was read stays true until the commit. So a batch is read
//! first, each thing once, judged in memory, and then written; a refused message has written nothing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;

use ::sqlite::rusqlite::{Connection, Row, params};
use model::{ConversationId, MemberId, MemberName, NodeKey, NodeName, Timestamp, TopicName};

use super::row::{at, at_option, change, count, first, id, one};
use super::store::World;
use super::write::Left;
use super::{mesh, sql, status, write};
use crate::desk::{Asked, Desk, LogKey, NodeFacts, Verdicts};
use crate::rules::{LogFacts, MemberFacts, Question, empty_log};
use crate::types::accept::{LaneSubmission, Outcome};
use crate::{LinkError, StorageError};

pub(super) fn accept(
    conn: &Connection,
    world: &World,
    lane: &LaneSubmission,
) -> Result<Vec<Outcome>, LinkError> {
    let (mut verdicts, _) = accept_all(conn, world, std::slice::from_ref(lane))?;
    Ok(verdicts.remove(0)?)
}

pub(super) fn accept_all(
    conn: &Connection,
    world: &World,
    frames: &[LaneSubmission],
) -> Result<(Verdicts, Left), StorageError> {
    let now = world.now();
    let mut desk = read(conn, world, now, frames)?;
    let kept = world.id_retention(desk.policies.dedupe);
    let mut judged = desk.clone().judge(frames, &*world.entropy);
    let needed: BTreeSet<&LogKey> = judged.entries.iter().map(|entry| &entry.log).collect();
    let missing: Vec<LogKey> =
        needed.into_iter().filter(|key| !desk.logs.contains_key(key)).cloned().collect();
    let mut created = HashSet::new();
    if !missing.is_empty() {
        for key in missing {
            let log = found_or_made(conn, world, &key, &mut created)?;
            desk.logs.insert(key, log);
        }
        judged = desk.judge(frames, &*world.entropy);
    }
    judged.entries.iter().for_each(|entry| world.regressions.note(now, entry.receipt.accepted_at));
    let left = write::rows(conn, &judged, created, kept)?;
    Ok((judged.frames, left))
}

/// Everything the verdicts depend on but the direct conversations, which have no name to be found by.
fn read(
    conn: &Connection,
    world: &World,
    now: Timestamp,
    frames: &[LaneSubmission],
) -> Result<Desk, StorageError> {
    let asked = Asked::of(frames);
    // The two that every message asks are prepared once.
    let mut members = conn.prepare_cached(sql!("member_facts_by_id"))?;
    let by_id = each(asked.ids, |id| {
        Ok(first(&mut members, [id.as_bytes()], member_facts)?.map(|facts| (id, facts)))
    })?;
    let mut ids = conn.prepare_cached(sql!("dedupe"))?;
    let known = each(asked.known, |(sender, id)| {
        let Some(facts) = by_id.get(&sender) else { return Ok(None) };
        let known = first(&mut ids, params![facts.number, id.as_str()], |row| status::read(row, 0))?;
        Ok(known.map(|known| ((sender, id.clone()), known)))
    })?;
    Ok(Desk {
        now,
        forgotten: world.forgotten_upto(),
        policies: mesh::read(conn)?.policies,
        nodes: each(asked.nodes, |name| Ok(node(conn, name)?.map(|facts| (name.clone(), facts))))?,
        by_name: each(
            asked.names,
            |name| Ok(member_by_name(conn, name)?.map(|facts| (name.clone(), facts))),
        )?,
        by_key: each(asked.keys, |key| Ok(person_by_key(conn, &key)?.map(|facts| (key, facts))))?,
        logs: each(
            asked.topics,
            |name| Ok(topic(conn, name)?.map(|log| (LogKey::Topic(name.clone()), log))),
        )?,
        by_id,
        known,
    })
}

/// What is there of the things asked for.
fn each<Q, K: Eq + Hash, V>(
    asked: BTreeSet<Q>,
    mut find: impl FnMut(Q) -> Result<Option<(K, V)>, StorageError>,
) -> Result<HashMap<K, V>, StorageError> {
    asked.into_iter().filter_map(|question| find(question).transpose()).collect()
}

/// A log that a message goes to; `created` learns of a new topic.
fn found_or_made(
    conn: &Connection,
    world: &World,
    key: &LogKey,
    created: &mut HashSet<TopicName>,
) -> Result<LogFacts, StorageError> {
    let (lo, hi) = match key {
        LogKey::Topic(name) => {
            created.insert(name.clone());
            return create_topic(conn, world, name);
        }
        LogKey::Dm(lo, hi) => (*lo, *hi),
    };
    if let Some(log) = one(conn, sql!("log_by_pair"), [lo, hi], log_facts)? {
        return Ok(log);
    }
    let now = world.now();
    let id = ConversationId::mint(now, &*world.entropy);
    change(conn, sql!("dm_insert"), params![id.as_bytes(), lo, hi, now.as_micros()])?;
    Ok(empty_log(conn.last_insert_rowid(), id))
}

/// A topic without messages or subscribers.
pub(super) fn create_topic(
    conn: &Connection,
    world: &World,
    name: &TopicName,
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

pub(super) fn topic(conn: &Connection, name: &TopicName) -> Result<Option<LogFacts>, StorageError> {
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

fn node(conn: &Connection, name: &NodeName) -> Result<Option<NodeFacts>, StorageError> {
    Ok(one(conn, sql!("node_link"), [name.as_str()], |row| {
        Ok(NodeFacts { number: row.get(0)?, epoch: count(row, 1)?, removed: at_option(row, 4)?.is_some() })
    })?)
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
        generation: row.get(8)?,
    })
}
