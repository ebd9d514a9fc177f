//! The threads and connections behind a [`crate::Db`], from start to close.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{Builder, JoinHandle, current};

use tokio::sync::oneshot;

use crate::checkpoint::{Stop, StopListener};
use crate::checkpointer::Checkpointer;
use crate::gather::{Gathering, Line};
use crate::job::{Job, Order};
use crate::log_readers::{self, KeptLog};
use crate::lone::Lone;
use crate::open::{Hold, Opened};
use crate::reader::Reader;
use crate::stats::Gauges;
use crate::writer::Writer;
use crate::{Bounds, OpenError, Stats, StorageError};

pub(crate) struct Engine {
    path: Arc<Path>,
    bounds: Bounds,
    gauges: Arc<Gauges>,
    stop: Arc<Stop>,
    closed: AtomicBool,
    place: Place,
    /// Given back last, when no connection is open any more.
    hold: Mutex<Option<Hold>>,
}

/// Where jobs run.
enum Place {
    /// On threads of our own.
    Threads {
        writes: SyncSender<Order>,
        /// The writer's thread has it, or a lone caller.
        writer: Arc<Mutex<Option<Writer>>>,
        lone: Arc<Lone>,
        reads: SyncSender<Order>,
        /// For small reads on the calling thread.
        here: Vec<Mutex<Option<Reader>>>,
        threads: Mutex<Threads>,
    },
    /// On the calling thread, one after the other: what a simulation can repeat.
    Inline { writer: Box<Mutex<Option<Writer>>>, reader: Box<Mutex<Option<Reader>>> },
}

#[derive(Default)]
struct Threads {
    readers: Vec<JoinHandle<()>>,
    writer: Option<JoinHandle<()>>,
}

impl Engine {
    pub(crate) fn threaded(opened: Opened, bounds: Bounds) -> Result<Self, OpenError> {
        let path = Arc::clone(&opened.path);
        let (gauges, stop) = (Arc::new(Gauges::default()), Arc::new(Stop::default()));
        let (reads, read_orders) = sync_channel(bounds.read_queue_max);
        let read_orders = Arc::new(Mutex::new(read_orders));
        let mut readers = Vec::with_capacity(opened.readers.len());
        for conn in opened.readers {
            let (reader, orders) = (Reader::new(conn, &path, &bounds, &gauges)?, Arc::clone(&read_orders));
            readers.push(spawn("sqlite-reader", &path, move || reader.run(&orders))?);
        }
        let here = opened.readers_here.into_iter().map(|conn| Reader::new(conn, &path, &bounds, &gauges));
        let here = here.map(|reader| Ok(Mutex::new(Some(reader?)))).collect::<Result<Vec<_>, OpenError>>()?;
        let index = opened.hold.index();
        let checkpointer =
            Checkpointer::start(opened.checkpointer, opened.hold.data(), &path, &gauges, &stop)?;
        let writer = Writer::new(opened.writer, &path, bounds, index, &gauges, &stop, Some(checkpointer))?;
        let (lone, writer) = (Arc::clone(writer.lone()), Arc::new(Mutex::new(Some(writer))));
        let (writes, write_orders) = sync_channel(bounds.queue_max);
        let (life, waiting) = (Arc::clone(&writer), Arc::clone(&gauges));
        let thread = spawn("sqlite-writer", &path, move || run_writer(&life, &write_orders, &waiting))?;
        let threads = Mutex::new(Threads { readers, writer: Some(thread) });
        let place = Place::Threads { writes, writer, lone, reads, here, threads };
        Ok(Self::assemble(path, bounds, gauges, stop, place, opened.hold))
    }

    pub(crate) fn inline(opened: Opened, bounds: Bounds) -> Result<Self, OpenError> {
        let Opened { path, writer, checkpointer: _, mut readers, readers_here: _, hold } = opened;
        let (gauges, stop) = (Arc::new(Gauges::default()), Arc::new(Stop::default()));
        let reader = readers.pop().expect("open makes at least one reader");
        let reader = Reader::new(reader, &path, &bounds, &gauges)?;
        let writer = Writer::new(writer, &path, bounds, hold.index(), &gauges, &stop, None)?;
        let place = Place::Inline {
            writer: Box::new(Mutex::new(Some(writer))),
            reader: Box::new(Mutex::new(Some(reader))),
        };
        Ok(Self::assemble(path, bounds, gauges, stop, place, hold))
    }

    pub(crate) fn path(&self) -> &Arc<Path> {
        &self.path
    }

    pub(crate) fn stats(&self) -> Stats {
        self.gauges.read()
    }

    /// The log, when it is longer than its usual bound.
    pub(crate) fn kept_log(&self) -> Option<KeptLog> {
        let pages = u32::try_from(self.gauges.wal_pages.load(Relaxed)).unwrap_or(u32::MAX);
        if pages < self.bounds.wal_pages_max {
            return None;
        }
        let readers = held(&self.hold).as_ref().map(|hold| log_readers::of(hold.index())).unwrap_or_default();
        Some(KeptLog { path: Arc::clone(&self.path), pages, readers })
    }

