//! The one writer of a file: takes what is waiting, commits it as one transaction, then answers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::wal::CheckpointMode;

use crate::checkpoint::{self, Copied, Due, RESTART_WAIT, RestartTry, Stop, Watch};
use crate::checkpointer::Checkpointer;
use crate::error::Aftermath;
use crate::job::{Job, Ran, Undo};
use crate::log_index::LogIndex;
use crate::log_readers;
use crate::lone::Lone;
use crate::stats::Gauges;
use crate::wait::now;
use crate::{Bounds, OpenError, StorageError, fault, scene};

const BEGIN: &str = "BEGIN IMMEDIATE";
const READ: &str = "BEGIN";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
const SAVE: &str = "SAVEPOINT job";
const KEEP: &str = "RELEASE job";
const UNDO: &str = "ROLLBACK TO job";

/// Transactions in which every job has a savepoint, after one was lost to a job without: time for its callers to
/// come back.
const CAREFUL: u32 = 4_096;

/// Between two warnings that a reader keeps the log from starting over.
const KEPT_WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Owner of the only connection that writes rows.
pub(crate) struct Writer {
    conn: Connection,
    path: Arc<Path>,
    bounds: Bounds,
    gauges: Arc<Gauges>,
    stop: Arc<Stop>,
    /// Pages in the log as of the last commit, told by SQLite's hook.
    log_pages: Arc<AtomicU32>,
    watch: Watch,
    /// Room for the log's index, without which no transaction begins.
    index: Arc<LogIndex>,
    /// When the writer last waited for readers to leave the log.
    restart_tried_at: Option<Instant>,
    /// When a log that a reader keeps was last told to the operator.
    kept_warned_at: Option<Instant>,
    /// What SQLite's hooks see and say.
    guard: Arc<TransactionGuard>,
    /// None in inline mode: there the writer copies by itself.
    checkpointer: Option<Checkpointer>,
    lone: Arc<Lone>,
    /// Jobs of the transaction under way; kept for its allocation.
    batch: Vec<Box<dyn Job>>,
    /// How many transactions from now on give every job a savepoint.
    careful: u32,
    /// Callers those jobs answer.
    callers: usize,
}

/// Keeps SQLite's transaction and the engine's the same one, whatever a job does.
///
/// SQLite rolls a whole transaction back by itself when a read fails or memory runs out inside a statement. A job that
/// goes on then writes outside of any transaction, where each statement commits by itself.
#[derive(Debug, Default)]
struct TransactionGuard {
    /// The engine's own `COMMIT` runs: any other is turned into a rollback.
    committing: AtomicBool,
    /// SQLite has rolled a transaction back.
    rolled_back: AtomicBool,
}

impl TransactionGuard {
    fn install(conn: &mut Connection, path: &Arc<Path>) -> rusqlite::Result<Arc<Self>> {
        let guard = Arc::new(Self::default());
        let (asked, path) = (Arc::clone(&guard), Arc::clone(path));
        conn.commit_hook(Some(move || {
            !asked.committing.load(Relaxed) && !fault::planted_below(fault::GROUP_GOES_ON, &path)
        }))?;
        let told = Arc::clone(&guard);
        conn.rollback_hook(Some(move || told.rolled_back.store(true, Relaxed)))?;
        Ok(guard)
    }
}

