//! The long poll: the rows after a place, or none when the time is over.

use std::sync::Arc;
use std::time::Duration;

use ledger::{Followed, Follower, HistoryError};
use model::{ConversationId, Cursor, ErrorCode, MemberId, limits};
use net::respond::Refusal;
use tokio::time::{Instant, timeout_at};
use wire::log::Page;

use super::bounded;
use super::room::Place;
use crate::broker::{Shared, storage_refused};
use crate::message;

/// A page of what follows a place; waits for a row when there is none.
pub(crate) async fn page_after(
    shared: &Arc<Shared>,
    reader: MemberId,
    conversation: ConversationId,
    after: &str,
    limit: usize,
    wait: Duration,
) -> Result<Page, Refusal> {
    let after: Cursor = after.parse().map_err(|_| Refusal::plain(ErrorCode::InvalidCursor))?;
    let until = Instant::now() + wait.min(limits::LONG_POLL_MAX);
    loop {
        let mut committed = shared.ledger.committed();
        let read = shared.ledger.follow(conversation, Follower::Member(reader), after, limit).await;
        let followed = read.map_err(|error| refused(&error))?.map(bounded);
        match &followed {
            Some(followed) if !followed.rows.is_empty() => return page(conversation, followed),
            Some(_) | None if Instant::now() >= until || shared.stop.is_cancelled() => {
                return Ok(empty(after));
            }
            // A log that is followed tells its readers; else every commit may have been to it.
            Some(followed) => {
                let place = Place { epoch: followed.epoch, seq: followed.from, cursor: after };
                let room = shared.rooms.join(shared, conversation, place);
                let mut changes = room.changes();
                if room.is_at_end(&place) {
                    let _ = timeout_at(until, changes.changed()).await;
                }
            }
            None if after != Cursor::Start => return Err(gone(Cursor::Start)),
            None => {
                let soon = Instant::now() + limits::SAFETY_POLL_EVERY;
                let _ = timeout_at(until.min(soon), committed.changed()).await;
            }
        }
    }
}

fn page(conversation: ConversationId, followed: &Followed) -> Result<Page, Refusal> {
    let name = followed.name.clone();
    let name = name.expect("a member's read says what the member calls the log");
    let place = ledger::Place { conversation, name };
    let messages: Result<Vec<_>, _> =
        followed.rows.iter().map(|row| message::of_history(row, &place)).collect();
    let messages = messages.map_err(|error| {
        tracing::error!(%error, "a stored envelope cannot be read");
        Refusal::plain(ErrorCode::Internal)
    })?;
    let cursor = messages.last().map_or_else(String::new, |message| message.cursor.clone());
    Ok(Page { messages, cursor, before: String::new(), has_more: followed.has_more })
}

fn empty(after: Cursor) -> Page {
    Page { messages: Vec::new(), cursor: after.to_string(), before: String::new(), has_more: false }
}

pub(super) fn refused(error: &HistoryError) -> Refusal {
    match error {
        HistoryError::InvalidCursor => Refusal::plain(ErrorCode::InvalidCursor),
        HistoryError::CursorExpired { first_available } => gone(*first_available),
        HistoryError::Storage(error) => storage_refused(error),
    }
}

fn gone(first_available: Cursor) -> Refusal {
    let refused = wire::Refused::plain(ErrorCode::CursorExpired);
    refused.with("first_available", first_available.to_string()).into()
}