    pub(crate) fn on_stop(&self, listener: StopListener) {
        self.stop.listen(listener);
    }

    /// Runs a job as a lone caller, hands it to the writer, or refuses at once.
    pub(crate) fn submit_write(&self, job: Box<dyn Job>) -> Result<(), StorageError> {
        match &self.place {
            Place::Threads { writes, .. } => match self.writer_for_one() {
                Some(writer) => {
                    self.commit_alone(writer, job);
                    Ok(())
                }
                None => self.enqueue(writes, Order::Run(job), &self.gauges.waiting, self.bounds.queue_max),
            },
            Place::Inline { writer, .. } => {
                let mut writer = held(writer);
                let writer = writer.as_mut().ok_or_else(|| self.gone())?;
                self.gauges.waiting.fetch_add(1, Relaxed);
                writer.commit(job, &mut || None);
                writer.shorten_log();
                Ok(())
            }
        }
    }

    /// The writer, for a caller that is alone: nobody waits, and nobody has come together with others lately.
    fn writer_for_one(&self) -> Option<MutexGuard<'_, Option<Writer>>> {
        let Place::Threads { writer, lone, .. } = &self.place else { return None };
        let alone = lone.holds() && self.gauges.waiting.load(Relaxed) == 0 && !self.closed.load(SeqCst);
        if alone { free(writer) } else { None }
    }

    fn commit_alone(&self, mut writer: MutexGuard<'_, Option<Writer>>, job: Box<dyn Job>) {
        let Place::Threads { writes, .. } = &self.place else { return };
        let Some(free) = writer.as_mut() else { unreachable!("only a writer that is there is free") };
        self.gauges.waiting.fetch_add(1, Relaxed);
        free.commit(job, &mut || None);
        if free.log_is_long() {
            // Refused only when others wait, after whom the thread looks at the log anyway.
            drop(self.enqueue(writes, Order::Shorten, &self.gauges.waiting, self.bounds.queue_max));
        }
    }

    /// Hands a read to the readers, or refuses at once.
    pub(crate) fn submit_read(&self, job: Box<dyn Job>) -> Result<(), StorageError> {
        match &self.place {
            Place::Threads { reads, .. } => {
                let max = self.bounds.read_queue_max;
                self.enqueue(reads, Order::Run(job), &self.gauges.reads_waiting, max)
            }
            Place::Inline { reader, .. } => {
                let mut reader = held(reader);
                let reader = reader.as_mut().ok_or_else(|| self.gone())?;
                self.gauges.reads_waiting.fetch_add(1, Relaxed);
                reader.read(job);
                Ok(())
            }
        }
    }

    /// Runs a small read on the calling thread when a connection is free for that; hands it to the readers otherwise.
    pub(crate) fn read_here(&self, job: Box<dyn Job>) -> Result<(), StorageError> {
        match self.free_here() {
            Some(mut reader) => {
                self.run_here(&mut reader, job);
                Ok(())
            }
            None => self.submit_read(job),
        }
    }

    /// [`Engine::submit_write`] for one of many callers.
    pub(crate) fn ask_writer<Q, A, E>(
        &self,
        gathering: &Gathering<Q, A, E>,
        question: Q,
    ) -> Result<oneshot::Receiver<Result<A, E>>, StorageError>
    where
        Q: Send + 'static,
        A: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let line = self.line(|gauges| &gauges.waiting, self.bounds.queue_max);
        if let Some(writer) = self.writer_for_one() {
            let (job, answer) = gathering.alone(&line, question);
            self.commit_alone(writer, job);
            return Ok(answer);
        }
        gathering.ask(&line, question, |job| self.submit_write(job))
    }

    /// [`Engine::read_here`] for one of many callers: those who find no connection free wait together. A lone caller
    /// reads where it writes: every other connection forgets its pages at every commit.
    pub(crate) fn ask_reader<Q, A, E>(
        &self,
        gathering: &Gathering<Q, A, E>,
        question: Q,
    ) -> Result<oneshot::Receiver<Result<A, E>>, StorageError>
    where
        Q: Send + 'static,
        A: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let line = self.line(|gauges| &gauges.reads_waiting, self.bounds.read_queue_max);
        if let Some(mut writer) = self.writer_for_one() {
            let (job, answer) = gathering.alone(&line, question);
            self.read_alone(&mut writer, job);
            return Ok(answer);
        }
        if let Some(mut reader) = self.free_here() {
            let (job, answer) = gathering.alone(&line, question);
            self.run_here(&mut reader, job);
            return Ok(answer);
        }
        gathering.ask(&line, question, |job| self.submit_read(job))
    }

    /// A connection for the calling thread; nothing when all are in use, or closed.
    fn free_here(&self) -> Option<MutexGuard<'_, Option<Reader>>> {
        let Place::Threads { here, .. } = &self.place else { return None };
        here.iter().find_map(free)
    }

    fn read_alone(&self, writer: &mut Option<Writer>, job: Box<dyn Job>) {
        self.gauges.reads_waiting.fetch_add(1, Relaxed);
        match writer {
            Some(writer) => writer.read(job),
            None => unreachable!("only a writer that is there is free"),
        }
    }

    fn run_here(&self, reader: &mut Option<Reader>, job: Box<dyn Job>) {
        self.gauges.reads_waiting.fetch_add(1, Relaxed);
        match reader {
            Some(reader) => reader.read(job),
            None => unreachable!("only a connection that is there is free"),
        }
    }

    fn line(&self, waiting: fn(&Gauges) -> &AtomicU64, waiting_max: usize) -> Line<'_> {
        let group_max = self.bounds.batch_jobs_max;
        Line { path: &self.path, gauges: &self.gauges, waiting, waiting_max, group_max }
    }

    /// Waits for an answer. One that never comes was dropped with the line, behind the closing order.
    pub(crate) async fn receive<T, E>(&self, answer: oneshot::Receiver<Result<T, E>>) -> Result<T, E>
    where
        E: From<StorageError>,
    {
        answer.await.unwrap_or_else(|_| Err(self.gone().into()))
    }

    /// Drains, copies the log, ends the threads, gives the lock back. A second call waits for the first.
    pub(crate) fn close(&self) {
        self.closed.store(true, SeqCst);
        match &self.place {
            Place::Threads { writes, reads, here, threads, .. } => {
                let mut threads = held(threads);
                here.iter().for_each(|reader| drop(held(reader).take()));
                let Threads { readers, writer } = std::mem::take(&mut *threads);
                for _ in &readers {
                    drop(reads.send(Order::Close));
                }
                readers.into_iter().for_each(join);
                if let Some(writer) = writer {
                    // After the readers: the connection that copies the log must be the last to close.
                    drop(writes.send(Order::Close));
                    join(writer);
                }
            }
            Place::Inline { writer, reader } => {
                drop(held(reader).take());
                if let Some(writer) = held(writer).take() {
                    writer.close();
                }
            }
        }
        drop(held(&self.hold).take());
    }

    /// Ends as a killed process would: what waits is refused and the log stays as it is.
    #[cfg(feature = "faults")]
    pub(crate) fn abandon(&self) {
        self.stop.set(&self.gone());
        self.close();
    }

    fn assemble(
        path: Arc<Path>,
        bounds: Bounds,
        gauges: Arc<Gauges>,
        stop: Arc<Stop>,
        place: Place,
        hold: Hold,
    ) -> Self {
        let (closed, hold) = (AtomicBool::new(false), Mutex::new(Some(hold)));
        Self { path, bounds, gauges, stop, closed, place, hold }
    }

    fn enqueue(
        &self,
        line: &SyncSender<Order>,
        order: Order,
        waiting: &AtomicU64,
        waiting_max: usize,
    ) -> Result<(), StorageError> {
        if self.closed.load(SeqCst) {
            return Err(self.gone());
        }
        // Counted before it can be taken out, so that the count never falls below zero.
        waiting.fetch_add(1, Relaxed);
        let refused = match line.try_send(order) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Full(_)) => {
                StorageError::QueueFull { path: Arc::clone(&self.path), waiting_max }
            }
            Err(TrySendError::Disconnected(_)) => self.gone(),
        };
        waiting.fetch_sub(1, Relaxed);
        Err(refused)
    }

    fn gone(&self) -> StorageError {
        let closed = || StorageError::Closed { path: Arc::clone(&self.path) };
        self.stop.error(&self.path).unwrap_or_else(closed)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}

