//! A caller that has been the only one for a while commits on its own thread.
//!
//! Waking the writer's thread and being woken by it costs as much as the sync of a fast disk, and buys nothing when
//! nobody comes meanwhile. As soon as somebody does, or the disk takes long, the writer's thread does the work again.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// So many commits in a row had one caller each.
const COMMITS_MIN: u32 = 8;

/// How long the writer has had one caller at a time.
#[derive(Debug)]
pub(crate) struct Lone {
    commits: AtomicU32,
    commit_max: Duration,
}

impl Lone {
    /// `commit_max` is the longest a caller's thread may be expected to stand still.
    pub(crate) fn new(commit_max: Duration) -> Self {
        Self { commits: AtomicU32::new(0), commit_max }
    }

    /// Whether the next caller is likely to be the only one too.
    pub(crate) fn holds(&self) -> bool {
        self.commits.load(Relaxed) >= COMMITS_MIN
    }

    /// A commit for so many callers ended, with so many waiting for the next.
    pub(crate) fn committed(&self, callers: usize, waiting: u64, took: Duration) {
        let alone = callers == 1 && waiting == 0 && took <= self.commit_max;
        let commits = if alone { self.commits.load(Relaxed).saturating_add(1) } else { 0 };
        self.commits.store(commits, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_after_the_other_is_alone_and_anybody_else_or_a_slow_disk_ends_it() {
        let quick = Duration::from_micros(200);
        for (callers, waiting, took) in [(2, 0, quick), (1, 1, quick), (1, 0, 2 * quick)] {
            let lone = Lone::new(quick);
            for _ in 0..COMMITS_MIN {
                assert!(!lone.holds());
                lone.committed(1, 0, quick);
            }
            assert!(lone.holds());
            lone.committed(callers, waiting, took);
            assert!(!lone.holds(), "{callers} callers, {waiting} waiting, {took:?}");
        }
    }
}
