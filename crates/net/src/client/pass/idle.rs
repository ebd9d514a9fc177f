//! Connections between two requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use model::limits;
use tokio::time::Instant;

use super::line::Line;
use crate::serve::strands::here;

/// Well before the door would close it, or a request could meet the close on its way.
const KEPT: Duration = Duration::from_millis(limits::IDLE_TIMEOUT.as_millis() as u64 / 2);

/// The connections of one door that nobody uses, the last used last. Nobody reads them either: one that the other
/// side closed is found out when it is taken, or goes with its age. Each strand has its own, because a connection is
/// woken by the runtime it was made on.
#[derive(Default)]
pub(super) struct Idle([Mutex<Kept>; STRANDS]);

/// Strands beyond these share.
const STRANDS: usize = 32;

#[derive(Default)]
struct Kept {
    lines: VecDeque<(Instant, Line)>,
    swept: bool,
}

impl Idle {
    /// The one that was used last.
    pub(super) fn take(&self) -> Option<Line> {
        let mut kept = self.kept();
        let (since, line) = kept.lines.pop_back()?;
        // The others have waited longer still; the sweep takes them.
        (since.elapsed() < KEPT).then_some(line)
    }

    /// Keeps `line` for the next request.
    pub(super) fn put(self: &Arc<Self>, line: Line) {
        let mut kept = self.kept();
        kept.lines.push_back((Instant::now(), line));
        if kept.lines.len() > limits::PASS_IDLE_CONNECTIONS_MAX {
            kept.lines.pop_front();
        }
        if !std::mem::replace(&mut kept.swept, true) {
            drop(kept);
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes what is over of this strand; false when nothing is left.
    fn close_over(&self) -> bool {
        let mut kept = self.kept();
        let young = kept.lines.partition_point(|(since, _)| since.elapsed() >= KEPT);
        kept.lines.drain(..young);
        kept.swept = !kept.lines.is_empty();
        kept.swept
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Every change under the lock is complete before anything can panic.
        self.0[here() % STRANDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs while there is something to close, and somebody who may ask.
async fn sweep(idle: Weak<Idle>) {
    loop {
        tokio::time::sleep(KEPT).await;
        if !idle.upgrade().is_some_and(|idle| idle.close_over()) {
            return;
        }
    }
}
