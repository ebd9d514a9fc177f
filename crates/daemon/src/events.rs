//! What happens in a mesh beside its mail, for whoever listens right now. Nothing here is kept: a listener that
//! comes later, or falls behind, reads the store.

use model::{MemberName, RowId};
use tokio::sync::broadcast;

/// Enough for a burst; a listener further behind than this reads the store anyway.
const WAITING_MAX: usize = 256;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The link opened.
    Reconnect,
    /// The link ended.
    Disconnect { reason: String },
    /// The broker refused this node, or offers too little; nothing is tried until somebody acts.
    Parked { reason: String },
    /// An outbox row stands elsewhere.
    RowMoved { row: RowId },
    /// A chain of automatic replies was cut.
    HopLimit { sender: MemberName },
    /// The disk fills up.
    PressureHigh { percent: u8 },
}

/// Where events of a mesh are told.
pub(crate) struct Events(broadcast::Sender<Event>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING_MAX))
    }
}

impl Events {
    /// Tells whoever listens.
    pub(crate) fn tell(&self, event: Event) {
        // Nobody listening is the usual case.
        let _ = self.0.send(event);
    }

    /// Listens from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}
