//! The threads connections live on.
//!
//! A connection stays on one thread for its whole life, which reads, answers and writes: of a request nothing moves
//! between threads but to the store and back. A runtime whose threads take each other's work is busier under an uneven
//! load, and pays for it at every wake: a relay passed a fifth less at 64 callers.

use std::cell::Cell;
use std::future::pending;
use std::io;
use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use tokio::runtime::{Builder, Handle};

/// Whether the connections of this process have strands.
static WANTED: AtomicBool = AtomicBool::new(false);
/// The strands, once a door has opened; none where threads cannot be had. They end with the process, as its runtime does.
static STRANDS: OnceLock<Option<Strands>> = OnceLock::new();

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
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
