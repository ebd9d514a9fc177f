//! The cursor loop against commits that come at the worst moment.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use net::follow::{Bell, Follow, Log};
use tokio::time::{Instant, timeout};

const POLL_EVERY: Duration = Duration::from_secs(1);

/// A log of numbers in commit order; the place after a row is its number.
#[derive(Clone, Default)]
struct Numbers(Arc<Mutex<Rows>>);

#[derive(Default)]
struct Rows {
    committed: Vec<u64>,
    reads: usize,
    /// Committed by the next read itself, after it has looked.
    at_next_read: Option<(u64, Option<Bell>)>,
    refuse_next: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Away;

impl Numbers {
    fn commit(&self, row: u64) {
        self.0.lock().unwrap().committed.push(row);
    }

    fn reads(&self) -> usize {
        self.0.lock().unwrap().reads
    }

    fn followed(&self, bell: &Bell) -> Follow<Numbers> {
        Follow::new(self.clone(), 0, bell.listen()).with_poll_every(POLL_EVERY)
    }
}

impl Log for Numbers {
    type Row = u64;
    type Cursor = u64;
    type Error = Away;

    async fn read_after(&mut self, cursor: &u64) -> Result<Vec<u64>, Away> {
        let (rows, late) = {
            let mut log = self.0.lock().unwrap();
            log.reads += 1;
            if std::mem::take(&mut log.refuse_next) {
                return Err(Away);
            }
            let place = log.committed.iter().position(|row| row == cursor).map_or(0, |at| at + 1);
            // A page of at most three, so that catch-up takes several.
            let rows: Vec<u64> = log.committed[place..].iter().take(3).copied().collect();
            (rows, log.at_next_read.take())
        };
        tokio::task::yield_now().await;
        if let Some((row, bell)) = late {
            self.commit(row);
            bell.inspect(Bell::ring);
        }
        Ok(rows)
    }

    fn place(&self, row: &u64) -> u64 {
        *row
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_committed_between_the_read_and_the_wait_is_found_at_once() {
    let (log, bell) = (Numbers::default(), Bell::new());
    log.0.lock().unwrap().at_next_read = Some((7, Some(bell.clone())));
    let start = Instant::now();
    assert_eq!(log.followed(&bell).next().await, Ok(vec![7]));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(log.reads(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_wake_costs_at_most_the_safety_poll() {
    let (log, bell) = (Numbers::default(), Bell::new());
    log.0.lock().unwrap().at_next_read = Some((7, None));
    let start = Instant::now();
    assert_eq!(log.followed(&bell).next().await, Ok(vec![7]));
    assert!(start.elapsed() <= POLL_EVERY + Duration::from_millis(1), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_bell_that_is_gone_leaves_the_safety_poll() {
    let log = Numbers::default();
    let mut follow = log.followed(&Bell::new());
    log.0.lock().unwrap().at_next_read = Some((7, None));
    assert_eq!(follow.next().await, Ok(vec![7]));
    assert_eq!(log.reads(), 2, "it does not spin");
}

#[tokio::test(start_paused = true)]
async fn a_ring_before_the_read_does_not_cost_a_second_read() {
    let (log, bell) = (Numbers::default(), Bell::new());
    let mut follow = log.followed(&bell);
    bell.ring();
    bell.ring();
    assert!(timeout(POLL_EVERY / 2, follow.next()).await.is_err(), "there is nothing to read");
    assert_eq!(log.reads(), 1);
}

#[tokio::test(start_paused = true)]
async fn catch_up_and_live_are_one_path_without_gap_or_repeat() {
    let (log, bell) = (Numbers::default(), Bell::new());
    (1..=7).for_each(|row| log.commit(row));
    let mut follow = log.followed(&bell);
    assert_eq!(follow.next().await, Ok(vec![1, 2, 3]));
    log.commit(8);
    assert_eq!(follow.next().await, Ok(vec![4, 5, 6]));
    assert_eq!(follow.next().await, Ok(vec![7, 8]));
    assert_eq!(*follow.cursor(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_was_given_up_loses_nothing() {
    let (log, bell) = (Numbers::default(), Bell::new());
    let mut follow = log.followed(&bell);
    assert!(timeout(POLL_EVERY / 2, follow.next()).await.is_err());
    log.commit(1);
    bell.ring();
    {
        // Given up after its first step, in the middle of the read.
        let mut begun = std::pin::pin!(follow.next());
        assert!(futures_util::poll!(begun.as_mut()).is_pending());
    }
    assert_eq!(follow.next().await, Ok(vec![1]));
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_read_says_so_and_the_cursor_stays() {
    let (log, bell) = (Numbers::default(), Bell::new());
    log.commit(1);
    log.0.lock().unwrap().refuse_next = true;
    let mut follow = log.followed(&bell);
    assert_eq!(follow.next().await, Err(Away));
    assert_eq!(follow.next().await, Ok(vec![1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_and_readers_that_join_at_any_moment_miss_and_repeat_nothing() {
    const ROWS: u64 = 4_000;
    let (log, bell) = (Numbers::default(), Bell::new());
    let next = Arc::new(Mutex::new(0));
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let (log, bell, next) = (log.clone(), bell.clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let committed = {
                        // The position is drawn under the lock that commits.
                        let mut next = next.lock().unwrap();
                        *next += 1;
                        log.commit(*next);
                        *next
                    };
                    bell.ring();
                    if committed >= ROWS {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let readers: Vec<_> = (0..8)
        .map(|_| {
            // No safety poll can help here: a lost wake would hang the reader.
            let mut follow = log.followed(&bell).with_poll_every(Duration::from_secs(3_600));
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while seen.last() < Some(&ROWS) {
                    seen.extend(follow.next().await.unwrap());
                }
                seen
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    for reader in readers {
        let seen = timeout(Duration::from_secs(60), reader).await.expect("no wake was lost").unwrap();
        assert!(seen.iter().copied().eq(1..=*seen.last().unwrap()), "in order, without gap or repeat");
    }
}