impl Writer {
    pub(crate) fn new(
        mut conn: Connection,
        path: &Arc<Path>,
        bounds: Bounds,
        index: &Arc<LogIndex>,
        gauges: &Arc<Gauges>,
        stop: &Arc<Stop>,
        checkpointer: Option<Checkpointer>,
    ) -> Result<Self, OpenError> {
        let log_pages = Arc::new(AtomicU32::new(0));
        let told = Arc::clone(&log_pages);
        conn.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            told.store(pages.unsigned_abs(), Relaxed);
            Ok(())
        }))
        .map_err(|source| OpenError::of(Arc::clone(path), source))?;
        let guard = TransactionGuard::install(&mut conn, path)
            .map_err(|source| OpenError::of(Arc::clone(path), source))?;
        let (path, gauges, stop) = (Arc::clone(path), Arc::clone(gauges), Arc::clone(stop));
        let batch = Vec::with_capacity(bounds.batch_jobs_max);
        let watch = Watch::default();
        let lone = Arc::new(Lone::new(bounds.lone_commit_max));
        Ok(Self {
            conn,
            path,
            bounds,
            gauges,
            stop,
            log_pages,
            watch,
            index: Arc::clone(index),
            restart_tried_at: None,
            kept_warned_at: None,
            guard,
            checkpointer,
            lone,
            batch,
            careful: 0,
            callers: 0,
        })
    }

    /// Whether the next caller may commit on its own thread.
    pub(crate) fn lone(&self) -> &Arc<Lone> {
        &self.lone
    }

    /// Runs `first` and whatever `more` yields in one transaction and answers them all. The log is the caller's to
    /// shorten, when nobody waits for it.
    pub(crate) fn commit(&mut self, first: Box<dyn Job>, more: &mut dyn FnMut() -> Option<Box<dyn Job>>) {
        let began = now();
        self.gauges.waiting.fetch_sub(1, Relaxed);
        self.careful = self.careful.saturating_sub(1);
        let changes = self.conn.total_changes();
        let end = match self.begin() {
            Ok(()) => self.run_batch(first, more).and_then(|()| self.end()),
            Err(error) => {
                self.take_batch(first, more);
                Err(error)
            }
        };
        if end.is_err() {
            self.gauges.lost.fetch_add(1, Relaxed);
        }
        let callers = std::mem::take(&mut self.callers);
        // Before the answers: whoever hears one may ask again at once, and is not somebody else.
        self.lone.committed(callers, self.gauges.waiting.load(Relaxed), began.elapsed());
        let is_changed = self.conn.total_changes() != changes;
        for mut job in self.batch.drain(..) {
            // The planted bug: whoever is told so takes another id, and has then asked twice.
            if is_changed && fault::bug_in(fault::REFUSED_AND_STORED, job.name()) {
                job.answer(Err(StorageError::Busy { path: Arc::clone(&self.path) }));
            }
            job.answer(end.clone());
        }
    }

    /// Runs a small read in a transaction of its own and answers it.
    pub(crate) fn read(&self, mut job: Box<dyn Job>) {
        self.gauges.reads_waiting.fetch_sub(1, Relaxed);
        let begun = self.execute(READ);
        if begun.is_ok() {
            scene::within(&self.path, || job.run(&self.conn, Undo::Transaction));
        }
        self.roll_back();
        self.gauges.reads.fetch_add(1, Relaxed);
        job.answer(begun);
    }

    /// A last copy of the whole log, so that the file stands alone; then the connection goes. After a
    /// failed sync the log stays: it may say less than it seems to, and only a fresh start reads it from
    /// the disk.
    pub(crate) fn close(mut self) {
        if let Some(checkpointer) = self.checkpointer.take() {
            checkpointer.join();
        }
        if self.stop.cause().is_some() {
            return;
        }
        match checkpoint::copy(&self.conn, &self.path, CheckpointMode::TRUNCATE) {
            Ok(Copied::Pages { .. }) => self.remove_log_at_close(),
            Ok(Copied::NotNow) => tracing::warn!("the log is in use elsewhere and stays"),
            Err(error) => tracing::warn!(%error, "the log was left for the next start"),
        }
    }

    fn begin(&mut self) -> Result<(), StorageError> {
        if let Some(stopped) = self.stop.error(&self.path) {
            return Err(stopped);
        }
        self.index.reserve(self.log_pages.load(Relaxed))?;
        self.require_log_room()?;
        self.guard.rolled_back.store(false, Relaxed);
        self.execute(BEGIN)
    }

    /// Refuses to add to a log at its hard bound, unless it can start over by now.
    fn require_log_room(&mut self) -> Result<(), StorageError> {
        if self.log_pages.load(Relaxed) < self.bounds.log_pages_max {
            return Ok(());
        }
        self.shorten_log();
        match self.log_pages.load(Relaxed) {
            pages if pages < self.bounds.log_pages_max => Ok(()),
            pages => {
                let readers = log_readers::of(&self.index);
                Err(StorageError::LogFull { path: Arc::clone(&self.path), pages, readers })
            }
        }
    }

    fn run_batch(
        &mut self,
        first: Box<dyn Job>,
        more: &mut dyn FnMut() -> Option<Box<dyn Job>>,
    ) -> Result<(), StorageError> {
        let mut next = Some(first);
        while let Some(job) = next {
            self.run_job(job)?;
            next = self.next_of(more);
        }
        Ok(())
    }

    /// Collects a batch without running it: whoever waits now would meet the same locked file, one
    /// after the other, each for as long as SQLite waits.
    fn take_batch(&mut self, first: Box<dyn Job>, more: &mut dyn FnMut() -> Option<Box<dyn Job>>) {
        let mut next = Some(first);
        while let Some(job) = next {
            self.callers += job.callers();
            self.batch.push(job);
            next = self.next_of(more);
        }
    }

    fn next_of(&self, more: &mut dyn FnMut() -> Option<Box<dyn Job>>) -> Option<Box<dyn Job>> {
        if self.callers >= self.bounds.batch_jobs_max {
            return None;
        }
        let job = more()?;
        self.gauges.waiting.fetch_sub(1, Relaxed);
        Some(job)
    }

    /// An error here means that the transaction is lost, for this job and those before it.
    fn run_job(&mut self, mut job: Box<dyn Job>) -> Result<(), StorageError> {
        let settled = match job.undo() {
            Undo::Transaction if self.careful == 0 => self.run_checked(&mut *job),
            Undo::Transaction | Undo::Savepoint => self.run_saved(&mut *job),
        };
        self.callers += job.callers();
        self.batch.push(job);
        if settled.is_err() {
            self.roll_back();
        }
        settled
    }

    fn run_saved(&self, job: &mut dyn Job) -> Result<(), StorageError> {
        self.execute(SAVE)?;
        match self.run_alone(job, Undo::Savepoint)? {
            Ran::Kept => {}
            Ran::Refused | Ran::Panicked => {
                self.gauges.refused.fetch_add(1, Relaxed);
                self.execute(UNDO)?;
            }
        }
        self.execute(KEEP)
    }

    /// Without a savepoint: whatever the job has changed when it says no takes everybody's changes along.
    fn run_checked(&mut self, job: &mut dyn Job) -> Result<(), StorageError> {
        let before = self.conn.total_changes();
        match self.run_alone(job, Undo::Transaction)? {
            Ran::Kept => Ok(()),
            Ran::Refused | Ran::Panicked if self.conn.total_changes() == before => {
                self.gauges.refused.fetch_add(1, Relaxed);
                Ok(())
            }
            Ran::Refused | Ran::Panicked => {
                self.careful = CAREFUL;
                let name = job.name();
                tracing::error!(
                    name,
                    "a job went wrong after its first change; its transaction was rolled back"
                );
                Err(StorageError::RolledBack { path: Arc::clone(&self.path), name })
            }
        }
    }

    fn run_alone(&self, job: &mut dyn Job, within: Undo) -> Result<Ran, StorageError> {
        let name = job.name();
        let (ran, trouble) = scene::within(&self.path, || job.run(&self.conn, within));
        // SQLite gives up the whole transaction when it runs out of memory or a read fails in the
        // middle of a statement; what looks like one job's error is then everybody's.
        if self.conn.is_autocommit() || self.guard.rolled_back.load(Relaxed) {
            let unexplained = || StorageError::RolledBack { path: Arc::clone(&self.path), name };
            return Err(trouble.unwrap_or_else(unexplained));
        }
        Ok(ran)
    }

    fn end(&mut self) -> Result<(), StorageError> {
        self.answer_early();
        for job in &self.batch {
            fault::point_of(job.name(), "before_commit");
        }
        self.guard.committing.store(true, Relaxed);
        let committed = self.execute(COMMIT);
        self.guard.committing.store(false, Relaxed);
        if let Err(error) = committed {
            self.roll_back();
            return Err(match error.aftermath() {
                Aftermath::GoOn => error,
                Aftermath::Stop => {
                    let cause = self.stop.set(&error);
                    StorageError::OutcomeUnknown { path: Arc::clone(&self.path), cause }
                }
            });
        }
        for job in &self.batch {
            fault::point_of(job.name(), "after_commit");
        }
        self.gauges.committed(self.callers);
        self.gauges.log_has(self.log_pages.load(Relaxed));
        Ok(())
    }

    /// The planted bug: answers that do not wait for the sync. A crash between the two loses them.
    fn answer_early(&mut self) {
        for job in &mut self.batch {
            if fault::bug_in(fault::ANSWER_BEFORE_COMMIT, job.name()) {
                job.answer(Ok(()));
                fault::linger();
            }
        }
    }

    fn roll_back(&self) {
        if self.conn.is_autocommit() {
            return;
        }
        if let Err(error) = self.execute(ROLLBACK) {
            // An open transaction that cannot be ended must not take in the next batch.
            self.stop.set(&error);
        }
    }

    /// Has the second connection copy when that is due; true when the writer itself should.
    pub(crate) fn log_is_long(&mut self) -> bool {
        match (self.due(), &self.checkpointer) {
            (Due::Nothing, _) => false,
            (Due::Beside, Some(checkpointer)) => {
                checkpointer.request();
                false
            }
            (Due::Beside, None) | (Due::Between | Due::Restart, _) => true,
        }
    }

    fn due(&mut self) -> Due {
        if self.stop.cause().is_some() {
            return Due::Nothing;
        }
        if fault::bug(fault::WAIT_FOR_READERS) && self.log_pages.load(Relaxed) >= self.bounds.wal_pages_max {
            return Due::Restart;
        }
        let copied = self.checkpointer.as_ref().map_or(0, Checkpointer::copied_pages);
        self.watch.after(self.log_pages.load(Relaxed), copied, self.restart_try(), &self.bounds)
    }

    fn restart_try(&self) -> RestartTry {
        RestartTry::after(self.restart_tried_at.map(|at| at.elapsed()))
    }

    pub(crate) fn shorten_log(&mut self) {
        self.warn_of_kept_log();
        match (self.due(), &self.checkpointer) {
            (Due::Nothing, _) => {}
            (Due::Beside, Some(checkpointer)) => checkpointer.request(),
            (Due::Beside, None) | (Due::Between, _) => self.copy_log(),
            (Due::Restart, _) => self.restart_log(),
        }
    }

    /// Tells the operator, once an interval, that the log is longer than it should be, and because of which process.
    fn warn_of_kept_log(&mut self) {
        let pages = self.log_pages.load(Relaxed);
        let is_news = self.kept_warned_at.is_none_or(|at| at.elapsed() >= KEPT_WARNING_INTERVAL);
        if pages < self.bounds.wal_pages_max || !is_news {
            return;
        }
        self.kept_warned_at = Some(now());
        let readers: Vec<String> = log_readers::of(&self.index).iter().map(ToString::to_string).collect();
        let readers =
            if readers.is_empty() { "none that the system names".into() } else { readers.join(", ") };
        tracing::warn!(path = %self.path.display(), pages, readers, "the log cannot start over: a reader keeps it");
    }

    /// Copies the rest of the log and waits for a moment until no reader needs it: the next transaction starts it over.
    fn restart_log(&mut self) {
        self.restart_tried_at = Some(now());
        let copied = match self.checkpointer.as_ref().map(Checkpointer::pause) {
            // While the second connection copies there is nothing to wait for yet.
            Some(None) => return,
            Some(Some(_paused)) => self.copy_for_restart(),
            None => self.copy_for_restart(),
        };
        match copied {
            Ok(Copied::Pages { logged, copied }) if copied == logged => {
                self.log_pages.store(0, Relaxed);
                self.note_copied();
            }
            Ok(Copied::Pages { .. } | Copied::NotNow) => {}
            Err(error) => checkpoint::met(&error, &self.stop),
        }
    }

    fn copy_for_restart(&self) -> Result<Copied, StorageError> {
        let patient = fault::bug(fault::WAIT_FOR_READERS);
        self.set_busy_wait(if patient { self.bounds.busy_wait } else { RESTART_WAIT })?;
        let copied = checkpoint::copy(&self.conn, &self.path, CheckpointMode::RESTART);
        self.set_busy_wait(self.bounds.busy_wait)?;
        copied
    }

    fn set_busy_wait(&self, wait: Duration) -> Result<(), StorageError> {
        self.conn.busy_timeout(wait).map_err(|source| StorageError::of(Arc::clone(&self.path), source))
    }

    fn copy_log(&mut self) {
        match checkpoint::copy(&self.conn, &self.path, CheckpointMode::PASSIVE) {
            Ok(Copied::Pages { .. }) => self.note_copied(),
            Ok(Copied::NotNow) => {}
            Err(error) => checkpoint::met(&error, &self.stop),
        }
    }

    fn note_copied(&mut self) {
        self.gauges.checkpoints_between.fetch_add(1, Relaxed);
        self.watch.copied();
    }

    /// Open keeps SQLite from touching the log at close; now that it is empty it may go.
    fn remove_log_at_close(&self) {
        if let Err(error) = self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false) {
            tracing::warn!(%error, "an empty log stays");
        }
    }

    fn execute(&self, sql: &str) -> Result<(), StorageError> {
        let done = self.conn.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        match done {
            Ok(_) => Ok(()),
            Err(error) => Err(StorageError::of(Arc::clone(&self.path), error)),
        }
    }
}
