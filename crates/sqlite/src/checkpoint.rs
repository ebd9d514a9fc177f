//! Keeping the log short without making a commit wait.
//!
//! Phase one: a second connection copies the log into the file beside the writer, each time the log has
//! grown by a step, and syncs the file. Alone it never lets the log start over, because the writer adds to it
//! meanwhile.
//! Phase two: past a budget, once the second connection has left only a small rest, the writer copies
//! that rest itself between two batches; its next transaction then finds everything copied and writes
//! the log from the start, in place.
//! Past a hard limit the writer waits, for the second connection and for readers, who are bounded too.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, ErrorCode};

use crate::error::Aftermath;
use crate::{Bounds, StorageError};

/// Why writing ended for good; set once, by whoever met it first.
#[derive(Debug, Default)]
pub(crate) struct Stop(OnceLock<Arc<str>>);

impl Stop {
    pub(crate) fn cause(&self) -> Option<&Arc<str>> {
        self.0.get()
    }

    pub(crate) fn set(&self, error: &StorageError) -> Arc<str> {
        let cause = self.0.get_or_init(|| error.to_string().into());
        tracing::error!(%cause, "writing has stopped until the process starts anew");
        Arc::clone(cause)
    }

    pub(crate) fn error(&self, path: &Arc<Path>) -> Option<StorageError> {
        let cause = Arc::clone(self.cause()?);
        Some(StorageError::Stopped { path: Arc::clone(path), cause })
    }
}

/// The rest that the writer copies itself is at most this part of a step: callers wait for it.
const REST_SHARE: u32 = 16;

/// What the length of the log asks for after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// The second connection shall copy, beside the writer.
    Beside,
    /// The writer shall copy what is left, now.
    Between,
    /// The writer shall copy and wait until no reader needs the log.
    Alone,
}

/// Where the log's growth was last acted upon.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pages: u32,
    beside_at: u32,
    between_at: u32,
}

impl Watch {
    /// Decides after a commit that left `pages` in the log, of which the first `copied` are in the file.
    /// That number may be one of an earlier round of the log; then the writer copies more than a rest.
    pub(crate) fn after(&mut self, pages: u32, copied: u32, bounds: &Bounds) -> Due {
        if pages < self.pages {
            (self.beside_at, self.between_at) = (0, 0);
        }
        self.pages = pages;
        if pages >= bounds.wal_pages_max {
            return Due::Alone;
        }
        let step = bounds.checkpoint_step_pages;
        let rest_max = step / REST_SHARE;
        let over_budget = pages >= bounds.wal_budget_pages;
        // Not for ever: a slow second connection must not keep the log from starting over.
        let overdue = pages >= bounds.wal_budget_pages.saturating_add(step);
        let rest_is_short = pages.saturating_sub(copied) <= rest_max;
        if over_budget && (rest_is_short || overdue) && pages >= self.between_at.saturating_add(rest_max) {
            return Due::Between;
        }
        if pages >= self.beside_at.saturating_add(if over_budget { rest_max } else { step }) {
            self.beside_at = pages;
            return Due::Beside;
        }
        Due::Nothing
    }

    /// The writer copied what there was; a reader that pins the log costs one try per rest.
    pub(crate) fn copied(&mut self) {
        self.between_at = self.pages;
    }
}

/// How a copy of the log into the file went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copied {
    /// The first so many pages of the log are in the file; readers may have kept it from more.
    Pages(u32),
    /// Somebody was in the way; later is fine too.
    NotNow,
}

/// Copies the log into the file.
pub(crate) fn copy(
    conn: &Connection,
    path: &Arc<Path>,
    mode: CheckpointMode,
) -> Result<Copied, StorageError> {
    match conn.wal_checkpoint_v2(Some(rusqlite::MAIN_DB), mode) {
        Ok((_, copied)) => Ok(Copied::Pages(u32::try_from(copied).unwrap_or(0))),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(Copied::NotNow),
        Err(error) => Err(StorageError::of(Arc::clone(path), error)),
    }
}

/// What an error of a checkpoint means: without space the log just grows for a while, as long as there is
/// room for it; any other error came from a write or a sync whose effect is unknown.
pub(crate) fn met(error: &StorageError, stop: &Stop) {
    match error.aftermath() {
        Aftermath::GoOn => tracing::warn!(%error, "checkpoint put off"),
        Aftermath::Stop => drop(stop.set(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds() -> Bounds {
        Bounds { checkpoint_step_pages: 100, wal_budget_pages: 300, wal_pages_max: 1000, ..Bounds::default() }
    }

    #[test]
    fn the_second_connection_is_asked_once_per_step() {
        use Due::{Beside, Nothing};
        let mut watch = Watch::default();
        let asked: Vec<Due> =
            [50, 100, 150, 199, 200, 250].map(|pages| watch.after(pages, 0, &bounds())).into();
        assert_eq!(asked, [Nothing, Beside, Nothing, Nothing, Beside, Nothing]);
    }

    #[test]
    fn past_the_budget_the_writer_copies_once_the_rest_is_short() {
        use Due::{Beside, Between, Nothing};
        let mut watch = Watch::default();
        // (pages in the log, of them copied, what is due): a rest is short up to a sixteenth of a step.
        for (pages, copied, due) in
            [(299, 299, Beside), (300, 200, Nothing), (305, 200, Beside), (310, 305, Between)]
        {
            assert_eq!(watch.after(pages, copied, &bounds()), due, "{pages} pages, {copied} copied");
        }
        watch.copied();
        assert_eq!(
            watch.after(310, 310, &bounds()),
            Nothing,
            "a reader may pin the log: not at every commit"
        );
        assert_eq!(watch.after(316, 310, &bounds()), Between, "a rest later");
    }

    #[test]
    fn a_slow_second_connection_does_not_keep_the_writer_from_copying() {
        let mut watch = Watch::default();
        assert_ne!(watch.after(399, 0, &bounds()), Due::Between);
        assert_eq!(watch.after(400, 0, &bounds()), Due::Between);
    }

    #[test]
    fn a_log_that_started_over_counts_from_nothing() {
        let mut watch = Watch::default();
        watch.after(400, 400, &bounds());
        watch.copied();
        assert_eq!(watch.after(10, 400, &bounds()), Due::Nothing);
        assert_eq!(watch.after(100, 400, &bounds()), Due::Beside);
    }

    #[test]
    fn at_the_limit_the_writer_waits_for_readers() {
        let mut watch = Watch::default();
        assert_eq!(watch.after(1000, 1000, &bounds()), Due::Alone);
    }
}
