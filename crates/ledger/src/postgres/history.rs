//! Reading a log: rows and head from one read.

use model::{ConversationId, Cursor, Epoch, MemberId, MessageId};
use tokio_postgres::Row;

use super::row::{at, bound, count, epoch, id, id_option, text, text_option};
use super::session::Tx;
use super::{accept, sql};
use crate::rules::{Mark, Marks, MemberFacts, Misplaced, first_available, place};
use crate::types::read::{ConversationName, History, HistoryPage, HistoryRow, Log, Place};
use crate::{HistoryError, StorageError};

/// A log that may be read.
pub(super) struct Opened {
    pub place: Place,
    pub marks: Marks,
    head_seq: i64,
}

pub(super) async fn read(
    tx: &Tx,
    log: &Log,
    reader: MemberId,
    page: HistoryPage,
    limit: usize,
) -> Result<Option<History>, HistoryError> {
    let reader = accept::member_by_id(tx, reader).await?.filter(|reader| !reader.removed);
    let Some(reader) = reader else { return Ok(None) };
    let Some(opened) = open(tx, log, reader).await? else { return Ok(None) };
    let history = match page {
        HistoryPage::Newest => back(tx, &opened, i64::MAX, limit).await?,
        HistoryPage::Before(cursor) => back(tx, &opened, seq_of(tx, &opened, cursor).await?, limit).await?,
        HistoryPage::After(cursor) => forth(tx, &opened, cursor, limit).await?,
    };
    Ok(Some(history))
}

/// The newest rows below `seq`, and the head as the place to follow from.
async fn back(tx: &Tx, opened: &Opened, seq: i64, limit: usize) -> Result<History, HistoryError> {
    let (mut rows, has_more) = rows(tx, opened, sql!("history_before"), seq, limit).await?;
    rows.reverse();
    Ok(History {
        place: opened.place.clone(),
        cursor: head(tx, opened).await?,
        before: rows.first().filter(|_| has_more).map_or(Cursor::Start, |row| row.cursor),
        has_more,
        epoch: opened.marks.epoch,
        rows,
    })
}

/// The oldest rows after a place, and the place after them.
async fn forth(tx: &Tx, opened: &Opened, cursor: Cursor, limit: usize) -> Result<History, HistoryError> {
    let seq = seq_of(tx, opened, cursor).await?;
    let (rows, has_more) = rows(tx, opened, sql!("history_after"), seq, limit).await?;
    Ok(History {
        place: opened.place.clone(),
        cursor: rows.last().map_or(cursor, |row| row.cursor),
        before: Cursor::Start,
        has_more,
        epoch: opened.marks.epoch,
        rows,
    })
}

/// One more than asked is read, to know whether there is one.
pub(super) async fn rows(
    tx: &Tx,
    opened: &Opened,
    sql: &'static str,
    seq: i64,
    limit: usize,
) -> Result<(Vec<HistoryRow>, bool), StorageError> {
    let found = tx.all(sql, &[&opened.marks.conversation, &seq, &bound(limit.saturating_add(1))]).await?;
    let read = |row| history_row(row, opened.marks.epoch);
    let rows = found.iter().take(limit).map(read).collect::<Result<_, _>>()?;
    Ok((rows, found.len() > limit))
}

/// The number of the row a cursor names.
pub(super) async fn seq_of(tx: &Tx, opened: &Opened, cursor: Cursor) -> Result<i64, HistoryError> {
    let named = match cursor {
        Cursor::Start => None,
        Cursor::After { id, .. } => {
            let row = tx.one(sql!("message_mark"), &[&id.as_uuid()]).await?;
            row.map(|row| mark(&row, id)).transpose()?
        }
    };
    place(cursor, &opened.marks, named).map_err(|misplaced| match misplaced {
        Misplaced::Invalid => HistoryError::InvalidCursor,
        Misplaced::Expired { first_available } => HistoryError::CursorExpired { first_available },
    })
}

async fn head(tx: &Tx, opened: &Opened) -> Result<Cursor, StorageError> {
    let row = tx.one(sql!("message_at"), &[&opened.marks.conversation, &opened.head_seq]).await?;
    match row {
        Some(row) => Ok(Cursor::After { id: id(&row, 0)?, at: at(&row, 1)?, epoch: opened.marks.epoch }),
        None => Ok(first_available(&opened.marks)),
    }
}

/// The log, whoever asks; what it is called has no meaning then.
pub(super) async fn open_any(tx: &Tx, id: ConversationId) -> Result<Option<Opened>, StorageError> {
    tx.one(sql!("log_open_any"), &[&id.as_uuid()]).await?.as_ref().map(opened).transpose()
}

/// The log, if `reader` may read it.
pub(super) async fn open(tx: &Tx, log: &Log, reader: MemberFacts) -> Result<Option<Opened>, StorageError> {
    let row = match log {
        Log::Conversation(id) => tx.one(sql!("log_open_by_id"), &[&id.as_uuid(), &reader.number]).await?,
        Log::Topic(name) => tx.one(sql!("log_open_by_topic"), &[&name.as_str()]).await?,
    };
    row.as_ref().map(opened).transpose()
}

fn opened(row: &Row) -> Result<Opened, StorageError> {
    let conversation = row.try_get(3)?;
    let floor = match id_option::<MessageId>(row, 8)? {
        Some(id) => Some(Mark { conversation, seq: row.try_get(6)?, at: at(row, 7)?, id }),
        None => None,
    };
    let marks = Marks { conversation, epoch: epoch(row, 5)?, floor };
    Ok(Opened { place: place_of(row, 0)?, marks, head_seq: row.try_get(4)? })
}

/// id, topic, name of the other (NULL for topics)
pub(super) fn place_of(row: &Row, first: usize) -> Result<Place, StorageError> {
    let name = match text_option(row, first + 1)? {
        Some(topic) => ConversationName::Topic(topic),
        None => ConversationName::Dm(text(row, first + 2)?),
    };
    Ok(Place { conversation: id(row, first)?, name })
}

fn mark(row: &Row, id: MessageId) -> Result<Mark, StorageError> {
    Ok(Mark { conversation: row.try_get(0)?, seq: row.try_get(1)?, at: at(row, 2)?, id })
}

pub(super) fn history_row(row: &Row, epoch: Epoch) -> Result<HistoryRow, StorageError> {
    let (message, created_at) = (id(row, 0)?, at(row, 2)?);
    Ok(HistoryRow {
        id: message,
        history_id: count(row, 1)?,
        cursor: Cursor::After { at: created_at, id: message, epoch },
        sender: id(row, 3)?,
        sender_name: text(row, 4)?,
        client_message_id: text(row, 5)?,
        created_at,
        envelope: row.try_get(6)?,
    })
}
