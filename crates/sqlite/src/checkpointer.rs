//! The second connection, which copies the log into the file beside the writer, on a thread of its own.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use crate::checkpoint::{Copied, Stop, copy, met};
use crate::engine::spawn;
use crate::stats::Gauges;
use crate::{OpenError, StorageError};

/// The checkpoint thread, as the writer sees it.
pub(crate) struct Checkpointer {
    /// Room for one: a request that waits stands for all that come meanwhile.
    requests: SyncSender<()>,
    thread: JoinHandle<()>,
    progress: Arc<CheckpointProgress>,
}

/// What the second connection has done.
#[derive(Debug, Default)]
struct CheckpointProgress {
    /// Pages of the log that were in the file after the last copy.
    copied_pages: AtomicU32,
    /// Held during a copy: SQLite refuses a second checkpoint instead of letting it wait.
    turn: Mutex<()>,
}

/// The thread's own side.
struct CheckpointWorker {
    conn: Connection,
    data: Arc<File>,
    path: Arc<Path>,
    gauges: Arc<Gauges>,
    stop: Arc<Stop>,
    progress: Arc<CheckpointProgress>,
}

impl Checkpointer {
    pub(crate) fn start(
        conn: Connection,
        data: &Arc<File>,
        path: &Arc<Path>,
        gauges: &Arc<Gauges>,
        stop: &Arc<Stop>,
    ) -> Result<Self, OpenError> {
        let (requests, received) = sync_channel(1);
        let progress = Arc::new(CheckpointProgress::default());
        let worker = CheckpointWorker {
            conn,
            data: Arc::clone(data),
            path: Arc::clone(path),
            gauges: Arc::clone(gauges),
            stop: Arc::clone(stop),
            progress: Arc::clone(&progress),
        };
        let thread = spawn("sqlite-copier", path, move || worker.run(&received))?;
        Ok(Self { requests, thread, progress })
    }

    /// Asks for a copy of the log; a request that waits already is enough.
    pub(crate) fn request(&self) {
        match self.requests.try_send(()) {
            Ok(()) | Err(TrySendError::Full(())) => {}
            Err(TrySendError::Disconnected(())) => tracing::error!("the checkpoint thread has ended early"),
        }
    }

    pub(crate) fn copied_pages(&self) -> u32 {
        self.progress.copied_pages.load(Relaxed)
    }

    /// Keeps the second connection idle; nothing while it copies.
    pub(crate) fn pause(&self) -> Option<MutexGuard<'_, ()>> {
        match self.progress.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn join(self) {
        drop(self.requests);
        if self.thread.join().is_err() {
            tracing::error!("the checkpoint thread panicked");
        }
    }
}

impl CheckpointWorker {
    fn run(self, requests: &Receiver<()>) {
        while requests.recv().is_ok() {
            let _turn = self.progress.turn.lock().unwrap_or_else(PoisonError::into_inner);
            if self.stop.cause().is_some() {
                continue;
            }
            match self.copy() {
                Ok(Copied::Pages { copied, .. }) => {
                    self.progress.copied_pages.store(copied, Relaxed);
                    self.gauges.checkpoints_beside.fetch_add(1, Relaxed);
                }
                Ok(Copied::NotNow) => {}
                Err(error) => met(&error, &self.stop),
            }
        }
    }

    /// SQLite syncs the file only with the last page of the log, which the writer copies; the sync here leaves that
    /// one little to do, because every caller waits for it.
    fn copy(&self) -> Result<Copied, StorageError> {
        let copied = copy(&self.conn, &self.path, CheckpointMode::PASSIVE)?;
        if let Copied::Pages { .. } = copied {
            let failed = |error: std::io::Error| StorageError::Io {
                path: Arc::clone(&self.path),
                detail: error.to_string(),
            };
            self.data.sync_data().map_err(failed)?;
        }
        Ok(copied)
    }
}
