//! Following logs, emptying them, what was read, and what waits for an answer.

use ::sqlite::rusqlite::{Connection, Row, params};
use model::limits::{SWEEP_ROWS_MAX, UNREAD_MAX};
use model::{ConversationId, Cursor, Epoch, MemberId, MessageId, Timestamp};

use super::history::{self, Opened};
use super::row::{all, at, change, count, id, one, text, text_option};
use super::window::bound;
use super::{accept, janitor, sql};
use crate::types::chat::{
    AskedQuestion, Audience, Emptying, Escalation, Followed, Follower, LogHead, NodeFacts, ReadState,
};
use crate::types::read::Log;
use crate::{HistoryError, StorageError};

pub(super) fn follow(
    conn: &Connection,
    conversation: ConversationId,
    follower: Follower,
    after: Cursor,
    limit: usize,
) -> Result<Option<Followed>, HistoryError> {
    let Some((opened, name)) = open(conn, conversation, follower)? else { return Ok(None) };
    let from = history::seq_of(conn, &opened, after)?;
    let (rows, has_more) = history::rows_after(conn, &opened, after, from, limit)?;
    let epoch = opened.marks.epoch;
    Ok(Some(Followed { name, from: from.unsigned_abs(), rows, has_more, epoch }))
}

fn open(
    conn: &Connection,
    conversation: ConversationId,
    follower: Follower,
) -> Result<Option<(Opened, Option<crate::ConversationName>)>, StorageError> {
    match follower {
        Follower::Member(reader) => {
            let reader = accept::member_by_id(conn, reader)?.filter(|reader| !reader.removed);
            let Some(reader) = reader else { return Ok(None) };
            let opened = history::open(conn, &Log::Conversation(conversation), reader)?;
            Ok(opened.map(|opened| {
                let name = opened.place.name.clone();
                (opened, Some(name))
            }))
        }
        Follower::Broker => Ok(history::open_any(conn, conversation)?.map(|opened| (opened, None))),
    }
}

pub(super) fn heads(conn: &Connection, logs: &[ConversationId]) -> Result<Vec<LogHead>, StorageError> {
    let mut heads = Vec::with_capacity(logs.len());
    for log in logs {
        heads.extend(one(conn, sql!("log_head"), [log.as_bytes()], |row| {
            let conversation = id(row, 0, ConversationId::from_bytes)?;
            Ok(LogHead { conversation, epoch: row.get(1)?, head: count(row, 2)? })
        })?);
    }
    Ok(heads)
}

pub(super) fn mark_read(
    conn: &Connection,
    now: Timestamp,
    reader: MemberId,
    conversation: ConversationId,
    upto: Cursor,
) -> Result<Option<ReadState>, HistoryError> {
    let reader = accept::member_by_id(conn, reader)?.filter(|reader| !reader.removed);
    let Some(reader) = reader else { return Ok(None) };
    let Some(opened) = history::open(conn, &Log::Conversation(conversation), reader)? else {
        return Ok(None);
    };
    let (log, upto) = (opened.marks.conversation, history::seq_of(conn, &opened, upto)?);
    let was = one(conn, sql!("read_mark"), params![reader.number, log], |row| row.get::<_, i64>(0))?;
    let was = was.unwrap_or(0);
    if upto > was {
        change(conn, sql!("read_mark_put"), params![reader.number, log, upto])?;
        change(conn, sql!("deliveries_read"), params![reader.number, log, was, upto, now.as_micros()])?;
    }
    let read = upto.max(was);
    let unread =
        one(conn, sql!("unread"), params![reader.number, log, read, bound(UNREAD_MAX)], |row| count(row, 0))?;
    Ok(Some(ReadState { read: read.unsigned_abs(), unread: unread.unwrap_or(0) }))
}

/// One bounded round: the log from its floor up, and once nothing is left a new epoch.
pub(super) fn empty(
    conn: &Connection,
    conversation: ConversationId,
) -> Result<Option<Emptying>, StorageError> {
    let log = one(conn, sql!("log_number"), [conversation.as_bytes()], |row| row.get::<_, i64>(0))?;
    let Some(log) = log else { return Ok(None) };
    let ever = Timestamp::from_micros(i64::MAX);
    let removed = janitor::prune_log(conn, log, ever, SWEEP_ROWS_MAX)? as u64;
    let raised = one(conn, sql!("conversation_raise_generation"), [log], |row| row.get::<_, Epoch>(0))?;
    Ok(Some(match raised {
        Some(epoch) => Emptying::Done { removed, epoch },
        None => Emptying::More { removed },
    }))
}

pub(super) fn escalations(
    conn: &Connection,
    reader: MemberId,
    limit: usize,
) -> Result<Vec<Escalation>, StorageError> {
    Ok(all(conn, sql!("escalations"), params![reader.as_bytes(), bound(limit)], escalation)?)
}

pub(super) fn edges(
    conn: &Connection,
    since: Timestamp,
    limit: usize,
) -> Result<Vec<Escalation>, StorageError> {
    Ok(all(conn, sql!("escalation_edges"), params![since.as_micros(), bound(limit)], escalation)?)
}

pub(super) fn nodes(conn: &Connection, limit: usize) -> Result<Vec<NodeFacts>, StorageError> {
    Ok(all(conn, sql!("nodes"), [bound(limit)], |row| {
        Ok(NodeFacts { name: text(row, 0)?, last_seen_at: at(row, 1)?, held: count(row, 2)? })
    })?)
}

/// conversation, topic, lo's id and name, hi's id and name, rev, at, seq, asker, the question's id and envelope
fn escalation(row: &Row<'_>) -> ::sqlite::rusqlite::Result<Escalation> {
    let audience = match text_option(row, 1)? {
        Some(topic) => Audience::Everyone(topic),
        None => Audience::Two([
            (id(row, 2, MemberId::from_bytes)?, text(row, 3)?),
            (id(row, 4, MemberId::from_bytes)?, text(row, 5)?),
        ]),
    };
    let question = match row.get::<_, Option<i64>>(8)? {
        Some(_) => {
            let message = match row.get::<_, Option<[u8; 16]>>(10)? {
                Some(id) => Some((MessageId::from_bytes(id), row.get(11)?)),
                None => None,
            };
            Some(AskedQuestion { history_id: count(row, 8)?, by: text(row, 9)?, message })
        }
        None => None,
    };
    Ok(Escalation {
        conversation: id(row, 0, ConversationId::from_bytes)?,
        audience,
        rev: count(row, 6)?,
        at: at(row, 7)?,
        question,
    })
}
