//! A member the broker hosts is `notified` when a live frame was handed to its own credential.
//!
//! - Recorded in batches beside the stream, which never waits for it. What is not recorded is not claimed: a rung that
//!   is missing says less than is true, never more.
//! - Several connections of one member hand out the same row; it is recorded once.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use ledger::{Ack, LinkError, Via};
use model::{Cursor, DeliveryRung, MemberId, MessageId, limits};
use tokio::sync::mpsc;

use crate::broker::Shared;

/// Rows that wait to be recorded.
const WAITING_MAX: usize = 4_096;
/// Rows remembered as recorded.
const RECENT_MAX: usize = 16_384;

type Handed = (MessageId, MemberId);

/// See the module.
pub(crate) struct Notices {
    handed: mpsc::Sender<Handed>,
    to_record: Mutex<Option<mpsc::Receiver<Handed>>>,
}

/// The rows recorded last.
#[derive(Default)]
struct Recent {
    rows: HashSet<Handed>,
    order: VecDeque<Handed>,
}

impl Default for Notices {
    fn default() -> Self {
        let (handed, to_record) = mpsc::channel(WAITING_MAX);
        Self { handed, to_record: Mutex::new(Some(to_record)) }
    }
}

impl Notices {
    /// The row before `cursor` was handed to `reader`.
    pub(super) fn handed(&self, cursor: Cursor, reader: MemberId) {
        if let Cursor::After { id, .. } = cursor {
            // Full: the ledger is busy with more than this.
            let _ = self.handed.try_send((id, reader));
        }
    }
}

impl Recent {
    fn is_new(&mut self, row: Handed) -> bool {
        let new = self.rows.insert(row);
        if new {
            self.order.push_back(row);
        }
        if self.order.len() > RECENT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.rows.remove(&oldest);
        }
        new
    }
}

/// Records what was handed out, as long as the broker runs.
pub(super) async fn keep(shared: &Shared) {
    let taken = shared.notices.to_record.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut waiting) = taken else { return };
    let (mut recent, mut batch) = (Recent::default(), Vec::new());
    loop {
        tokio::select! {
            received = waiting.recv_many(&mut batch, limits::WINDOW_ROWS_MAX) => {
                if received == 0 {
                    return;
                }
            }
            () = shared.stop.cancelled() => return,
        }
        batch.retain(|row| recent.is_new(*row));
        if let Err(error) = record(shared, &batch).await {
            tracing::warn!(%error, "live frames were not recorded as notified");
        }
        batch.clear();
    }
}

async fn record(shared: &Shared, rows: &[Handed]) -> Result<(), LinkError> {
    if rows.is_empty() {
        return Ok(());
    }
    let at = shared.ledger.now().await?;
    let ack = |(id, recipient): &Handed| Ack {
        id: *id,
        recipient: *recipient,
        rung: DeliveryRung::Notified,
        at,
        read_at: None,
    };
    shared.ledger.ack(&Via::Broker, rows.iter().map(ack).collect()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_new_once_and_the_memory_is_bounded() {
        let mut recent = Recent::default();
        let member = MemberId::from_bytes([1; 16]);
        let row = |n: u32| {
            let mut id = [0; 16];
            id[..4].copy_from_slice(&n.to_be_bytes());
            (MessageId::from_bytes(id), member)
        };
        assert!(recent.is_new(row(0)) && !recent.is_new(row(0)));
        for n in 1..=u32::try_from(RECENT_MAX).unwrap() {
            assert!(recent.is_new(row(n)));
        }
        assert_eq!(recent.rows.len(), RECENT_MAX);
        assert!(recent.is_new(row(0)), "the oldest was forgotten");
    }
}
