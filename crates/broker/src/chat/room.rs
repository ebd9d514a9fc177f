//! The end of a followed log, shared by everyone in this process who follows it.
//!
//! - One task reads the log for all, and each row is written as text once.
//! - Rows of a log are numbered without gaps, so that a follower's number says which rows it has not had: they are
//!   here, or the follower is further back than the room reaches and reads the ledger.
//! - A room holds what was committed and nothing else; it may be dropped at any instant.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use ledger::{Follower, HistoryError, HistoryRow};
use model::{ConversationId, Cursor, Epoch, MemberId, limits};
use net::socket::Text;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use wire::message::{Message, MessageFields};

use super::notice::Runs;
use crate::broker::Shared;

/// Rows handed to a follower at once: more would wait for its socket in memory.
const HANDED_ROWS_MAX: usize = limits::SUBSCRIBER_FRAMES_MAX;

/// The rooms of one broker.
#[derive(Clone, Default)]
pub(crate) struct Rooms(Arc<Mutex<HashMap<ConversationId, Weak<Room>>>>);

/// See the module.
pub(crate) struct Room {
    conversation: ConversationId,
    tail: Mutex<Tail>,
    changed: watch::Sender<()>,
    bell: Arc<Notify>,
    rooms: Rooms,
    reading: Mutex<Option<AbortHandle>>,
    /// What the members the broker hosts were handed live.
    handed: Mutex<Runs>,
}

/// A place in a log by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) epoch: Epoch,
    pub(crate) seq: u64,
    pub(crate) cursor: Cursor,
}

/// What follows a place.
pub(crate) enum Next {
    /// These, in order.
    Rows(Vec<Arc<Row>>),
    /// Nothing yet.
    Nothing,
    /// Something the room does not have; the ledger does, or knows why not.
    Elsewhere,
}

/// A row as text, but for what differs between its readers.
pub(crate) struct Row {
    pub(crate) place: Place,
    head: String,
    /// The whole for the readers who call it alike; the first kind of reader is the usual one.
    whole: OnceLock<(Arc<str>, Text)>,
}

struct Tail {
    /// After the last row, or where the room began.
    end: Place,
    rows: VecDeque<Arc<Row>>,
    bytes: usize,
    over: bool,
}

impl Rooms {
    /// The room of a log, opened at `place` when there is none.
    pub(super) fn join(&self, shared: &Arc<Shared>, conversation: ConversationId, place: Place) -> Arc<Room> {
        let mut open = lock(&self.0);
        if let Some(room) = open.get(&conversation).and_then(Weak::upgrade) {
            return room;
        }
        let room = Arc::new(Room {
            conversation,
            tail: Mutex::new(Tail { end: place, rows: VecDeque::new(), bytes: 0, over: false }),
            changed: watch::Sender::new(()),
            bell: Arc::new(Notify::new()),
            rooms: self.clone(),
            reading: Mutex::new(None),
            handed: Mutex::default(),
        });
        open.insert(conversation, Arc::downgrade(&room));
        drop(open);
        let task = shared.tasks.spawn(keep(shared.clone(), Arc::downgrade(&room), room.bell.clone()));
        *lock(&room.reading) = Some(task.abort_handle());
        room
    }

    /// Something was committed to the log.
    pub(crate) fn ring(&self, conversation: ConversationId) {
        if let Some(room) = self.get(conversation) {
            room.bell.notify_one();
        }
    }

    pub(super) fn get(&self, conversation: ConversationId) -> Option<Arc<Room>> {
        lock(&self.0).get(&conversation).and_then(Weak::upgrade)
    }

    /// The logs that are followed.
    pub(super) fn followed(&self) -> Vec<ConversationId> {
        lock(&self.0).keys().copied().collect()
    }

    /// Forgets a room that nobody may join any more.
    fn forget(&self, room: &Room) {
        let mut open = lock(&self.0);
        let is_it = |held: &Weak<Room>| std::ptr::eq(held.as_ptr(), room);
        if open.get(&room.conversation).is_some_and(is_it) {
            open.remove(&room.conversation);
        }
    }
}

impl Room {
    /// What follows `place`.
    pub(super) fn after(&self, place: &Place) -> Next {
        let tail = lock(&self.tail);
        let begin = tail.end.seq - tail.rows.len() as u64;
        if tail.over || place.epoch != tail.end.epoch || place.seq < begin {
            return Next::Elsewhere;
        }
        if place.seq >= tail.end.seq {
            // The follower may have read further than the room: the room will come by.
            return Next::Nothing;
        }
        let had = usize::try_from(place.seq - begin).unwrap_or(usize::MAX);
        Next::Rows(tail.rows.iter().skip(had).take(HANDED_ROWS_MAX).cloned().collect())
    }

    /// Whether the room has all of the log.
    pub(super) fn has(&self, epoch: Epoch, head: u64) -> bool {
        let tail = lock(&self.tail);
        tail.end.epoch == epoch && tail.end.seq >= head
    }

    /// A live row was handed to a member; whether by the first of its connections.
    pub(super) fn is_first_handed(&self, member: MemberId, seq: u64) -> bool {
        lock(&self.handed).is_new(member, seq)
    }

