//! What a caller decides before a file is opened. Every bound has its reason beside it.

use std::path::PathBuf;
use std::time::Duration;

/// Everything [`crate::Db::open`] needs to know. Made by [`Options::new`], then adjusted field by field.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The database file. Its folder is made when missing (0700), the file too (0600).
    pub path: PathBuf,
    /// The migrations that lead to the tables this binary knows.
    pub schema: Schema,
    /// The limits of lines, batches, reads and the log.
    pub bounds: Bounds,
    /// What becomes of the bytes of deleted rows.
    pub freed: Freed,
    /// Deviations that only proofs ask for.
    #[cfg(feature = "faults")]
    pub fault: crate::fault::Disk,
}

/// A file's tables as a list of steps, and as their sum.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// In rising order of `number`, starting at 1 without gaps; a landed one is never edited.
    pub migrations: &'static [Migration],
    /// The text of the checked-in `schema.sql`; [`crate::assert_schema_sum`] compares it with the steps.
    pub sum: &'static str,
}

/// One forward step, run in a transaction of its own.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Position in the list, from 1.
    pub number: u32,
    /// A word or two for people.
    pub name: &'static str,
    /// Any number of statements, none of which begins or ends a transaction. No constraint is deferred:
    /// it would be checked at a commit that many jobs share.
    pub sql: &'static str,
}

/// What becomes of the bytes of deleted rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freed {
    /// They stay in free pages until overwritten: the cheap choice.
    Kept,
    /// They are zeroed at once (`secure_delete`), for files whose rows are scrubbed for privacy.
    Zeroed,
}

/// Limits of one file's engine.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Writes waiting for the writer; one more is refused at once instead of waiting without end.
    pub queue_max: usize,
    /// Jobs in one transaction: bounds the time the first of them waits for the last.
    pub batch_jobs_max: usize,
    /// While commits take no longer than this, a caller that has been the only one for a while commits on its own
    /// thread, which stands still so long. Zero keeps every commit on the writer's thread.
    pub lone_commit_max: Duration,
    /// Read-only connections, each with its own thread.
    pub readers: usize,
    /// More of them without a thread, for reads so small that a thread's wake would cost more than they do.
    pub readers_here: usize,
    /// Reads waiting for a reader; one more is refused at once.
    pub read_queue_max: usize,
    /// The longest a read transaction may run: an open one keeps the log from starting over.
    pub read_max: Duration,
    /// How long SQLite waits for another process's lock.
    pub busy_wait: Duration,
    /// How long an opening waits for a process that keeps a half copied log, such as a backup under way. A supervisor
    /// that starts this one again and again shall not give up before it ends.
    pub kept_index_wait_max: Duration,
    /// The second connection copies the log into the file each time it has grown by this much. A longer step syncs more
    /// at once, in the way of the commits beside it; a shorter one copies pages that change all the time more often.
    pub checkpoint_step_pages: u32,
    /// Past this the writer copies the small rest itself between two batches, so that the next
    /// transaction finds the log fully copied and writes it from the start again.
    pub wal_budget_pages: u32,
    /// Past this the log is longer than it should be: a reader keeps it, which is logged and counted. With 4-KiB pages
    /// 12,000 are 47 MiB, which leaves room for one large batch under the promised 64 MiB.
    pub wal_pages_max: u32,
    /// Past this writes are refused until the reader that keeps the log has left. A minute of sends at full rate beside
    /// a foreign read transaction fits into 4 GiB.
    pub log_pages_max: u32,
    /// The file of the log is cut to this when it starts over.
    pub log_kept_bytes: u32,
    /// Prepared statements kept per connection; more than the statements of any one file.
    pub statements_max: usize,
    /// Page cache of the writer; the upper levels of every index should fit.
    pub writer_cache_kib: u32,
    /// Page cache of each reader.
    pub reader_cache_kib: u32,
}

impl Options {
    /// The usual choices for a file at `path` with the tables of `schema`.
    pub fn new(path: impl Into<PathBuf>, schema: Schema) -> Self {
        Self {
            path: path.into(),
            schema,
            bounds: Bounds::default(),
            freed: Freed::Kept,
            #[cfg(feature = "faults")]
            fault: crate::fault::Disk::default(),
        }
    }

    /// The same with other limits.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// The same with another choice for deleted bytes.
    #[must_use]
    pub fn freed(mut self, freed: Freed) -> Self {
        self.freed = freed;
        self
    }

    /// The same on another disk, for proofs.
    #[cfg(feature = "faults")]
    #[must_use]
    pub fn fault(mut self, fault: crate::fault::Disk) -> Self {
        self.fault = fault;
        self
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            queue_max: 1024,
            batch_jobs_max: 256,
            lone_commit_max: Duration::from_millis(1),
            readers: 3,
            readers_here: 0,
            read_queue_max: 1024,
            read_max: Duration::from_secs(2),
            busy_wait: Duration::from_secs(5),
            kept_index_wait_max: Duration::from_secs(60),
            checkpoint_step_pages: 600,
            wal_budget_pages: 8_000,
            wal_pages_max: 12_000,
            log_pages_max: 1_048_576,
            log_kept_bytes: 64 << 20,
            statements_max: 128,
            writer_cache_kib: 16 * 1024,
            reader_cache_kib: 4 * 1024,
        }
    }
}
