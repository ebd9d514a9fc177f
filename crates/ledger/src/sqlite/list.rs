//! Lists: members, topics, conversations.

use ::sqlite::rusqlite::{Connection, Row, params};
use model::limits::{MESSAGES_SCANNED_MAX, UNREAD_MAX};
use model::{ConversationId, MemberId, MemberName, Timestamp, TopicName};

use super::row::{all, at, code, count, id, member as read_member, one, text};
use super::window::bound;
use super::{accept, history, sql};
use crate::StorageError;
use crate::types::mesh::Member;
use crate::types::read::{
    Awaiting, ConversationKind, ConversationRow, ConversationState, MessagePage, MessageRow, TopicRow,
};

pub(super) fn members(
    conn: &Connection,
    after: Option<&MemberName>,
    limit: usize,
) -> Result<Vec<Member>, StorageError> {
    // Every name sorts after the empty text.
    let after = after.map_or("", MemberName::as_str);
    Ok(all(conn, sql!("members"), params![after, bound(limit)], |row| read_member(row, 0))?)
}

pub(super) fn member(conn: &Connection, id: MemberId) -> Result<Option<Member>, StorageError> {
    Ok(one(conn, sql!("member_by_id"), [id.as_bytes()], |row| read_member(row, 0))?)
}

pub(super) fn member_named(conn: &Connection, name: &MemberName) -> Result<Option<Member>, StorageError> {
    Ok(one(conn, sql!("member_by_name"), [name.as_str()], |row| read_member(row, 0))?)
}

pub(super) fn topics(
    conn: &Connection,
    reader: MemberId,
    after: Option<&TopicName>,
    limit: usize,
) -> Result<Vec<TopicRow>, StorageError> {
    let after = after.map_or("", TopicName::as_str);
    Ok(all(conn, sql!("topics"), params![reader.as_bytes(), after, bound(limit)], topic_row)?)
}

pub(super) fn topic(
    conn: &Connection,
    reader: MemberId,
    name: &TopicName,
) -> Result<Option<TopicRow>, StorageError> {
    Ok(one(conn, sql!("topic"), params![reader.as_bytes(), name.as_str()], topic_row)?)
}

pub(super) fn messages(
    conn: &Connection,
    reader: MemberId,
    before: Option<u64>,
    limit: usize,
) -> Result<MessagePage, StorageError> {
    let reader = accept::member_by_id(conn, reader)?.filter(|reader| !reader.removed);
    let span =
        one(conn, sql!("messages_span"), [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    let (Some(reader), Some((first, last))) = (reader, span) else {
        return Ok(MessagePage { rows: Vec::new(), before: None });
    };
    let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX)).min(last + 1);
    let floor = before.saturating_sub(MESSAGES_SCANNED_MAX);
    let params = params![reader.number, before, floor, bound(limit)];
    let rows = all(conn, sql!("messages_before"), params, message_row)?;
    Ok(MessagePage::of(rows, limit, floor, first))
}

pub(super) fn conversations(
    conn: &Connection,
    reader: MemberId,
    limit: usize,
) -> Result<Vec<ConversationRow>, StorageError> {
    Ok(all(
        conn,
        sql!("conversations"),
        params![reader.as_bytes(), bound(limit), bound(UNREAD_MAX)],
        conversation_row,
    )?)
}

pub(super) fn conversation(
    conn: &Connection,
    id: ConversationId,
    reader: MemberId,
) -> Result<Option<ConversationRow>, StorageError> {
    Ok(one(
        conn,
        sql!("conversation"),
        params![reader.as_bytes(), id.as_bytes(), bound(UNREAD_MAX)],
        conversation_row,
    )?)
}

fn message_row(row: &Row<'_>) -> ::sqlite::rusqlite::Result<MessageRow> {
    Ok(MessageRow {
        number: count(row, 8)?,
        place: history::place_of(row, 9)?,
        row: history::history_row(row, row.get(7)?)?,
        read_at: row.get::<_, Option<i64>>(12)?.map(Timestamp::from_micros),
    })
}

fn topic_row(row: &Row<'_>) -> ::sqlite::rusqlite::Result<TopicRow> {
    Ok(TopicRow {
        topic: text(row, 0)?,
        conversation: id(row, 1, ConversationId::from_bytes)?,
        head: count(row, 2)?,
        subscribers: count(row, 3)?,
        subscribed: row.get(4)?,
    })
}

fn conversation_row(row: &Row<'_>) -> ::sqlite::rusqlite::Result<ConversationRow> {
    let awaiting = match row.get::<_, Option<[u8; 16]>>(8)? {
        Some(by) => Some(Awaiting { history_id: count(row, 7)?, by: MemberId::from_bytes(by) }),
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
