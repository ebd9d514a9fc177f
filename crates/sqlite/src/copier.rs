//! The second connection, which copies the log into the file beside the writer.
//!
//! - It takes the processor's time that nobody else wants, so that whoever commits or answers finds a processor at once.
//! - Where much is written, or on a machine that never rests, that is not enough, and the writer would have to copy what is
//!   left. So there are two threads, of which one at a time has the connection: after a copy that left more than a step to
//!   be copied it goes to the other, which has a share of its own, and comes back after a while.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use crate::checkpoint::{Copied, Stop, copy, met};
use crate::engine::spawn;
use crate::share::{take_a_share, take_what_is_left};
use crate::stats::Gauges;
use crate::wait::now;
use crate::{OpenError, StorageError};

/// How long the thread with a share keeps the connection: what made the other too slow may be over.
const SHARE_FOR: Duration = Duration::from_secs(10);

/// The threads, and the line to them: one wish is enough, more mean the same.
pub(crate) struct Helper {
    wish: SyncSender<()>,
    threads: [JoinHandle<()>; 2],
    progress: Arc<Progress>,
}

/// What the second connection has done, for the writer to look at.
#[derive(Debug, Default)]
struct Progress {
    /// Pages of the log that were in the file after its last copy.
    copied: AtomicU32,
    /// Held while it copies: SQLite refuses a second copier instead of letting it wait.
    turn: Mutex<()>,
}

/// The second connection, and what it is wished for.
struct Copier {
    conn: Connection,
    wishes: Receiver<()>,
    /// More than a copy should leave.
    step_pages: u32,
    data: Arc<File>,
    path: Arc<Path>,
    gauges: Arc<Gauges>,
    stop: Arc<Stop>,
    progress: Arc<Progress>,
}

/// When a thread gives the connection to the other.
#[derive(Clone, Copy)]
enum Until {
    /// It cannot keep up.
    Behind,
    /// It has had the connection for so long.
    Had(Duration),
}

/// Why a thread has stopped copying.
enum Ended {
    /// It is the other's turn.
    Turn,
    /// Nobody wishes for anything any more.
    Over,
}

impl Until {
    /// After a copy that left so many pages, when the thread has had the connection for so long.
    fn is_over(self, left_pages: u32, step_pages: u32, had: Duration) -> bool {
        match self {
            Until::Behind => left_pages > step_pages,
            Until::Had(most) => had > most,
        }
    }
}

impl Helper {
    pub(crate) fn start(
        conn: Connection,
        data: &Arc<File>,
        step_pages: u32,
        path: &Arc<Path>,
        gauges: &Arc<Gauges>,
        stop: &Arc<Stop>,
    ) -> Result<Self, OpenError> {
        let (wish, wishes) = sync_channel(1);
        let progress = Arc::new(Progress::default());
        let copier = Copier {
            conn,
            wishes,
            step_pages,
            data: Arc::clone(data),
            path: Arc::clone(path),
            gauges: Arc::clone(gauges),
            stop: Arc::clone(stop),
            progress: Arc::clone(&progress),
        };
        let (to_first, first) = sync_channel(1);
        let (to_second, second) = sync_channel(1);
        // There is room for one, and there is one.
        drop(to_first.try_send(copier));
        let threads = [
            spawn("sqlite-copier", path, move || {
                take_what_is_left();
                take_turns(&first, &to_second, Until::Behind);
            })?,
            spawn("sqlite-copier", path, move || {
                take_a_share();
                take_turns(&second, &to_first, Until::Had(SHARE_FOR));
            })?,
        ];
        Ok(Self { wish, threads, progress })
    }

    pub(crate) fn wish(&self) {
        match self.wish.try_send(()) {
            Ok(()) | Err(TrySendError::Full(())) => {}
            Err(TrySendError::Disconnected(())) => tracing::error!("the checkpoint threads have ended early"),
        }
    }

    pub(crate) fn copied(&self) -> u32 {
        self.progress.copied.load(Relaxed)
    }

    /// Waits until the second connection is idle, and keeps it so.
    pub(crate) fn rest(&self) -> MutexGuard<'_, ()> {
        self.progress.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn join(self) {
        drop(self.wish);
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a checkpoint thread panicked");
            }
        }
    }
}

/// The life of a thread: it ends when the connection is over, or with the other thread.
fn take_turns(mine: &Receiver<Copier>, other: &SyncSender<Copier>, until: Until) {
    while let Ok(copier) = mine.recv() {
        match copier.run(until) {
            Ended::Turn => drop(other.send(copier)),
            Ended::Over => return,
        }
    }
}

impl Copier {
    fn run(&self, until: Until) -> Ended {
        let began = now();
        while self.wishes.recv().is_ok() {
            let left = self.copy_unless_stopped();
            if until.is_over(left, self.step_pages, began.elapsed()) {
                return Ended::Turn;
            }
        }
        Ended::Over
    }

    /// Answers how many pages came to the log meanwhile, as far as that is known.
    fn copy_unless_stopped(&self) -> u32 {
        let _turn = self.progress.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.stop.cause().is_some() {
            return 0;
        }
        match self.copy() {
            Ok(Copied::Pages(pages)) => {
                self.progress.copied.store(pages, Relaxed);
                self.gauges.checkpoints_beside.fetch_add(1, Relaxed);
                // Less than was copied when the log has started over.
                self.gauges.log_pages().saturating_sub(pages)
            }
            Ok(Copied::NotNow) => 0,
            Err(error) => {
                met(&error, &self.stop);
                0
            }
        }
    }

    /// SQLite syncs the file only with the last page of the log, which is the writer's to copy; it shall find next to
    /// nothing left to sync, because everybody waits for it.
    fn copy(&self) -> Result<Copied, StorageError> {
        let copied = copy(&self.conn, &self.path, CheckpointMode::PASSIVE)?;
        if let Copied::Pages(_) = copied {
            let failed = |error: std::io::Error| StorageError::Io {
                path: Arc::clone(&self.path),
                detail: error.to_string(),
            };
            self.data.sync_data().map_err(failed)?;
        }
        Ok(copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_goes_on_when_a_copy_left_more_than_a_step_and_comes_back_after_a_while() {
        let (soon, late) = (Duration::from_secs(1), Duration::from_secs(11));
        let share = Until::Had(Duration::from_secs(10));
        for (until, left, had, is_over) in [
            (Until::Behind, 600, late, false),
            (Until::Behind, 601, soon, true),
            (share, 601, soon, false),
            (share, 0, late, true),
        ] {
            assert_eq!(until.is_over(left, 600, had), is_over, "{left} pages left after {had:?}");
        }
    }
}
