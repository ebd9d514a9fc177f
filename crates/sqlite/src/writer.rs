//! The one writer of a file: takes what is waiting, commits it as one transaction, then answers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::wal::CheckpointMode;

use crate::checkpoint::{self, Copied, Due, Stop, Watch};
use crate::copier::Helper;
use crate::error::Aftermath;
use crate::job::{Job, Ran, Undo};
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
    /// Nobody in inline mode: there the writer copies by itself.
    helper: Option<Helper>,
    lone: Arc<Lone>,
    /// Jobs of the transaction under way; kept for its allocation.
    batch: Vec<Box<dyn Job>>,
    /// How many transactions from now on give every job a savepoint.
    careful: u32,
    /// Callers those jobs answer.
    callers: usize,
}

impl Writer {
    pub(crate) fn new(
        mut conn: Connection,
        path: &Arc<Path>,
        bounds: Bounds,
        gauges: &Arc<Gauges>,
        stop: &Arc<Stop>,
        helper: Option<Helper>,
    ) -> Result<Self, OpenError> {
        let log_pages = Arc::new(AtomicU32::new(0));
        let told = Arc::clone(&log_pages);
        conn.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            told.store(pages.unsigned_abs(), Relaxed);
            Ok(())
        }))
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
            helper,
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
        for mut job in self.batch.drain(..) {
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
        if let Some(helper) = self.helper.take() {
            helper.join();
        }
        if self.stop.cause().is_some() {
            return;
        }
        match checkpoint::copy(&self.conn, &self.path, CheckpointMode::TRUNCATE) {
            Ok(Copied::Pages(_)) => self.remove_log_at_close(),
            Ok(Copied::NotNow) => tracing::warn!("the log is in use elsewhere and stays"),
            Err(error) => tracing::warn!(%error, "the log was left for the next start"),
        }
    }

    fn begin(&self) -> Result<(), StorageError> {
        if let Some(stopped) = self.stop.error(&self.path) {
            return Err(stopped);
        }
        self.execute(BEGIN)
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
        // SQLite gives up the whole transaction when it runs out of space or the disk fails in the
        // middle of a statement; what looks like one job's error is then everybody's.
        if self.conn.is_autocommit() {
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
        let committed = self.execute(COMMIT);
        if let Err(error) = committed {
            self.roll_back();
            return Err(match error.aftermath() {
                Aftermath::GoOn => error,
                Aftermath::Stop => {
                    let cause = self.stop.set(&error);
                    StorageError::Stopped { path: Arc::clone(&self.path), cause }
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
        match (self.due(), &self.helper) {
            (Due::Nothing, _) => false,
            (Due::Beside, Some(helper)) => {
                helper.wish();
                false
            }
            (Due::Beside, None) | (Due::Between | Due::Alone, _) => true,
        }
    }

    fn due(&mut self) -> Due {
        if self.stop.cause().is_some() {
            return Due::Nothing;
        }
        let copied = self.helper.as_ref().map_or(0, Helper::copied);
        self.watch.after(self.log_pages.load(Relaxed), copied, &self.bounds)
    }

    pub(crate) fn shorten_log(&mut self) {
        let (mode, _turn) = match (self.due(), &self.helper) {
            (Due::Nothing, _) => return,
            (Due::Beside, Some(helper)) => return helper.wish(),
            (Due::Beside, None) | (Due::Between, _) => (CheckpointMode::PASSIVE, None),
            (Due::Alone, helper) => (CheckpointMode::RESTART, helper.as_ref().map(Helper::rest)),
        };
        match checkpoint::copy(&self.conn, &self.path, mode) {
            Ok(Copied::Pages(_)) => {
                self.gauges.checkpoints_between.fetch_add(1, Relaxed);
                self.watch.copied();
            }
            Ok(Copied::NotNow) => {}
            Err(error) => checkpoint::met(&error, &self.stop),
        }
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
