//! Tells rooms that their logs have grown. Commits of this process ring their room themselves; those of other
//! processes, where there are any, ring nobody in particular, so the heads of all followed logs are looked at together,
//! with one read.

use std::sync::Arc;

use model::limits;
use tokio::time::{sleep, timeout};

use crate::broker::Shared;

pub(super) async fn keep(shared: &Arc<Shared>) {
    if !shared.ledger.is_shared() {
        return;
    }
    let mut committed = shared.ledger.committed();
    while !shared.stop.is_cancelled() {
        tokio::select! {
            // A lost wake costs a follower no more than the safety poll.
            woken = timeout(limits::SAFETY_POLL_EVERY, committed.changed()) => {
                if let Ok(Err(_)) = woken {
                    return;
                }
            }
            () = shared.stop.cancelled() => return,
        }
        look(shared).await;
        sleep(limits::HEADS_LOOK_EVERY).await;
    }
}

async fn look(shared: &Shared) {
    let followed = shared.rooms.followed();
    if followed.is_empty() {
        return;
    }
    match shared.ledger.heads(&followed).await {
        Ok(heads) => {
            for head in heads {
                if let Some(room) = shared.rooms.get(head.conversation)
                    && !room.has(head.epoch, head.head)
                {
                    shared.rooms.ring(head.conversation);
                }
            }
        }
        Err(error) => tracing::warn!(%error, "the heads of followed logs were not read"),
    }
}
