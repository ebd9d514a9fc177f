//! The mark beside the outbox: by it an older copy of the file that was put back is noticed.
//!
//! - The file counts up at each start and while writes are stored, first in itself and then in the mark: the mark is never
//!   ahead of its own file.
//! - A write that waits in an older copy may have been sent since, and is marked so together with the note: it is sent again
//!   under its key, and once that may be forgotten, the upstream is asked.

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
    /// When the mark was written that told of it; names this occurrence.
    pub(crate) marked_at: Timestamp,
}

impl OutboxWentBack {
    /// Whether a person should still see it.
    pub(crate) fn is_recent(&self, now: Timestamp) -> bool {
        now.since(self.noticed_at) <= SHOWN_FOR
    }

    /// For people.
    pub(crate) fn sentence(self) -> String {
        let Self { noticed_at, ends_at, .. } = self;
        format!(
            "the outbox went back to an older copy: writes taken between {ends_at} and {noticed_at} that had not left are \
             gone; those that wait now may have been sent since, and go again under their keys"
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
    let mut last = envelopes.fact(WENT_BACK).await?.and_then(|text| parse(&text));
    if let Some(mark) = mark.as_ref().filter(|mark| mark.is_ahead_of(count)) {
        let marked_at = Timestamp::from_micros(mark.at_us);
        // The mark stays when a process ends between the note and the next count.
        if last.is_none_or(|last| last.marked_at != marked_at) {
            let went_back = OutboxWentBack { noticed_at: now, ends_at: counted_at, marked_at };
            tracing::error!("{}", went_back.sentence());
            let text = [now, counted_at, marked_at].map(|at| at.as_micros().to_string()).join(" ");
            envelopes.note_went_back(WENT_BACK, text).await?;
            last = Some(went_back);
        }
    }
    let next = count.max(mark.map_or(0, |mark| mark.place)) + 1;
    count_up(envelopes, next, now).await?;
    Ok(last)
}

fn parse(text: &str) -> Option<OutboxWentBack> {
    let mut instants = text.split(' ').map(|text| text.parse().ok().map(Timestamp::from_micros));
    let mut next = || instants.next().flatten();
    Some(OutboxWentBack { noticed_at: next()?, ends_at: next()?, marked_at: next()? })
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

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::SeededEntropy;

    #[tokio::test]
    async fn a_loss_is_noted_once_although_a_kill_leaves_the_mark_that_told_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("outbox.db");
        let at = Timestamp::from_micros;
        let envelopes = Envelopes::open(&path, Arc::new(SeededEntropy::new(7)), at(1)).unwrap();
        assert_eq!(compare(&envelopes, at(1)).await.unwrap(), None);
        for by in [MarkedBy::Process, MarkedBy::Restore { backup_at_us: 7 }] {
            let (count, counted_at) = counted(&envelopes).await.unwrap();
            let noticed_at = at(counted_at.as_micros() + 10);
            let mark = FileMark { place: count + 1, at_us: counted_at.as_micros() + 5, by };
            let noted = OutboxWentBack { noticed_at, ends_at: counted_at, marked_at: at(mark.at_us) };
            for later in 0..3 {
                mark.write(&path).unwrap();
                let now = at(noticed_at.as_micros() + later);
                assert_eq!(compare(&envelopes, now).await.unwrap(), Some(noted), "{by:?}");
            }
        }
        envelopes.close().await;
    }
}
