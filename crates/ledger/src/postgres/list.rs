//! Lists: members, topics, conversations.

use model::limits::{MESSAGES_SCANNED_MAX, UNREAD_MAX};
use model::{ConversationId, MemberId, MemberName, TopicName};
use tokio_postgres::Row;

use super::row::{at, at_option, bound, code, count, epoch, id, id_option, member as read_member, text};
use super::session::Tx;
use super::{accept, history, sql};
use crate::StorageError;
use crate::types::mesh::Member;
use crate::types::read::{
    Awaiting, ConversationKind, ConversationRow, ConversationState, MessagePage, MessageRow, TopicRow,
};

pub(super) async fn members(
    tx: &Tx,
    after: Option<&MemberName>,
    limit: usize,
) -> Result<Vec<Member>, StorageError> {
    // Every name sorts after the empty text.
    let after = after.map_or("", MemberName::as_str);
    let rows = tx.all(sql!("members"), &[&after, &bound(limit)]).await?;
    rows.iter().map(|row| read_member(row, 0)).collect()
}

pub(super) async fn member(tx: &Tx, id: MemberId) -> Result<Option<Member>, StorageError> {
    tx.one(sql!("member_by_id"), &[&id.as_uuid()]).await?.map(|row| read_member(&row, 0)).transpose()
}

pub(super) async fn member_named(tx: &Tx, name: &MemberName) -> Result<Option<Member>, StorageError> {
    tx.one(sql!("member_by_name"), &[&name.as_str()]).await?.map(|row| read_member(&row, 0)).transpose()
}

pub(super) async fn topics(
    tx: &Tx,
    reader: MemberId,
    after: Option<&TopicName>,
    limit: usize,
) -> Result<Vec<TopicRow>, StorageError> {
    let after = after.map_or("", TopicName::as_str);
    let rows = tx.all(sql!("topics"), &[&reader.as_uuid(), &after, &bound(limit)]).await?;
    rows.iter().map(topic_row).collect()
}

pub(super) async fn topic(
    tx: &Tx,
    reader: MemberId,
    name: &TopicName,
) -> Result<Option<TopicRow>, StorageError> {
    tx.one(sql!("topic"), &[&reader.as_uuid(), &name.as_str()]).await?.as_ref().map(topic_row).transpose()
}

pub(super) async fn messages(
    tx: &Tx,
    reader: MemberId,
    before: Option<u64>,
    limit: usize,
) -> Result<MessagePage, StorageError> {
    let reader = accept::member_by_id(tx, reader).await?.filter(|reader| !reader.removed);
    let (Some(reader), Some(span)) = (reader, tx.one(sql!("messages_span"), &[]).await?) else {
        return Ok(MessagePage { rows: Vec::new(), before: None });
    };
    let (first, last): (i64, i64) = (span.try_get(0)?, span.try_get(1)?);
    let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX)).min(last + 1);
    let floor = before.saturating_sub(MESSAGES_SCANNED_MAX);
    let rows = tx.all(sql!("messages_before"), &[&reader.number, &before, &floor, &bound(limit)]).await?;
    let rows = rows.iter().map(message_row).collect::<Result<_, _>>()?;
    Ok(MessagePage::of(rows, limit, floor, first))
}

pub(super) async fn conversations(
    tx: &Tx,
    reader: MemberId,
    limit: usize,
) -> Result<Vec<ConversationRow>, StorageError> {
    let rows = tx.all(sql!("conversations"), &[&reader.as_uuid(), &bound(limit), &bound(UNREAD_MAX)]).await?;
    rows.iter().map(conversation_row).collect()
}

pub(super) async fn conversation(
    tx: &Tx,
    id: ConversationId,
    reader: MemberId,
) -> Result<Option<ConversationRow>, StorageError> {
    let row = tx.one(sql!("conversation"), &[&reader.as_uuid(), &id.as_uuid(), &bound(UNREAD_MAX)]).await?;
    row.as_ref().map(conversation_row).transpose()
}

fn message_row(row: &Row) -> Result<MessageRow, StorageError> {
    Ok(MessageRow {
        number: count(row, 8)?,
        place: history::place_of(row, 9)?,
        row: history::history_row(row, epoch(row, 7)?)?,
        read_at: at_option(row, 12)?,
    })
}

fn topic_row(row: &Row) -> Result<TopicRow, StorageError> {
    Ok(TopicRow {
        topic: text(row, 0)?,
        conversation: id(row, 1)?,
        head: count(row, 2)?,
        subscribers: count(row, 3)?,
        subscribed: row.try_get(4)?,
    })
}

fn conversation_row(row: &Row) -> Result<ConversationRow, StorageError> {
    let awaiting = match id_option(row, 8)? {
        Some(by) => Some(Awaiting { history_id: count(row, 7)?, by }),
        None => None,
    };
    let head = count(row, 5)?;
    Ok(ConversationRow {
        place: history::place_of(row, 0)?,
        kind: code(row, 3, ConversationKind::from_code)?,
        state: code(row, 4, ConversationState::from_code)?,
        head,
        last_at: if head > 0 { Some(at(row, 6)?) } else { None },
        awaiting,
        awaiting_rev: count(row, 9)?,
        read: count(row, 10)?,
        unread: count(row, 11)?,
    })
}
