//! The threads connections live on.
//!
//! A connection stays on one thread for its whole life, which reads, answers and writes: of a request nothing moves
//! between threads but to the store and back. A runtime whose threads take each other's work is busier under an uneven
//! load, and pays for it at every wake: a relay passed a fifth less at 64 callers.
//!
//! A strand with one request at a time looks for what comes next for a moment before it sleeps: falling asleep and being
//! woken costs as much as what it does for the request.

use std::cell::Cell;
use std::future::pending;
use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::Instant;

/// How long a strand looks for more: about as long as a server beside it takes to answer.
const AWAKE_FOR: Duration = Duration::from_micros(60);

/// Whether the connections of this process have strands.
static WANTED: AtomicBool = AtomicBool::new(false);
/// The strands, once a door has opened; none where threads cannot be had. They end with the process, as its runtime does.
static STRANDS: OnceLock<Option<Strands>> = OnceLock::new();

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
    static WATCH: Watch = Watch::default();
}

/// What a strand knows of its requests.
#[derive(Default)]
struct Watch {
    in_flight: Cell<usize>,
    /// When the last one began or ended.
    moved_at: Cell<Option<Instant>>,
    is_asleep: Cell<bool>,
    bell: Arc<Notify>,
}

/// One request, from its head to its answer.
pub(super) struct InFlight(());

impl InFlight {
    pub(super) fn begin() -> Self {
        WATCH.with(|watch| watch.moved(watch.in_flight.get() + 1));
        Self(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        WATCH.with(|watch| watch.moved(watch.in_flight.get().saturating_sub(1)));
    }
}

impl Watch {
    fn moved(&self, in_flight: usize) {
        self.in_flight.set(in_flight);
        if in_flight > 1 {
            return;
        }
        self.moved_at.set(Some(Instant::now()));
        if self.is_asleep.take() {
            self.bell.notify_one();
        }
    }

    fn is_awake(&self) -> bool {
        let lately = || self.moved_at.get().is_some_and(|at| at.elapsed() < AWAKE_FOR);
        self.in_flight.get() <= 1 && lately()
    }
}

/// Keeps its strand from sleeping while it is awake: whoever yields is asked again after a look at the sockets.
async fn keep_watch() {
    let bell = WATCH.with(|watch| watch.bell.clone());
    loop {
        if WATCH.with(Watch::is_awake) {
            yield_now().await;
        } else {
            WATCH.with(|watch| watch.is_asleep.set(true));
            bell.notified().await;
        }
    }
}

struct Strands {
    handles: Vec<Handle>,
    next: AtomicUsize,
}

/// Gives the connections of every door of this process one thread a core. For the binary, at its start. Without it
/// they live on the runtime that serves the door, as whoever owns that runtime's clock needs it.
pub fn spread_over_strands() {
    WANTED.store(true, Relaxed);
}

fn open_all() -> Option<Strands> {
    let count = thread::available_parallelism().map_or(1, NonZero::get);
    match (1..=count).map(open).collect::<io::Result<_>>() {
        Ok(handles) => Some(Strands { handles, next: AtomicUsize::new(0) }),
        Err(error) => {
            tracing::warn!(%error, "no threads for connections; they share the process's runtime");
            None
        }
    }
}

fn open(number: usize) -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new().name(format!("strand-{number}")).spawn(move || {
        HERE.set(number);
        runtime.spawn(keep_watch());
        runtime.block_on(pending::<()>());
    })?;
    Ok(handle)
}

/// Where the next connection lives: strands take turns.
pub(super) fn next() -> Option<&'static Handle> {
    if !WANTED.load(Relaxed) {
        return None;
    }
    let strands = STRANDS.get_or_init(open_all).as_ref()?;
    let turn = strands.next.fetch_add(1, Relaxed);
    strands.handles.get(turn % strands.handles.len())
}

/// The number of this thread's strand; zero on every other thread.
pub(crate) fn here() -> usize {
    HERE.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_awake() -> bool {
        WATCH.with(Watch::is_awake)
    }

    #[tokio::test(start_paused = true)]
    async fn a_strand_stays_awake_for_a_moment_around_one_request_and_not_among_many() {
        assert!(!is_awake(), "nothing came yet");
        let one = InFlight::begin();
        assert!(is_awake());
        tokio::time::advance(AWAKE_FOR).await;
        assert!(!is_awake(), "whatever it waits for takes long");
        drop(one);
        assert!(is_awake(), "the same caller may ask again");
        let several = [InFlight::begin(), InFlight::begin()];
        assert!(!is_awake(), "others bring the next work soon enough");
        drop(several);
        tokio::time::advance(AWAKE_FOR).await;
        assert!(!is_awake());
    }

    #[tokio::test(start_paused = true)]
    async fn a_strand_that_sleeps_is_woken_by_its_next_request() {
        let looks = tokio::task::LocalSet::new();
        looks.spawn_local(keep_watch());
        looks.run_until(yield_now()).await;
        assert!(WATCH.with(|watch| watch.is_asleep.get()));
        let request = InFlight::begin();
        looks.run_until(yield_now()).await;
        assert!(!WATCH.with(|watch| watch.is_asleep.get()), "it looks again");
        drop(request);
    }
}
