//! Reading a log: rows and head from one read.

use ::sqlite::rusqlite::{Connection, Row, params};
use model::{ConversationId, Cursor, Epoch, MemberId, MessageId};

use super::row::{all, at, count, id, one, text, text_option};
use super::window::bound;
use super::{accept, sql};
use crate::planted::{TIMESTAMP_CURSOR, planted};
use crate::rules::{Mark, Marks, MemberFacts, Misplaced, place};
use crate::types::read::{ConversationName, History, HistoryPage, HistoryRow, Log, Place};
use crate::{HistoryError, StorageError};

/// A log that may be read.
pub(super) struct Opened {
    pub place: Place,
    pub marks: Marks,
    head_seq: i64,
}

pub(super) fn read(
    conn: &Connection,
    log: &Log,
    reader: MemberId,
    page: HistoryPage,
    limit: usize,
) -> Result<Option<History>, HistoryError> {
    let reader = accept::member_by_id(conn, reader)?.filter(|reader| !reader.removed);
    let Some(reader) = reader else { return Ok(None) };
    let Some(opened) = open(conn, log, reader)? else { return Ok(None) };
    let history = match page {
        HistoryPage::Newest => back(conn, &opened, i64::MAX, limit)?,
        HistoryPage::Before(cursor) => back(conn, &opened, seq_of(conn, &opened, cursor)?, limit)?,
        HistoryPage::After(cursor) => forth(conn, &opened, cursor, limit)?,
    };
    Ok(Some(history))
}

/// The newest rows below `seq`, and the head as the place to follow from.
fn back(conn: &Connection, opened: &Opened, seq: i64, limit: usize) -> Result<History, HistoryError> {
    let (mut rows, has_more) = rows(conn, opened, sql!("history_before"), seq, limit)?;
    rows.reverse();
    Ok(History {
        place: opened.place.clone(),
        cursor: head(conn, opened)?,
        before: rows.first().filter(|_| has_more).map_or(Cursor::Start, |row| row.cursor),
        has_more,
        epoch: opened.marks.epoch,
        rows,
    })
}

/// The oldest rows after a place, and the place after them.
fn forth(conn: &Connection, opened: &Opened, cursor: Cursor, limit: usize) -> Result<History, HistoryError> {
    let seq = seq_of(conn, opened, cursor)?;
    let (rows, has_more) = rows_after(conn, opened, cursor, seq, limit)?;
    Ok(History {
        place: opened.place.clone(),
        cursor: rows.last().map_or(cursor, |row| row.cursor),
        before: Cursor::Start,
        has_more,
        epoch: opened.marks.epoch,
        rows,
    })
}

/// The rows behind `cursor`, which is the row numbered `seq`.
pub(super) fn rows_after(
    conn: &Connection,
    opened: &Opened,
    cursor: Cursor,
    seq: i64,
    limit: usize,
) -> Result<(Vec<HistoryRow>, bool), HistoryError> {
    if planted(TIMESTAMP_CURSOR) {
        let at = match cursor {
            Cursor::Start => 0,
            Cursor::After { at, .. } => at.as_micros(),
        };
        return rows(conn, opened, sql!("history_after_time"), at, limit);
    }
    rows(conn, opened, sql!("history_after"), seq, limit)
}

/// One more than asked is read, to know whether there is one.
fn rows(
    conn: &Connection,
    opened: &Opened,
    sql: &str,
    seq: i64,
    limit: usize,
) -> Result<(Vec<HistoryRow>, bool), HistoryError> {
    let params = params![opened.marks.conversation, seq, bound(limit.saturating_add(1))];
    let mut rows = all(conn, sql, params, |row| history_row(row, opened.marks.epoch))?;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    Ok((rows, has_more))
}

/// The number of the row a cursor names.
pub(super) fn seq_of(conn: &Connection, opened: &Opened, cursor: Cursor) -> Result<i64, HistoryError> {
    let named = match cursor {
        Cursor::Start => None,
        Cursor::After { id, .. } => one(conn, sql!("message_mark"), [id.as_bytes()], |row| mark(row, id))?,
    };
    place(cursor, &opened.marks, named).map_err(|misplaced| match misplaced {
        Misplaced::Invalid => HistoryError::InvalidCursor,
        Misplaced::Expired { first_available } => HistoryError::CursorExpired { first_available },
    })
}

fn head(conn: &Connection, opened: &Opened) -> Result<Cursor, HistoryError> {
    let epoch = opened.marks.epoch;
    let params = params![opened.marks.conversation, opened.head_seq];
    let row = one(conn, sql!("message_at"), params, |row| {
        Ok(Cursor::After { id: id(row, 0, MessageId::from_bytes)?, at: at(row, 1)?, epoch })
    })?;
    Ok(row.unwrap_or_else(|| crate::rules::first_available(&opened.marks)))
}

/// The log, whoever asks; what it is called has no meaning then.
pub(super) fn open_any(conn: &Connection, id: ConversationId) -> Result<Option<Opened>, StorageError> {
    Ok(one(conn, sql!("log_open_any"), [id.as_bytes()], opened)?)
}

/// The log, if `reader` may read it.
pub(super) fn open(
    conn: &Connection,
    log: &Log,
    reader: MemberFacts,
) -> Result<Option<Opened>, StorageError> {
    Ok(match log {
        Log::Conversation(id) => {
            one(conn, sql!("log_open_by_id"), params![id.as_bytes(), reader.number], opened)?
        }
        Log::Topic(name) => one(conn, sql!("log_open_by_topic"), [name.as_str()], opened)?,
    })
}

fn opened(row: &Row<'_>) -> ::sqlite::rusqlite::Result<Opened> {
    let conversation = row.get(3)?;
    let floor = match row.get::<_, Option<[u8; 16]>>(8)? {
        Some(id) => {
            Some(Mark { conversation, seq: row.get(6)?, at: at(row, 7)?, id: MessageId::from_bytes(id) })
        }
        None => None,
    };
    let marks = Marks { conversation, epoch: row.get(5)?, floor };
    Ok(Opened { place: place_of(row, 0)?, marks, head_seq: row.get(4)? })
}

/// id, topic, name of the other (NULL for topics)
pub(super) fn place_of(row: &Row<'_>, first: usize) -> ::sqlite::rusqlite::Result<Place> {
    let name = match text_option(row, first + 1)? {
        Some(topic) => ConversationName::Topic(topic),
        None => ConversationName::Dm(text(row, first + 2)?),
    };
    Ok(Place { conversation: id(row, first, ConversationId::from_bytes)?, name })
}

fn mark(row: &Row<'_>, id: MessageId) -> ::sqlite::rusqlite::Result<Mark> {
    Ok(Mark { conversation: row.get(0)?, seq: row.get(1)?, at: at(row, 2)?, id })
}

pub(super) fn history_row(row: &Row<'_>, epoch: Epoch) -> ::sqlite::rusqlite::Result<HistoryRow> {
    let (message, created_at) = (id(row, 0, MessageId::from_bytes)?, at(row, 2)?);
    Ok(HistoryRow {
        id: message,
        history_id: count(row, 1)?,
        cursor: Cursor::After { at: created_at, id: message, epoch },
        sender: id(row, 3, MemberId::from_bytes)?,
        sender_name: text(row, 4)?,
        client_message_id: text(row, 5)?,
        created_at,
        envelope: row.get(6)?,
    })
}
