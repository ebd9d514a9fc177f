//! One follower of one log: a loop that owns its cursor.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ledger::{ConversationName, Followed, Follower, HistoryError};
use model::{ConversationId, Cursor, Epoch, MemberId, limits};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use wire::chat::{FrameError, ToSubscriber};

use super::bounded;
use super::room::{Next, Place, Room};
use super::row::{self, Row, Span};
use crate::broker::Shared;

/// Between two looks for a log that is not there, or not to be read.
const ABSENT_LOOK_EVERY: Duration = Duration::from_millis(200);

/// Where a follower's frames go.
pub(super) trait Outlet: Send {
    /// Hands messages over.
    fn messages(&mut self, span: &Span) -> impl Future<Output = Result<(), Gone>> + Send;

    /// Says something else.
    fn say(&mut self, frame: &ToSubscriber) -> impl Future<Output = Result<(), Gone>> + Send;
}

/// The follower is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone;

/// What a follower asked for.
pub(super) struct Subscription {
    pub(super) shared: Arc<Shared>,
    pub(super) reader: MemberId,
    /// Whether the broker hosts the reader, and so records what it was handed.
    pub(super) hosted: bool,
    pub(super) conversation: ConversationId,
    /// The conversation as the follower spelled it.
    pub(super) asked: String,
    pub(super) sub: Option<String>,
    pub(super) cursor: Cursor,
}

/// Where an own read left the follower, and what it learned of the log.
struct Reached {
    place: Place,
    /// What the follower's frames end with.
    ending: Arc<str>,
    is_topic: bool,
}

/// What the ledger says about the place a follower is at.
enum Read {
    Rows(Followed),
    /// There is no such log for this reader.
    Absent,
    /// The place is gone; the log's generation, when there is one.
    Expired {
        first_available: Cursor,
    },
    Invalid,
    /// Not now.
    Failed,
}

impl Subscription {
    /// Follows the log until the follower is gone, or the place is.
    pub(super) async fn run(mut self, mut out: impl Outlet) -> Result<(), Gone> {
        // Nothing until the follower was told that it is caught up; then the generation it knows.
        let mut told: Option<Epoch> = None;
        loop {
            let read = self.read().await;
            let followed = match read {
                Read::Rows(followed) => followed,
                Read::Absent => {
                    if self.cursor != Cursor::Start {
                        return self.over(&mut out, told, Cursor::Start).await;
                    }
                    if told.is_none() {
                        told = Some(0);
                        out.say(&self.subscribed(0)).await?;
                    }
                    self.wait_for_commit(ABSENT_LOOK_EVERY).await;
                    continue;
                }
                Read::Expired { first_available } => {
                    return self.over(&mut out, told, first_available).await;
                }
                Read::Invalid => return out.say(&self.refused(FrameError::InvalidCursor)).await,
                Read::Failed => return out.say(&self.refused(FrameError::Unavailable)).await,
            };
            let generation = followed.epoch;
            if told.is_some_and(|known| known != generation) {
                return self.over(&mut out, told, Cursor::Start).await;
            }
            let (has_more, reached) = self.hand_over(&mut out, followed).await?;
            if has_more {
                continue;
            }
            if told.is_none() {
                told = Some(generation);
                out.say(&self.subscribed(generation)).await?;
            }
            if ledger::planted::reads_by_time() {
                // The room counts on numbers without gaps.
                self.wait_for_commit(limits::QUIET_READ_PAUSE).await;
            } else {
                self.live(&mut out, reached).await?;
            }
        }
    }

    async fn read(&self) -> Read {
        let reader = Follower::Member(self.reader);
        let read = self.shared.ledger.follow(self.conversation, reader, self.cursor, limits::CATCH_UP_ROWS);
        match read.await {
            Ok(Some(followed)) => Read::Rows(bounded(followed)),
            Ok(None) => Read::Absent,
            Err(HistoryError::InvalidCursor) => Read::Invalid,
            Err(HistoryError::CursorExpired { first_available }) => Read::Expired { first_available },
            Err(HistoryError::Storage(error)) => {
                tracing::warn!(%error, "a subscription's log was not read");
                Read::Failed
            }
        }
    }

