//! Rounds of callers, with the processor time that they cost all processes involved.

use super::{Measured, cpu};
use anyhow::Context;
use tokio::runtime::Runtime;

pub use ledger_rounds::{Caller, id};

/// What callers run on: one thread, so that they take as little of the machine as they can from whoever answers them.
pub fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("a runtime")
}

/// Lets all callers ask, and measures every wait.
pub async fn round<C: Caller>(callers: Vec<C>) -> anyhow::Result<Measured> {
    with_cpu(ledger_rounds::round(callers)).await
}

/// Adds the processor time of a call to a round's figures.
pub async fn with_cpu(round: impl Future<Output = anyhow::Result<Measured>>) -> anyhow::Result<Measured> {
    let before = cpu::spent();
    let measured = round.await?;
    let spent = cpu::spent().zip(before).map(|(after, before)| after.saturating_sub(before));
    Ok(measured.with_cpu(spent))
}