    /// Wakes when the room changed.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn end(&self) -> Place {
        lock(&self.tail).end
    }

    fn push(&self, epoch: Epoch, rows: &[HistoryRow]) {
        let rows: Vec<Arc<Row>> =
            rows.iter().map(|row| Arc::new(Row::new(self.conversation, epoch, row))).collect();
        let mut tail = lock(&self.tail);
        if rows.first().is_some_and(|first| first.place.seq != tail.end.seq + 1) {
            // Rows were pruned before the room read its first: what it has does not lead up to these.
            tail.rows.clear();
            tail.bytes = 0;
        }
        for row in rows {
            tail.end = row.place;
            tail.bytes += row.head.len();
            tail.rows.push_back(row);
        }
        while tail.rows.len() > limits::TAIL_ROWS_MAX || tail.bytes > limits::TAIL_BYTES_MAX {
            let Some(oldest) = tail.rows.pop_front() else { break };
            tail.bytes -= oldest.head.len();
        }
        drop(tail);
        self.changed.send_replace(());
    }

    /// The log is not what it was: whoever follows it asks the ledger.
    fn close(&self) {
        lock(&self.tail).over = true;
        self.rooms.forget(self);
        self.changed.send_replace(());
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.rooms.forget(self);
        if let Some(reading) = lock(&self.reading).take() {
            reading.abort();
        }
    }
}

impl Row {
    pub(super) fn new(conversation: ConversationId, epoch: Epoch, row: &HistoryRow) -> Self {
        let place = Place { epoch, seq: row.history_id, cursor: row.cursor };
        Self { place, head: head(conversation, row), whole: OnceLock::new() }
    }

    /// The frame for readers whose frames end with `ending`.
    pub(super) fn frame(&self, ending: &Arc<str>) -> Text {
        let written = || Text::from(format!("{}{ending}", self.head));
        let (made_for, text) = self.whole.get_or_init(|| (ending.clone(), written()));
        if made_for == ending { text.clone() } else { written() }
    }
}

/// What every frame of a reader ends with: what that reader calls the log, and its tag.
pub(super) fn ending(name: &str, sub: Option<&str>) -> Arc<str> {
    let text = |value: &str| serde_json::Value::from(value).to_string();
    let sub = sub.map_or_else(String::new, |sub| format!(",\"sub\":{}", text(sub)));
    format!(",\"conversation_name\":{}{sub}}}", text(name)).into()
}

/// The frame without its end.
fn head(conversation: ConversationId, row: &HistoryRow) -> String {
    let fields: MessageFields = match serde_json::from_slice(&row.envelope) {
        Ok(fields) => fields,
        Err(error) => {
            // A place in the log must not vanish: its reader would wait for it for ever.
            tracing::error!(%error, id = %row.id, "a stored envelope cannot be read");
            unreadable(row)
        }
    };
    let message = Message {
        id: row.id,
        conversation,
        conversation_name: None,
        history_id: row.history_id,
        sender: row.sender_name.clone(),
        created_at: row.created_at,
        cursor: row.cursor.to_string(),
        redelivered: false,
        fields,
    };
    let text = serde_json::to_string(&message).expect("messages are made of maps with text keys");
    let fields = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    format!("{{\"type\":\"message\",{}", fields.expect("a message is an object"))
}

fn unreadable(row: &HistoryRow) -> MessageFields {
    let body = "(this message cannot be read)";
    serde_json::from_value(serde_json::json!({
        "client_message_id": row.client_message_id.as_str(), "to": "@me", "body": body
    }))
    .expect("these are the fields a message must have")
}

/// Reads the log for a room as long as anybody is in it.
async fn keep(shared: Arc<Shared>, room: Weak<Room>, bell: Arc<Notify>) {
    while !shared.stop.is_cancelled() {
        let Some(open) = room.upgrade() else { return };
        let (conversation, end) = (open.conversation, open.end());
        drop(open);
        let read = shared.ledger.follow(conversation, Follower::Broker, end.cursor, limits::CATCH_UP_ROWS);
        let read = read.await;
        let Some(open) = room.upgrade() else { return };
        match read {
            Ok(Some(followed)) => {
                if !followed.rows.is_empty() {
                    open.push(followed.epoch, &followed.rows);
                }
                drop(open);
                // Whatever was committed after the read has rung the bell, which keeps it.
                if !followed.has_more {
                    wait(&bell, &shared, limits::SAFETY_POLL_EVERY).await;
                }
            }
            Ok(None) | Err(HistoryError::InvalidCursor | HistoryError::CursorExpired { .. }) => {
                return open.close();
            }
            Err(HistoryError::Storage(error)) => {
                tracing::warn!(%error, "a followed log was not read; it is tried again");
                drop(open);
                wait(&bell, &shared, limits::SAFETY_POLL_EVERY).await;
            }
        }
    }
}

async fn wait(bell: &Notify, shared: &Shared, most: Duration) {
    tokio::select! {
        _ = timeout(most, bell.notified()) => {}
        () = shared.stop.cancelled() => {}
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
