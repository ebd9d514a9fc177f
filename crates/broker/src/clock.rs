//! `clock_regressed`: the store's clock stands behind what it said before. Logs keep their order without it; ages,
//! deadlines and windows do not, so somebody has to look at the machine.

use std::sync::Arc;

use model::limits;
use tokio::time::Instant;

use crate::audit::Event;
use crate::broker::Shared;

/// Counts what the ledger has seen, and says so now and then.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let mut regressed = shared.ledger.clock_regressed();
    let (mut counted, mut told_at) = (0, None::<Instant>);
    loop {
        let seen = *regressed.borrow_and_update();
        if seen.messages > counted {
            shared.metrics.clock_regressed.add(seen.messages - counted);
            counted = seen.messages;
            // Each message meets the same clock: one record says as much as thousands.
            if told_at.is_none_or(|at| at.elapsed() >= limits::CLOCK_REGRESSED_TOLD_EVERY) {
                told_at = Some(Instant::now());
                tracing::warn!(
                    behind_ms = seen.by.as_millis(),
                    "clock_regressed: the store's clock went back"
                );
                Event::ClockRegressed { by: seen.by }.record();
            }
        }
        tokio::select! {
            changed = regressed.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = shared.stop.cancelled() => return,
        }
    }
}
