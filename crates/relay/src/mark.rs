//! The mark beside the outbox: by it an older copy of the file that was put back is noticed.
//!
//! - The file counts up at each start and while writes are stored, first in itself and then in the mark: the mark is never
//!   ahead of its own file.

use std::sync::Arc;
use std::time::Duration;

use mailbox::relay::Envelopes;
use model::{Clock, Timestamp};
use sqlite::{FileMark, MarkedBy, StorageError};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::relay::Shared;

/// The fact under which the file's own count and its instant are kept.
const FILE_MARK: &str = "file_mark";
/// The fact under which the last time is kept that the file was found older than it had been.
const WENT_BACK: &str = "went_back";
/// A copy that is younger than this, put back after a kill, may go unnoticed.
const EVERY: Duration = Duration::from_secs(60);

/// Longer than any write of before waits.
const SHOWN_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

/// The file is older than it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutboxWentBack {
    pub(crate) noticed_at: Timestamp,
    /// The older copy holds what was stored up to here.
    pub(crate) ends_at: Timestamp,
}

impl OutboxWentBack {
    /// Whether a person should still see it.
    pub(crate) fn is_recent(&self, now: Timestamp) -> bool {
        now.since(self.noticed_at) <= SHOWN_FOR
    }

    /// For people.
    pub(crate) fn sentence(self) -> String {
        let Self { noticed_at, ends_at } = self;
        format!(
            "the outbox went back to an older copy: writes taken between {ends_at} and {noticed_at} that had not left are \
             gone, and writes that ended since are sent again under their keys"
        )
    }
}

/// Compares the file with its mark, counts it up, and answers with the last time that it was older.
pub(crate) async fn compare(
    envelopes: &Envelopes,
    now: Timestamp,
) -> Result<Option<OutboxWentBack>, StorageError> {
    let mark = match FileMark::read(envelopes.path()) {
        Ok(mark) => mark,
        Err(error) => {
            tracing::warn!(%error, "the mark beside the outbox cannot be read");
            None
        }
    };
    let (count, counted_at) = counted(envelopes).await?;
    if mark.as_ref().is_some_and(|mark| mark.is_ahead_of(count)) {
        let went_back = OutboxWentBack { noticed_at: now, ends_at: counted_at };
        tracing::error!("{}", went_back.sentence());
        let text = format!("{} {}", now.as_micros(), counted_at.as_micros());
        envelopes.keep_fact(WENT_BACK, Some(text)).await?;
    }
    let next = count.max(mark.map_or(0, |mark| mark.place)) + 1;
    count_up(envelopes, next, now).await?;
    let known = envelopes.fact(WENT_BACK).await?;
    Ok(known.and_then(|text| {
        let (noticed_at, ends_at) = text.split_once(' ')?;
        let at = |text: &str| text.parse().ok().map(Timestamp::from_micros);
        Some(OutboxWentBack { noticed_at: at(noticed_at)?, ends_at: at(ends_at)? })
    }))
}

/// Counts up while writes are stored, and once more at the end.
pub(crate) async fn keep(shared: Arc<Shared>, stop: CancellationToken) {
    let Some(envelopes) = shared.envelopes.clone() else { return };
    let mut rounds = interval(EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut commits = envelopes.commits();
    loop {
        let over = tokio::select! {
            () = stop.cancelled() => true,
            _ = rounds.tick() => false,
        };
        if envelopes.commits() != commits {
            if let Err(error) = again(&envelopes, &*shared.clock).await {
                tracing::warn!(%error, "the outbox cannot count up; a younger copy of it may go unnoticed");
            }
            commits = envelopes.commits();
        }
        if over {
            return;
        }
    }
}

async fn again(envelopes: &Envelopes, clock: &dyn Clock) -> Result<(), StorageError> {
    let (count, _) = counted(envelopes).await?;
    count_up(envelopes, count + 1, clock.now()).await
}

async fn counted(envelopes: &Envelopes) -> Result<(u64, Timestamp), StorageError> {
    let text = envelopes.fact(FILE_MARK).await?.unwrap_or_default();
    let read = text.split_once(' ').and_then(|(count, at)| Some((count.parse().ok()?, at.parse().ok()?)));
    let (count, at) = read.unwrap_or((0, 0));
    Ok((count, Timestamp::from_micros(at)))
}

async fn count_up(envelopes: &Envelopes, count: u64, now: Timestamp) -> Result<(), StorageError> {
    envelopes.keep_fact(FILE_MARK, Some(format!("{count} {}", now.as_micros()))).await?;
    let mark = FileMark { place: count, at_us: now.as_micros(), by: MarkedBy::Process };
    if let Err(error) = mark.write(envelopes.path()) {
        tracing::warn!(%error, "the mark beside the outbox cannot be written");
    }
    Ok(())
}
