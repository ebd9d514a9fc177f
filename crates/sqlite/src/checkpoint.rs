//! Keeping the log short without making a commit wait.
//!
//! Phase one: a second connection copies the log into the file beside the writer, each time the log has
//! grown by a step, and syncs the file. Alone it never lets the log start over, because the writer adds to it
//! meanwhile.
//! Phase two: past a budget, once the second connection has left only a small rest, the writer copies
//! that rest itself between two batches; its next transaction then finds everything copied and writes
//! the log from the start, in place.
//! Past its usual bound a reader keeps the log. The second connection goes on to copy by steps, as far as that reader
//! lets it; once the rest is short, the writer waits for readers to leave, once an interval and for a moment. Meanwhile
//! the log grows, up to its hard bound, at which writes are refused by name.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, ErrorCode};

use crate::error::Aftermath;
use crate::{Bounds, StorageError};

/// Why writing ended for good; set once, by whoever met it first.
#[derive(Default)]
pub(crate) struct Stop {
    cause: OnceLock<Arc<str>>,
    listener: OnceLock<StopListener>,
}

/// Called with the cause when writing ends for good, on the thread that met it.
pub(crate) type StopListener = Box<dyn Fn(&Arc<str>) + Send + Sync>;

impl Stop {
    pub(crate) fn cause(&self) -> Option<&Arc<str>> {
        self.cause.get()
    }

    pub(crate) fn set(&self, error: &StorageError) -> Arc<str> {
        let cause = self.cause.get_or_init(|| error.as_cause().into());
        tracing::error!(%cause, "writing has stopped until the process starts anew");
        self.announce(cause);
        Arc::clone(cause)
    }

    /// A file has one listener. It is called at once when writing has ended already, and may be called twice.
    pub(crate) fn listen(&self, listener: StopListener) {
        if self.listener.set(listener).is_ok()
            && let Some(cause) = self.cause()
        {
            self.announce(cause);
        }
    }

    fn announce(&self, cause: &Arc<str>) {
        if let Some(listener) = self.listener.get() {
            listener(cause);
        }
    }

    pub(crate) fn error(&self, path: &Arc<Path>) -> Option<StorageError> {
        let cause = Arc::clone(self.cause()?);
        Some(StorageError::Stopped { path: Arc::clone(path), cause })
    }
}

/// Between two waits for readers to leave the log: each makes every caller wait for up to [`RESTART_WAIT`] twice.
pub(crate) const RESTART_INTERVAL: Duration = Duration::from_secs(1);
/// How long one try waits for readers. Those of this process read for a few milliseconds at most.
pub(crate) const RESTART_WAIT: Duration = Duration::from_millis(20);

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
    /// The writer shall copy and wait for a moment until no reader needs the log.
    Restart,
}

/// Whether the writer may wait for readers to leave the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestartTry {
    Due,
    /// It did so a moment ago.
    TooSoon,
}

