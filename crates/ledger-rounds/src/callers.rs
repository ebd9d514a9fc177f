//! Callers that each ask again as soon as they are answered, for one round.

use crate::Measured;
use anyhow::Context;
use model::{ClientMessageId, Clock, OsEntropy, SystemClock};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const ROUND: Duration = Duration::from_secs(2);

/// One caller's way to ask for its `n`-th message.
pub trait Caller: Send + 'static {
    /// Asks and waits for the answer.
    fn call(&mut self, n: u64) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// Lets all callers ask, and measures every wait.
pub async fn round<C: Caller>(callers: Vec<C>) -> anyhow::Result<Measured> {
    let started_at = now();
    let mut tasks = JoinSet::new();
    for mut caller in callers {
        tasks.spawn(async move {
            let mut waits_us = Vec::with_capacity(1 << 14);
            while started_at.elapsed() < ROUND {
                let asked_at = now();
                caller.call(waits_us.len() as u64).await?;
                waits_us.push(u64::try_from(asked_at.elapsed().as_micros())?);
            }
            Ok::<_, anyhow::Error>(waits_us)
        });
    }
    let mut waits_us = Vec::new();
    while let Some(done) = tasks.join_next().await {
        waits_us.extend(done.context("a caller ended early")??);
    }
    Ok(Measured::of(waits_us, started_at.elapsed()))
}

/// An id as a daemon mints it.
pub fn id() -> ClientMessageId {
    ClientMessageId::mint(SystemClock::start().now(), &OsEntropy)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time, and this crate has no test equipment"
)]
fn now() -> Instant {
    Instant::now()
}