/// A thread of the engine of `path`.
pub(crate) fn spawn(
    name: &str,
    path: &Path,
    life: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, OpenError> {
    Builder::new().name(name.into()).spawn(life).map_err(|source| OpenError::of_system(path, source))
}

fn join(thread: JoinHandle<()>) {
    // A job may own the last handle; its thread cannot wait for itself, and ends right after.
    if thread.thread().id() != current().id() && thread.join().is_err() {
        tracing::error!("a thread of the engine panicked");
    }
}

/// The life of the writer's thread.
fn run_writer(writer: &Mutex<Option<Writer>>, orders: &Receiver<Order>, gauges: &Gauges) {
    let mut open = true;
    while open && let Ok(order) = orders.recv() {
        let mut writer = held(writer);
        let Some(writer) = writer.as_mut() else { return };
        let mut next = Some(order);
        let mut jobs = || loop {
            match next.take().or_else(|| orders.try_recv().ok())? {
                Order::Run(job) => return Some(job),
                // After every batch the log is looked at.
                Order::Shorten => drop(gauges.waiting.fetch_sub(1, Relaxed)),
                Order::Close => {
                    open = false;
                    return None;
                }
            }
        };
        if let Some(first) = jobs() {
            writer.commit(first, &mut jobs);
        }
        writer.shorten_log();
    }
    if let Some(writer) = held(writer).take() {
        writer.close();
    }
}

/// What is there and in nobody's hands.
fn free<T>(mutex: &Mutex<Option<T>>) -> Option<MutexGuard<'_, Option<T>>> {
    match mutex.try_lock() {
        Ok(held) => held.is_some().then_some(held),
        Err(TryLockError::Poisoned(held)) => Some(held.into_inner()).filter(|held| held.is_some()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half-done behind these locks: jobs catch their panics before they get here.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