impl RestartTry {
    /// After the last try, if there was one, lies so far back.
    pub(crate) fn after(since_last: Option<Duration>) -> Self {
        match since_last {
            Some(since) if since < RESTART_INTERVAL => Self::TooSoon,
            Some(_) | None => Self::Due,
        }
    }
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
    /// `restart` says whether the writer may wait for readers now.
    pub(crate) fn after(&mut self, pages: u32, copied: u32, restart: RestartTry, bounds: &Bounds) -> Due {
        if pages < self.pages {
            (self.beside_at, self.between_at) = (0, 0);
        }
        self.pages = pages;
        let step = bounds.checkpoint_step_pages;
        let is_kept = pages >= bounds.wal_pages_max;
        let rest = pages.saturating_sub(copied);
        if is_kept && rest <= step && restart == RestartTry::Due {
            return Due::Restart;
        }
        // A log that a reader keeps cannot start over, however often its rest is copied.
        let rest_max = if is_kept { step } else { step / REST_SHARE };
        let over_budget = pages >= bounds.wal_budget_pages;
        // Not for ever: a slow second connection must not keep the log from starting over. A reader that keeps a long
        // rest does, and copying that rest is for the second connection, beside the writer.
        let overdue = pages >= bounds.wal_budget_pages.saturating_add(step) && !is_kept;
        let rest_is_short = rest <= rest_max;
        if over_budget && (rest_is_short || overdue) && pages >= self.between_at.saturating_add(rest_max) {
            return Due::Between;
        }
        // At its hard bound the log does not grow, so each refused write asks again.
        let is_full = pages >= bounds.log_pages_max;
        if is_full || pages >= self.beside_at.saturating_add(if over_budget { rest_max } else { step }) {
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
    /// Of so many pages of the log the first `copied` are in the file; readers may have kept it from more.
    Pages { logged: u32, copied: u32 },
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
        Ok((logged, copied)) => {
            let pages = |number: i32| u32::try_from(number).unwrap_or(0);
            Ok(Copied::Pages { logged: pages(logged), copied: pages(copied) })
        }
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
        let asked: Vec<Due> = [50, 100, 150, 199, 200, 250]
            .map(|pages| watch.after(pages, 0, RestartTry::Due, &bounds()))
            .into();
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
            assert_eq!(
                watch.after(pages, copied, RestartTry::Due, &bounds()),
                due,
                "{pages} pages, {copied} copied"
            );
        }
        watch.copied();
        assert_eq!(
            watch.after(310, 310, RestartTry::Due, &bounds()),
            Nothing,
            "a reader may pin the log: not at every commit"
        );
        assert_eq!(watch.after(316, 310, RestartTry::Due, &bounds()), Between, "a rest later");
    }

    #[test]
    fn a_slow_second_connection_does_not_keep_the_writer_from_copying() {
        let mut watch = Watch::default();
        assert_ne!(watch.after(399, 0, RestartTry::Due, &bounds()), Due::Between);
        assert_eq!(watch.after(400, 0, RestartTry::Due, &bounds()), Due::Between);
    }

    #[test]
    fn a_log_that_started_over_counts_from_nothing() {
        let mut watch = Watch::default();
        watch.after(400, 400, RestartTry::Due, &bounds());
        watch.copied();
        assert_eq!(watch.after(10, 400, RestartTry::Due, &bounds()), Due::Nothing);
        assert_eq!(watch.after(100, 400, RestartTry::Due, &bounds()), Due::Beside);
    }

    #[test]
    fn a_log_that_a_reader_keeps_is_copied_beside_the_writer_by_steps() {
        let mut watch = Watch::default();
        for (pages, due) in
            [(1000, Due::Beside), (1099, Due::Nothing), (1100, Due::Beside), (1250, Due::Beside)]
        {
            assert_eq!(watch.after(pages, 500, RestartTry::Due, &bounds()), due, "{pages} pages");
        }
    }

    #[test]
    fn a_log_at_its_hard_bound_is_copied_at_each_refusal() {
        let mut watch = Watch::default();
        let bounds = Bounds { log_pages_max: 2000, ..bounds() };
        for _ in 0..2 {
            assert_eq!(watch.after(2000, 500, RestartTry::Due, &bounds), Due::Beside);
        }
        assert_eq!(watch.after(2000, 2000, RestartTry::Due, &bounds), Due::Restart);
    }

    #[test]
    fn readers_are_waited_for_once_an_interval_when_the_rest_is_short() {
        let mut watch = Watch::default();
        assert_eq!(watch.after(1000, 950, RestartTry::Due, &bounds()), Due::Restart);
        watch.copied();
        assert_eq!(watch.after(1010, 1000, RestartTry::TooSoon, &bounds()), Due::Beside);
        assert_eq!(watch.after(1020, 1000, RestartTry::Due, &bounds()), Due::Restart);
    }

    #[test]
    fn readers_are_asked_to_leave_once_an_interval() {
        for (since_last, due) in [
            (None, RestartTry::Due),
            (Some(Duration::ZERO), RestartTry::TooSoon),
            (Some(RESTART_INTERVAL - Duration::from_millis(1)), RestartTry::TooSoon),
            (Some(RESTART_INTERVAL), RestartTry::Due),
        ] {
            assert_eq!(RestartTry::after(since_last), due, "{since_last:?}");
        }
    }
}
