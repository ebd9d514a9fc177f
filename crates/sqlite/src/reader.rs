//! Read-only connections: one bounded transaction per read, so that no reader keeps the log from starting
//! over for longer than the bound.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::job::{Job, Order, Undo};
use crate::stats::Gauges;
use crate::wait::now;
use crate::{Bounds, OpenError, StorageError, scene};

/// SQLite looks at the time every so many steps of its machine: some tens of microseconds.
const STEPS_PER_LOOK: i32 = 2_000;

pub(crate) struct Reader {
    conn: Connection,
    path: Arc<Path>,
    limit: Duration,
    gauges: Arc<Gauges>,
    deadline: Arc<Deadline>,
}

/// When the running read must end, shared with the hook inside SQLite.
struct Deadline {
    origin: Instant,
    until_us: AtomicU64,
    passed: AtomicBool,
}

impl Reader {
    pub(crate) fn new(
        mut conn: Connection,
        path: &Arc<Path>,
        bounds: &Bounds,
        gauges: &Arc<Gauges>,
    ) -> Result<Self, OpenError> {
        let deadline = Arc::new(Deadline::new());
        let watched = Arc::clone(&deadline);
        conn.progress_handler(STEPS_PER_LOOK, Some(move || watched.is_over()))
            .map_err(|source| OpenError::of(Arc::clone(path), source))?;
        let (path, gauges) = (Arc::clone(path), Arc::clone(gauges));
        Ok(Self { conn, path, limit: bounds.read_max, gauges, deadline })
    }

    /// The life of a reader thread; the line is shared by all of them.
    pub(crate) fn run(mut self, orders: &Mutex<Receiver<Order>>) {
        loop {
            let order = orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
            match order {
                Ok(Order::Run(job)) => self.read(job),
                Ok(Order::Shorten) => {}
                Ok(Order::Close) | Err(_) => return,
            }
        }
    }

    /// Runs one read in a transaction of its own and answers it.
    pub(crate) fn read(&mut self, mut job: Box<dyn Job>) {
        self.gauges.reads_waiting.fetch_sub(1, Relaxed);
        self.deadline.set(self.limit);
        let begun = self.execute("BEGIN");
        if begun.is_ok() {
            scene::within(&self.path, || job.run(&self.conn, Undo::Transaction));
        }
        self.deadline.clear();
        let end =
            begun.and_then(|()| if self.conn.is_autocommit() { Ok(()) } else { self.execute("ROLLBACK") });
        let end = if self.deadline.passed.load(Relaxed) {
            Err(StorageError::ReadTooLong {
                path: Arc::clone(&self.path),
                name: job.name(),
                limit: self.limit,
            })
        } else {
            end
        };
        self.gauges.reads.fetch_add(1, Relaxed);
        job.answer(end);
    }

    fn execute(&self, sql: &str) -> Result<(), StorageError> {
        let done = self.conn.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(|error| StorageError::of(Arc::clone(&self.path), error))
    }
}

impl Deadline {
    fn new() -> Self {
        Self { origin: now(), until_us: AtomicU64::new(u64::MAX), passed: AtomicBool::new(false) }
    }

    fn set(&self, limit: Duration) {
        self.passed.store(false, Relaxed);
        self.until_us.store(micros(self.origin.elapsed() + limit), Relaxed);
    }

    fn clear(&self) {
        self.until_us.store(u64::MAX, Relaxed);
    }

    fn is_over(&self) -> bool {
        let over = micros(self.origin.elapsed()) > self.until_us.load(Relaxed);
        if over {
            self.passed.store(true, Relaxed);
        }
        over
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
