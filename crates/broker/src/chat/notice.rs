//! A member the broker hosts is `notified` when a live frame was handed to its own credential.
//!
//! - Recorded in batches beside the stream, which never waits for it. What is not recorded is not claimed: a rung that
//!   is missing says less than is true, never more.
//! - Several connections of one member hand out the same row; it is recorded once, and noted by the first alone.

use std::collections::{HashMap, HashSet, VecDeque};
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

/// The rows of one log that members were handed, a run of numbers each: connections hand rows out without gaps.
#[derive(Default)]
pub(super) struct Runs(HashMap<MemberId, (u64, u64)>);

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

impl Runs {
    /// Whether all of these are in the member's run already.
    pub(super) fn has_all(&self, member: MemberId, first: u64, last: u64) -> bool {
        self.0.get(&member).is_some_and(|(low, high)| *low <= first && last <= *high)
    }

    /// Adds a row; false when it is in the member's run already. What is far from the run may be new again.
    pub(super) fn is_new(&mut self, member: MemberId, seq: u64) -> bool {
        let (low, high) = self.0.entry(member).or_insert((seq + 1, seq));
        if (*low..=*high).contains(&seq) {
            return false;
        }
        if seq > *high {
            *low = if seq == *high + 1 { *low } else { seq };
            *high = seq;
        } else if seq + 1 == *low {
            *low = seq;
        }
        true
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
        place: None,
    };
    shared.ledger.ack(&Via::Broker, rows.iter().map(ack).collect()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_noted_by_the_first_connection_of_its_member_and_none_is_left_out() {
        let (jane, carl) = (MemberId::from_bytes([1; 16]), MemberId::from_bytes([2; 16]));
        let mut runs = Runs::default();
        let steps = [
            (jane, 7, true),
            (jane, 7, false),
            (jane, 8, true),
            (carl, 8, true),
            (jane, 6, true),
            (jane, 6, false),
            // A connection that is far behind: its rows were handed to nobody yet.
            (jane, 3, true),
            (jane, 4, true),
            (jane, 8, false),
            (jane, 20, true),
            (jane, 20, false),
            (jane, 19, true),
        ];
        for (member, seq, new) in steps {
            assert_eq!(runs.has_all(member, seq, seq), !new, "{seq}");
            assert_eq!(runs.is_new(member, seq), new, "{seq}");
        }
    }

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
