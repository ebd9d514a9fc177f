//! Long polls: look, wait for a wake, look again, until found or the time is over.

use std::future::Future;
use std::time::Duration;

use model::limits;
use net::follow::Ear;
use net::respond::Refusal;
use net::serve::Connection;
use tokio::time::{Instant, timeout_at};

/// How long a caller may wait.
pub(super) fn bounded(seconds: Option<u64>) -> Duration {
    Duration::from_secs(seconds.unwrap_or(0)).min(limits::LONG_POLL_MAX)
}

/// Repeats `look` until it is `enough`, the time is over or the door stops; answers the last look.
pub(super) async fn look_until<T, F>(
    connection: &Connection,
    mut ear: Ear,
    wait: Duration,
    enough: impl Fn(&T) -> bool,
    mut look: impl FnMut() -> F,
) -> Result<T, Refusal>
where
    F: Future<Output = Result<T, Refusal>>,
{
    let due = Instant::now() + wait;
    loop {
        ear.reset();
        let found = look().await?;
        if enough(&found) || Instant::now() >= due || connection.stopping().is_cancelled() {
            return Ok(found);
        }
        tokio::select! {
            _ = timeout_at(due, ear.wait(limits::SAFETY_POLL_EVERY)) => {}
            () = connection.stopping().cancelled() => {}
        }
    }
}
