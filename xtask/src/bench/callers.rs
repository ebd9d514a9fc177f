//! Callers that each ask again as soon as they are answered, for one round.

use super::{Measured, cpu};
use anyhow::Context;
use model::{ClientMessageId, Clock, OsEntropy, SystemClock};
use std::time::Duration;
use testkit::stopwatch::Stopwatch;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const ROUND: Duration = Duration::from_secs(2);

/// What callers run on: one thread, so that they take as little of the machine as they can from whoever answers them.
pub fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("a runtime")
}

/// One caller's way to ask for its `n`-th message.
pub trait Caller: Send + 'static {
    /// Asks and waits for the answer.
    fn call(&mut self, n: u64) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// Lets all callers ask, and measures every wait.
pub async fn round<C: Caller>(callers: Vec<C>) -> anyhow::Result<Measured> {
    let cpu_before = cpu::spent();
    let watch = Stopwatch::start();
    let mut tasks = JoinSet::new();
    for mut caller in callers {
        tasks.spawn(async move {
            let mut waits_us = Vec::with_capacity(1 << 14);
            while watch.elapsed() < ROUND {
                let asked = Stopwatch::start();
                caller.call(waits_us.len() as u64).await?;
                waits_us.push(asked.elapsed_us());
            }
            Ok::<_, anyhow::Error>(waits_us)
        });
    }
    let mut waits_us = Vec::new();
    while let Some(done) = tasks.join_next().await {
        waits_us.extend(done.context("a caller ended early")??);
    }
    let (elapsed, calls) = (watch.elapsed(), waits_us.len());
    let cpu = cpu::spent().zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
    Ok(Measured::of(waits_us, elapsed).with_cpu(cpu, calls))
}

/// An id as a daemon mints it.
pub fn id() -> ClientMessageId {
    ClientMessageId::mint(SystemClock::start().now(), &OsEntropy)
}