    /// Rows of an own read. Answers whether more follow.
    async fn hand_over(
        &mut self,
        out: &mut impl Outlet,
        followed: Followed,
    ) -> Result<(bool, Reached), Gone> {
        let is_topic = matches!(followed.name, Some(ConversationName::Topic(_)));
        let name = followed.name.as_ref().map_or_else(String::new, ToString::to_string);
        let ending = row::ending(&name, self.sub.as_deref());
        let mut place = Place { epoch: followed.epoch, seq: followed.from, cursor: self.cursor };
        let mut rows = followed.rows.as_slice();
        let (conversation, epoch) = (self.conversation, followed.epoch);
        let written = |row| Arc::new(Row::new(conversation, epoch, row));
        while let Some(span) = Span::first_of(rows.iter().map(written), &ending) {
            out.messages(&span).await?;
            place = span.end();
            self.cursor = place.cursor;
            rows = &rows[span.rows().len()..];
        }
        Ok((followed.has_more, Reached { place, ending, is_topic }))
    }

    /// Follows the room until it cannot say what comes next, or it is time to ask the ledger whether this reader
    /// may still read.
    async fn live(&mut self, out: &mut impl Outlet, mut reached: Reached) -> Result<(), Gone> {
        let room = self.shared.rooms.join(&self.shared, self.conversation, reached.place);
        let mut changes = room.changes();
        let until = Instant::now() + limits::CREDENTIAL_CHECK_EVERY;
        loop {
            changes.mark_unchanged();
            match room.after(&reached.place, &reached.ending) {
                Next::Rows(span) => {
                    out.messages(&span).await?;
                    reached.place = span.end();
                    self.cursor = reached.place.cursor;
                    if self.hosted {
                        self.note_handed(&room, &span, reached.is_topic);
                    }
                }
                Next::Nothing => match timeout_at(until, changes.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return Ok(()),
                },
                Next::Elsewhere => {
                    // The room may not have noticed yet that its log begins anew; it is told, and given a moment.
                    self.shared.rooms.ring(self.conversation);
                    let _ = timeout(limits::HEADS_LOOK_EVERY, changes.changed()).await;
                    return Ok(());
                }
            }
            if Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// What the reader itself wrote to a topic is delivered to others only.
    fn note_handed(&self, room: &Room, span: &Span, is_topic: bool) {
        let new = room.newly_handed(self.reader, span).into_iter();
        for row in new.filter(|row| !is_topic || row.sender != self.reader) {
            self.shared.notices.handed(row.place.cursor, self.reader);
        }
    }

    /// Until something was committed, but not sooner than after `pause`: whether it was to this log nobody knows.
    async fn wait_for_commit(&self, pause: Duration) {
        let mut committed = self.shared.ledger.committed();
        sleep(pause).await;
        let _ = timeout(limits::SAFETY_POLL_EVERY, committed.changed()).await;
    }

    /// The place is gone. A follower that was caught up is told of a new generation as such.
    async fn over(
        &self,
        out: &mut impl Outlet,
        told: Option<Epoch>,
        first_available: Cursor,
    ) -> Result<(), Gone> {
        if let Some(known) = told
            && let Some(generation) = self.generation().await
            && generation != known
        {
            let (conversation_id, sub) = (self.asked.clone(), self.sub.clone());
            return out.say(&ToSubscriber::Reset { conversation_id, sub, generation }).await;
        }
        let refused = match self.refused(FrameError::CursorExpired) {
            ToSubscriber::Error { code, message, conversation_id, sub, .. } => {
                let first_available = Some(first_available.to_string());
                ToSubscriber::Error { code, message, conversation_id, sub, first_available }
            }
            other => other,
        };
        out.say(&refused).await
    }

    async fn generation(&self) -> Option<Epoch> {
        let heads = self.shared.ledger.heads(&[self.conversation]).await.ok()?;
        heads.first().map(|head| head.epoch)
    }

    fn subscribed(&self, generation: Epoch) -> ToSubscriber {
        ToSubscriber::Subscribed {
            conversation_id: self.asked.clone(),
            sub: self.sub.clone(),
            cursor: self.cursor.to_string(),
            generation,
        }
    }

    fn refused(&self, code: FrameError) -> ToSubscriber {
        ToSubscriber::refused(code, Some(self.asked.clone()), self.sub.clone())
    }
}
