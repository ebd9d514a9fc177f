//! The end of a followed log, shared by everyone in this process who follows it.
//!
//! - One task reads the log for all. Where a few follow, whoever committed a row hands it to the room, which takes it if it
//!   has the one before. A row is written as text once, and rows as frames once for all who are at the same place and call
//!   the log alike.
//! - Rows of a log are numbered without gaps, so that a follower's number says which rows it has not had: they are
//!   here, or the follower is further back than the room reaches and reads the ledger.
//! - A room holds what was committed and nothing else; it may be dropped at any instant.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ledger::{Follower, HistoryError, HistoryRow};
use model::{ConversationId, Cursor, Epoch, MemberId, limits};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::notice::Runs;
use super::row::{Row, Span};
use crate::broker::Shared;

/// Spans kept for the next who is at the same place: most followers of a log are.
const SPANS_MAX: usize = 4;

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
    Rows(Arc<Span>),
    /// Nothing yet.
    Nothing,
    /// Something the room does not have; the ledger does, or knows why not.
    Elsewhere,
}

struct Tail {
    /// After the last row, or where the room began.
    end: Place,
    rows: VecDeque<Arc<Row>>,
    bytes: usize,
    /// Handed out last, with the log's end at that time.
    spans: VecDeque<(u64, Arc<Span>)>,
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
            tail: Mutex::new(Tail::at(place)),
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

    /// Something happened to the log that the room has to read. Answers whether a few follow it.
    pub(crate) fn ring(&self, conversation: ConversationId) -> bool {
        let Some(room) = self.get(conversation) else { return false };
        room.bell.notify_one();
        pause_after(room.followers()).is_zero()
    }

    /// A row was committed to the log, as number `seq` of its generation `epoch`. Answers whether a few follow it, who are
    /// told at once.
    pub(crate) fn committed(
        &self,
        conversation: ConversationId,
        (epoch, seq): (Epoch, u64),
        row: impl FnOnce() -> HistoryRow,
    ) -> bool {
        let Some(room) = self.get(conversation) else { return false };
        let few = pause_after(room.followers()).is_zero();
        // What a crowd is told of is read together: commits that come together are handed over in any order.
        if few && room.take(epoch, seq, row) {
            room.changed.send_replace(());
        } else {
            room.bell.notify_one();
        }
        few
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
    /// What follows `place`, for a reader whose frames end with `ending`.
    pub(super) fn after(&self, place: &Place, ending: &Arc<str>) -> Next {
        let mut tail = lock(&self.tail);
        match tail.had(place) {
            None => Next::Elsewhere,
            Some(had) => tail.span(had, ending).map_or(Next::Nothing, Next::Rows),
        }
    }

    /// Whether nothing is known to follow `place`, and it would be known here.
    pub(super) fn is_at_end(&self, place: &Place) -> bool {
        let tail = lock(&self.tail);
        tail.had(place).is_some_and(|had| had == tail.rows.len())
    }

    /// Whether the room has all of the log.
    pub(super) fn has(&self, epoch: Epoch, head: u64) -> bool {
        let tail = lock(&self.tail);
        tail.end.epoch == epoch && tail.end.seq >= head
    }

    /// Live rows were handed to a member; those that none of its connections was handed before.
    pub(super) fn newly_handed(&self, member: MemberId, span: &Span) -> Vec<Arc<Row>> {
        let mut handed = lock(&self.handed);
        if handed.has_all(member, span.begin(), span.end().seq) {
            return Vec::new();
        }
        span.rows().iter().filter(|row| handed.is_new(member, row.place.seq)).cloned().collect()
    }

    /// Wakes when the room changed.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn followers(&self) -> usize {
        self.changed.receiver_count()
    }

    fn end(&self) -> Place {
        lock(&self.tail).end
    }

    /// Takes a committed row if it has the one before it. Answers whether it has it now.
    fn take(&self, epoch: Epoch, seq: u64, row: impl FnOnce() -> HistoryRow) -> bool {
        let mut tail = lock(&self.tail);
        if tail.over || tail.end.epoch != epoch || tail.end.seq + 1 < seq {
            return false;
        }
        if tail.end.seq < seq {
            tail.add(Arc::new(Row::new(self.conversation, epoch, &row())));
        }
        true
    }

    /// Adds rows that were read, but for those that were handed over meanwhile.
    fn push(&self, epoch: Epoch, rows: &[HistoryRow]) {
        let rows: Vec<Arc<Row>> =
            rows.iter().map(|row| Arc::new(Row::new(self.conversation, epoch, row))).collect();
        let mut tail = lock(&self.tail);
        let new: Vec<_> = rows.into_iter().filter(|row| !tail.has(row)).collect();
        if new.first().is_some_and(|first| first.place.seq != tail.end.seq + 1) {
            // Rows were pruned before the room read its first: what it has does not lead up to these.
            *tail = Tail::at(tail.end);
        }
        new.into_iter().for_each(|row| tail.add(row));
        drop(tail);
        self.changed.send_replace(());
    }

