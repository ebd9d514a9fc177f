//! That the store's clock went back. Places in a log rise all the same; what suffers is whatever is read by date.

use std::time::Duration;

use model::Timestamp;
use tokio::sync::watch;

use crate::rules::regressed_by;

/// What a ledger has seen of its store's clock since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regressed {
    /// Messages placed while the clock stood behind their log's last one by more than
    /// [`model::limits::CLOCK_REGRESSED_MIN`].
    pub messages: u64,
    /// How far behind it stood at the last of them.
    pub by: Duration,
}

/// Where a store notes it. What it notes was read inside a transaction, and is true however that one ends.
#[derive(Clone, Debug)]
pub(crate) struct Regressions(watch::Sender<Regressed>);

impl Regressions {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Regressed::default()))
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Regressed> {
        self.0.subscribe()
    }

    /// At `now` a message got the place `placed`.
    pub(crate) fn note(&self, now: Timestamp, placed: Timestamp) {
        if let Some(by) = regressed_by(now, placed) {
            self.0.send_modify(|seen| *seen = Regressed { messages: seen.messages + 1, by });
        }
    }
}
