//! Older files put back: an inbox that holds less than it told is sent what it lacks, and books that lack what a node
//! knows name the time they lost.

use ::sqlite::rusqlite::{Connection, params};
use model::{DeliveryRung, MemberId, MessageId, Timestamp};

use super::link::LinkNode;
use super::row::{all, at, change, code, count, id, one};
use super::store::World;
use super::{link, sql};
use crate::StorageError;
use crate::rules::{InboxFile, InboxMark, Testimony, inbox_mark, place_number, work_kept_since};
use crate::types::wayin::{InboxWentBack, LedgerWentBack};

/// A delivery that is sent again.
pub(super) struct Again {
    pub message: i64,
    pub recipient: i64,
    pub key: (MessageId, MemberId),
    pub rung: DeliveryRung,
}

/// Notes how much the inbox holds; when that is less than before, everything it may lack is marked.
pub(super) fn note_inbox(
    conn: &Connection,
    now: Timestamp,
    node: &LinkNode,
    file: InboxFile,
    told: Option<u64>,
) -> Result<Option<InboxWentBack>, StorageError> {
    let mut went_back = node.went_back;
    match inbox_mark(node.received_upto, told, file) {
        InboxMark::Kept { upto } if upto == node.received_upto => {}
        InboxMark::Kept { upto } => {
            change(conn, sql!("inbox_received"), params![node.number, place_number(upto)])?;
        }
        InboxMark::WentBack { from, to } => {
            let last = one(conn, sql!("message_last_number"), [], |row| row.get(0))?.unwrap_or(0_i64);
            let (first, behind) = (place_number(from), place_number(to));
            change(conn, sql!("inbox_went_back"), params![node.number, first, behind, now.as_micros()])?;
            change(conn, sql!("node_redelivered"), [node.number, last])?;
            change(conn, sql!("again_mark"), params![node.number, behind, work_kept_since(now)])?;
            went_back = Some(InboxWentBack { noticed_at: now, from, to, left: 0 });
        }
    }
    let Some(went_back) = went_back else { return Ok(None) };
    let left = one(conn, sql!("again_count"), [node.number], |row| count(row, 0))?.unwrap_or(0);
    Ok(Some(InboxWentBack { left, ..went_back }))
}

/// What is to be sent again to members at home at a node, oldest first.
pub(super) fn again(
    conn: &Connection,
    node: &LinkNode,
    unacked: impl Fn(&(MessageId, MemberId)) -> bool,
    look: i64,
) -> Result<Vec<Again>, StorageError> {
    let mut again = Vec::new();
    if node.went_back.is_none() {
        return Ok(again);
    }
    for (recipient, recipient_id) in link::at_home(conn, node.number)? {
        let rows = all(conn, sql!("again_numbers"), params![recipient, look], |row| {
            let key = (id(row, 1, MessageId::from_bytes)?, recipient_id);
            Ok(Again { message: row.get(0)?, recipient, key, rung: code(row, 2, DeliveryRung::from_code)? })
        })?;
        again.extend(rows.into_iter().filter(|row| !unacked(&row.key)));
    }
    again.sort_unstable_by_key(|row| (row.message, row.recipient));
    Ok(again)
}

/// The newest instant the books hold.
pub(super) fn books_end(conn: &Connection) -> Result<Timestamp, StorageError> {
    Ok(one(conn, sql!("books_end"), [], |row| at(row, 0))?.unwrap_or(Timestamp::from_micros(0)))
}

/// Notes what a node's witnesses say of the books; answers with the last loss there was.
pub(super) fn note_books(
    conn: &Connection,
    world: &World,
    testimony: &Testimony,
    noticed_by: &str,
) -> Result<Option<LedgerWentBack>, StorageError> {
    let last = last_loss(conn)?;
    if !testimony.is_news(last.as_ref().map(|last| last.upto)) {
        return Ok(last);
    }
    note_loss(conn, world, noticed_by).map(Some)
}

/// The books end before this process opened them, and something is missing behind their end.
pub(super) fn note_loss(
    conn: &Connection,
    world: &World,
    noticed_by: &str,
) -> Result<LedgerWentBack, StorageError> {
    let opened = world.opened;
    let loss = LedgerWentBack {
        noticed_at: world.now(),
        ends_at: opened.books_end,
        upto: opened.at.max(opened.books_end),
        noticed_by: noticed_by.to_owned(),
    };
    let row = params![
        loss.noticed_at.as_micros(),
        loss.ends_at.as_micros(),
        loss.upto.as_micros(),
        loss.noticed_by
    ];
    change(conn, sql!("went_back_insert"), row)?;
    Ok(loss)
}

/// The last time the books were found older than they had been.
pub(super) fn last_loss(conn: &Connection) -> Result<Option<LedgerWentBack>, StorageError> {
    Ok(one(conn, sql!("went_back"), [], |row| {
        Ok(LedgerWentBack {
            noticed_at: at(row, 0)?,
            ends_at: at(row, 1)?,
            upto: at(row, 2)?,
            noticed_by: row.get(3)?,
        })
    })?)
}
