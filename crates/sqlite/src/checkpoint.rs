//! Keeping the log short without making a commit wait.
//!
//! Phase one: a second connection copies the log into the file beside the writer, each time the log has
//! grown by a step. Alone it never lets the log start over, because the writer adds to it meanwhile.
//! Phase two: past a budget the writer copies the small rest itself between two batches; its next
//! transaction then finds everything copied and writes the log from the start, in place.
//! Past a hard limit the writer waits for readers, who are bounded themselves.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, ErrorCode};

use crate::engine::spawn;
use crate::error::Aftermath;
use crate::stats::Gauges;
use crate::{Bounds, OpenError, StorageError};

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
    /// Decides after a commit that left `pages` in the log.
    pub(crate) fn after(&mut self, pages: u32, bounds: &Bounds) -> Due {
        if pages < self.pages {
            (self.beside_at, self.between_at) = (0, 0);
        }
        self.pages = pages;
        let step = bounds.checkpoint_step_pages;
        if pages >= bounds.wal_pages_max {
            return Due::Alone;
        }
        if pages >= bounds.wal_budget_pages && pages >= self.between_at.saturating_add(step / 4) {
            return Due::Between;
        }
        if pages >= self.beside_at.saturating_add(step) {
            self.beside_at = pages;
            return Due::Beside;
        }
        Due::Nothing
    }

    /// The writer copied what there was; a reader that pins the log costs one try per quarter step.
    pub(crate) fn copied(&mut self) {
        self.between_at = self.pages;
    }
}

/// The thread of phase one, and the line to it: one wish is enough, more mean the same.
pub(crate) struct Helper {
    wish: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Helper {
    pub(crate) fn start(
        conn: Connection,
        path: &Arc<Path>,
        gauges: &Arc<Gauges>,
        stop: &Arc<Stop>,
    ) -> Result<Self, OpenError> {
        let (wish, wishes) = sync_channel(1);
        let (file, gauges, stop) = (Arc::clone(path), Arc::clone(gauges), Arc::clone(stop));
        let life = move || copy_on_wish(&conn, &file, &gauges, &stop, &wishes);
        let thread = spawn("sqlite-copier", path, life)?;
        Ok(Self { wish, thread })
    }

    pub(crate) fn wish(&self) {
        match self.wish.try_send(()) {
            Ok(()) | Err(TrySendError::Full(())) => {}
            Err(TrySendError::Disconnected(())) => tracing::error!("the checkpoint thread has ended early"),
        }
    }

    pub(crate) fn join(self) {
        drop(self.wish);
        if self.thread.join().is_err() {
            tracing::error!("the checkpoint thread panicked");
        }
    }
}

/// Copies the log into the file. `Ok(false)`: somebody was in the way, later is fine too.
pub(crate) fn copy(conn: &Connection, path: &Arc<Path>, mode: CheckpointMode) -> Result<bool, StorageError> {
    match conn.wal_checkpoint_v2(Some(rusqlite::MAIN_DB), mode) {
        Ok(_) => Ok(true),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(false),
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

fn copy_on_wish(conn: &Connection, path: &Arc<Path>, gauges: &Gauges, stop: &Stop, wishes: &Receiver<()>) {
    while wishes.recv().is_ok() {
        if stop.cause().is_some() {
            continue;
        }
        match copy(conn, path, CheckpointMode::PASSIVE) {
            Ok(_) => drop(gauges.checkpoints_beside.fetch_add(1, Relaxed)),
            Err(error) => met(&error, stop),
        }
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
        let mut watch = Watch::default();
        let asked: Vec<Due> = [50, 100, 150, 199, 200, 250].map(|pages| watch.after(pages, &bounds())).into();
        use Due::{Beside, Nothing};
        assert_eq!(asked, [Nothing, Beside, Nothing, Nothing, Beside, Nothing]);
    }

    #[test]
    fn past_the_budget_the_writer_copies_and_tries_again_a_quarter_step_later() {
        let mut watch = Watch::default();
        assert_eq!(watch.after(300, &bounds()), Due::Between);
        watch.copied();
        assert_ne!(watch.after(310, &bounds()), Due::Between);
        assert_eq!(watch.after(325, &bounds()), Due::Between);
    }

    #[test]
    fn a_log_that_started_over_counts_from_nothing() {
        let mut watch = Watch::default();
        watch.after(300, &bounds());
        watch.copied();
        assert_eq!(watch.after(10, &bounds()), Due::Nothing);
        assert_eq!(watch.after(100, &bounds()), Due::Beside);
    }

    #[test]
    fn at_the_limit_the_writer_waits_for_readers() {
        let mut watch = Watch::default();
        assert_eq!(watch.after(1000, &bounds()), Due::Alone);
    }
}
