//! Waiting for another process, bounded. The only place in the project that may sleep.

use crate::stopwatch::Stopwatch;
use std::time::Duration;

/// Short enough not to slow a test, long enough not to starve the two cores it waits for.
const PAUSE: Duration = Duration::from_millis(5);

/// The bound passed and the condition still did not hold.
#[derive(Debug, thiserror::Error)]
#[error("waited {bound:?} for {what}, in vain")]
pub struct WaitedTooLong {
    /// What was awaited, in the caller's words.
    pub what: String,
    /// How long it was awaited.
    pub bound: Duration,
}

/// Looks until `look` finds something or `bound` has passed; looks at least once.
///
/// For conditions in other processes only: inside one process a channel, a notification or paused time is exact.
pub fn wait_for<T>(
    what: &str,
    bound: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> Result<T, WaitedTooLong> {
    let watch = Stopwatch::start();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if watch.elapsed() >= bound {
            return Err(WaitedTooLong { what: what.to_owned(), bound });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Lets time pass, for a measurement that counts what happens meanwhile. Never to wait for something.
pub(crate) fn let_pass(span: Duration) {
    std::thread::sleep(span);
}