    /// The log is not what it was: whoever follows it asks the ledger.
    fn close(&self) {
        let mut tail = lock(&self.tail);
        *tail = Tail { over: true, ..Tail::at(tail.end) };
        drop(tail);
        self.rooms.forget(self);
        self.changed.send_replace(());
    }
}

impl Tail {
    fn at(end: Place) -> Self {
        Self { end, rows: VecDeque::new(), bytes: 0, spans: VecDeque::new(), over: false }
    }

    /// Whether it had the row before.
    fn has(&self, row: &Row) -> bool {
        row.place.epoch == self.end.epoch && row.place.seq <= self.end.seq
    }

    fn add(&mut self, row: Arc<Row>) {
        self.end = row.place;
        self.bytes += row.bytes();
        self.rows.push_back(row);
        while self.rows.len() > limits::TAIL_ROWS_MAX || self.bytes > limits::TAIL_BYTES_MAX {
            let Some(oldest) = self.rows.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
    }

    /// How many of the rows come before or at `place`; nothing when that cannot be said here.
    fn had(&self, place: &Place) -> Option<usize> {
        let begin = self.end.seq - self.rows.len() as u64;
        if self.over || place.epoch != self.end.epoch || place.seq < begin {
            return None;
        }
        // The follower may have read further than the room: the room will come by.
        let had = usize::try_from(place.seq - begin).unwrap_or(usize::MAX);
        Some(had.min(self.rows.len()))
    }

    /// The rows behind the first `had`, as far as they are handed out at once.
    fn span(&mut self, had: usize, ending: &Arc<str>) -> Option<Arc<Span>> {
        let (end, begin) = (self.end.seq, self.rows.get(had)?.place.seq);
        let known = self
            .spans
            .iter()
            .find(|(at_end, span)| *at_end == end && span.begin() == begin && span.is_for(ending));
        if let Some((_, span)) = known {
            return Some(span.clone());
        }
        let span = Arc::new(Span::first_of(self.rows.iter().skip(had).cloned(), ending)?);
        self.spans.truncate(SPANS_MAX - 1);
        self.spans.push_front((end, span.clone()));
        Some(span)
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

/// Reads the log for a room as long as anybody is in it.
async fn keep(shared: Arc<Shared>, room: Weak<Room>, bell: Arc<Notify>) {
    while !shared.stop.is_cancelled() {
        let looked = read(&shared, &room).await;
        let Some(open) = room.upgrade() else { return };
        if looked == Looked::Over {
            return open.close();
        }
        let pause = pause_after(open.followers());
        drop(open);
        if looked != Looked::Nothing && !pause.is_zero() {
            sleep(pause).await;
        }
        // Whatever was committed after the look has rung the bell, which keeps it.
        if looked != Looked::MoreRows {
            wait(&bell, &shared, limits::SAFETY_POLL_EVERY).await;
        }
    }
}

/// What a look at the log has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    Rows,
    /// Some are left to be read.
    MoreRows,
    /// It is as long as it was, or could not be read.
    Nothing,
    /// It is not what it was.
    Over,
}

/// Reads on from where the room ends.
async fn read(shared: &Shared, room: &Weak<Room>) -> Looked {
    let Some(open) = room.upgrade() else { return Looked::Nothing };
    let (conversation, end) = (open.conversation, open.end());
    drop(open);
    let read = shared.ledger.follow(conversation, Follower::Broker, end.cursor, limits::CATCH_UP_ROWS);
    match read.await {
        Ok(Some(followed)) if followed.rows.is_empty() => Looked::Nothing,
        Ok(Some(followed)) => {
            if let Some(open) = room.upgrade() {
                open.push(followed.epoch, &followed.rows);
            }
            if followed.has_more { Looked::MoreRows } else { Looked::Rows }
        }
        Ok(None) | Err(HistoryError::InvalidCursor | HistoryError::CursorExpired { .. }) => Looked::Over,
        Err(HistoryError::Storage(error)) => {
            tracing::warn!(%error, "a followed log was not read; it is tried again");
            Looked::Nothing
        }
    }
}

/// A crowd is told again when it had the time to take what it was told of: what is committed meanwhile goes together.
fn pause_after(followers: usize) -> Duration {
    if followers <= limits::FOLLOWERS_FEW {
        return Duration::ZERO;
    }
    let each = u32::try_from(followers).unwrap_or(u32::MAX);
    limits::HAND_OVER_PAUSE_EACH.saturating_mul(each).min(limits::HAND_OVER_PAUSE_MAX)
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
#[cfg(test)]
pub(super) use tests::row as test_row;
