//! Counters of one file's engine, for metrics and for tests that wait for a condition.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of batch-size classes: 1, 2, 3–4, 5–8, … up to 129 and more.
pub const BATCH_BUCKETS: usize = 9;

/// A reading of the counters. They are read one by one: each is right, their sum may be a moment apart. A job that many
/// callers share counts once for each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Transactions that committed.
    pub commits: u64,
    /// Jobs whose transaction committed, refused ones included.
    pub jobs: u64,
    /// Jobs that refused or panicked and were undone alone.
    pub refused: u64,
    /// Transactions lost whole.
    pub lost: u64,
    /// Jobs in the largest transaction so far.
    pub batch_jobs_peak: u64,
    /// Transactions by number of jobs, in classes that double.
    pub batches: [u64; BATCH_BUCKETS],
    /// Jobs waiting for the writer now.
    pub waiting: u64,
    /// Reads waiting for a reader now.
    pub reads_waiting: u64,
    /// Reads answered.
    pub reads: u64,
    /// Pages in the log after the last commit.
    pub wal_pages: u64,
    /// The most pages the log ever had.
    pub wal_pages_peak: u64,
    /// Checkpoints run beside the writer.
    pub checkpoints_beside: u64,
    /// Checkpoints the writer ran itself, between two batches.
    pub checkpoints_between: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) commits: AtomicU64,
    pub(crate) jobs: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) batch_jobs_peak: AtomicU64,
    pub(crate) batches: [AtomicU64; BATCH_BUCKETS],
    pub(crate) waiting: AtomicU64,
    pub(crate) reads_waiting: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) wal_pages: AtomicU64,
    pub(crate) wal_pages_peak: AtomicU64,
    pub(crate) checkpoints_beside: AtomicU64,
    pub(crate) checkpoints_between: AtomicU64,
}

impl Gauges {
    pub(crate) fn committed(&self, jobs: usize) {
        let jobs = jobs as u64;
        self.commits.fetch_add(1, Relaxed);
        self.jobs.fetch_add(jobs, Relaxed);
        self.batch_jobs_peak.fetch_max(jobs, Relaxed);
        self.batches[bucket(jobs)].fetch_add(1, Relaxed);
    }

    pub(crate) fn log_has(&self, pages: u32) {
        self.wal_pages.store(pages.into(), Relaxed);
        self.wal_pages_peak.fetch_max(pages.into(), Relaxed);
    }

    pub(crate) fn read(&self) -> Stats {
        Stats {
            commits: self.commits.load(Relaxed),
            jobs: self.jobs.load(Relaxed),
            refused: self.refused.load(Relaxed),
            lost: self.lost.load(Relaxed),
            batch_jobs_peak: self.batch_jobs_peak.load(Relaxed),
            batches: std::array::from_fn(|class| self.batches[class].load(Relaxed)),
            waiting: self.waiting.load(Relaxed),
            reads_waiting: self.reads_waiting.load(Relaxed),
            reads: self.reads.load(Relaxed),
            wal_pages: self.wal_pages.load(Relaxed),
            wal_pages_peak: self.wal_pages_peak.load(Relaxed),
            checkpoints_beside: self.checkpoints_beside.load(Relaxed),
            checkpoints_between: self.checkpoints_between.load(Relaxed),
        }
    }
}

fn bucket(jobs: u64) -> usize {
    let class = jobs.max(1).next_power_of_two().trailing_zeros() as usize;
    class.min(BATCH_BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::bucket;

    #[test]
    fn batch_sizes_fall_into_doubling_classes() {
        for (jobs, class) in
            [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (64, 6), (128, 7), (129, 8), (256, 8), (9999, 8)]
        {
            assert_eq!(bucket(jobs), class, "{jobs} jobs");
        }
    }
}
