//! Following logs, emptying them, what was read, and what waits for an answer.

use model::limits::{SWEEP_ROWS_MAX, UNREAD_MAX};
use model::{ConversationId, Cursor, MemberId, MessageId, Timestamp};
use tokio_postgres::Row;

use super::history::{self, Opened};
use super::row::{at, bound, count, epoch, id, id_option, text, text_option};
use super::session::Tx;
use super::{accept, janitor, sql};
use crate::types::chat::{
    AskedQuestion, Audience, Emptying, Escalation, Followed, Follower, LogHead, NodeFacts, ReadState,
};
use crate::types::read::Log;
use crate::{HistoryError, StorageError};

pub(super) async fn follow(
    tx: &Tx,
    conversation: ConversationId,
    follower: Follower,
    after: Cursor,
    limit: usize,
) -> Result<Option<Followed>, HistoryError> {
    let Some((opened, name)) = open(tx, conversation, follower).await? else { return Ok(None) };
    let from = history::seq_of(tx, &opened, after).await?;
    let (rows, has_more) = history::rows(tx, &opened, sql!("history_after"), from, limit).await?;
    let epoch = opened.marks.epoch;
    Ok(Some(Followed { name, from: from.unsigned_abs(), rows, has_more, epoch }))
}

async fn open(
    tx: &Tx,
    conversation: ConversationId,
    follower: Follower,
) -> Result<Option<(Opened, Option<crate::ConversationName>)>, StorageError> {
    match follower {
        Follower::Member(reader) => {
            let reader = accept::member_by_id(tx, reader).await?.filter(|reader| !reader.removed);
            let Some(reader) = reader else { return Ok(None) };
            let opened = history::open(tx, &Log::Conversation(conversation), reader).await?;
            Ok(opened.map(|opened| {
                let name = opened.place.name.clone();
                (opened, Some(name))
            }))
        }
        Follower::Broker => Ok(history::open_any(tx, conversation).await?.map(|opened| (opened, None))),
    }
}

pub(super) async fn heads(tx: &Tx, logs: &[ConversationId]) -> Result<Vec<LogHead>, StorageError> {
    let ids: Vec<_> = logs.iter().map(ConversationId::as_uuid).collect();
    let rows = tx.all(sql!("log_heads"), &[&ids]).await?;
    let head =
        |row: &Row| Ok(LogHead { conversation: id(row, 0)?, epoch: epoch(row, 1)?, head: count(row, 2)? });
    rows.iter().map(head).collect()
}

pub(super) async fn mark_read(
    tx: &Tx,
    reader: MemberId,
    conversation: ConversationId,
    upto: Cursor,
) -> Result<Option<ReadState>, HistoryError> {
    let reader = accept::member_by_id(tx, reader).await?.filter(|reader| !reader.removed);
    let Some(reader) = reader else { return Ok(None) };
    let Some(opened) = history::open(tx, &Log::Conversation(conversation), reader).await? else {
        return Ok(None);
    };
    let (log, upto) = (opened.marks.conversation, history::seq_of(tx, &opened, upto).await?);
    let was = tx.one(sql!("read_mark"), &[&reader.number, &log]).await?;
    let was: i64 = was.map_or(Ok(0), |row| row.try_get(0)).map_err(StorageError::from)?;
    if upto > was {
        tx.change(sql!("read_mark_put"), &[&reader.number, &log, &upto]).await?;
        let now = tx.now.as_micros();
        tx.change(sql!("deliveries_read"), &[&reader.number, &log, &was, &upto, &now]).await?;
    }
    let read = upto.max(was);
    let row = tx.one(sql!("unread"), &[&reader.number, &log, &read, &bound(UNREAD_MAX)]).await?;
    let unread = row.map_or(Ok(0), |row| count(&row, 0))?;
    Ok(Some(ReadState { read: read.unsigned_abs(), unread }))
}

/// One bounded round: the log from its floor up, and once nothing is left a new epoch.
pub(super) async fn empty(tx: &Tx, conversation: ConversationId) -> Result<Option<Emptying>, StorageError> {
    let Some(row) = tx.one(sql!("log_number"), &[&conversation.as_uuid()]).await? else { return Ok(None) };
    let log: i64 = row.try_get(0)?;
    let ever = Timestamp::from_micros(i64::MAX);
    let removed = janitor::prune_log(tx, log, ever, SWEEP_ROWS_MAX).await? as u64;
    let raised = tx.one(sql!("conversation_raise_generation"), &[&log]).await?;
    Ok(Some(match raised {
        Some(row) => Emptying::Done { removed, epoch: epoch(&row, 0)? },
        None => Emptying::More { removed },
    }))
}

pub(super) async fn escalations(
    tx: &Tx,
    reader: MemberId,
    limit: usize,
) -> Result<Vec<Escalation>, StorageError> {
    let rows = tx.all(sql!("escalations"), &[&reader.as_uuid(), &bound(limit)]).await?;
    rows.iter().map(escalation).collect()
}

pub(super) async fn edges(tx: &Tx, since: Timestamp, limit: usize) -> Result<Vec<Escalation>, StorageError> {
    let rows = tx.all(sql!("escalation_edges"), &[&since.as_micros(), &bound(limit)]).await?;
    rows.iter().map(escalation).collect()
}

pub(super) async fn nodes(tx: &Tx, limit: usize) -> Result<Vec<NodeFacts>, StorageError> {
    let rows = tx.all(sql!("nodes"), &[&bound(limit)]).await?;
    let facts =
        |row: &Row| Ok(NodeFacts { name: text(row, 0)?, last_seen_at: at(row, 1)?, held: count(row, 2)? });
    rows.iter().map(facts).collect()
}

/// conversation, topic, lo's id and name, hi's id and name, rev, at, seq, asker, the question's id and envelope
fn escalation(row: &Row) -> Result<Escalation, StorageError> {
    let audience = match text_option(row, 1)? {
        Some(topic) => Audience::Everyone(topic),
        None => Audience::Two([(id(row, 2)?, text(row, 3)?), (id(row, 4)?, text(row, 5)?)]),
    };
    let question = match row.try_get::<_, Option<i64>>(8)? {
        Some(_) => {
            let message = match id_option::<MessageId>(row, 10)? {
                Some(id) => Some((id, row.try_get(11)?)),
                None => None,
            };
            Some(AskedQuestion { history_id: count(row, 8)?, by: text(row, 9)?, message })
        }
        None => None,
    };
    Ok(Escalation { conversation: id(row, 0)?, audience, rev: count(row, 6)?, at: at(row, 7)?, question })
}
