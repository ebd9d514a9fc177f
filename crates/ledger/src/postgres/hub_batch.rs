//! The hub's writer: one task with one connection at a time.
//!
//! - Whatever waits when the writer is free goes into one transaction; no timer is involved.
//! - A batch that met another transaction is judged again. One whose commit's answer was lost is not: its callers
//!   are told so, and a copy under the same key finds what was done.
//! - A write that PostgreSQL cannot digest is tried alone, so that it spoils nobody else's.

use std::sync::Arc;

use ::sqlite::fault;
use model::ErrorCode;
use model::limits::{HUB_BATCH_MAX, WRITER_QUEUE_MAX};
use tokio::sync::{mpsc, oneshot};

use super::hub;
use super::session::{Core, Mode};
use super::trouble::PostgresError;
use super::wake::Wake;
use crate::StorageError;
use crate::hub::KeyRow;
use crate::planted::{IDEM_OWN_TRANSACTION, planted};
use crate::types::hub::{HubOutcome, HubWrite};

/// How often a batch is judged again because another transaction was faster.
const RACES_MAX: usize = 8;

/// Where writes go in.
#[derive(Clone)]
pub(super) struct HubQueue {
    sender: mpsc::Sender<Job>,
}

struct Job {
    write: HubWrite,
    reply: oneshot::Sender<Result<HubOutcome, StorageError>>,
}

impl HubQueue {
    /// Starts the writer; it ends when the last queue is gone.
    pub fn start(core: &Arc<Core>, wake: &Wake) -> Self {
        let (sender, receiver) = mpsc::channel(WRITER_QUEUE_MAX);
        tokio::spawn(write_batches(Arc::clone(core), wake.clone(), receiver));
        Self { sender }
    }

    /// Waits for the write's commit.
    pub async fn write(&self, write: HubWrite) -> Result<HubOutcome, StorageError> {
        let (reply, answer) = oneshot::channel();
        self.sender.try_send(Job { write, reply }).map_err(|error| {
            let detail = error.to_string();
            StorageError::Postgres(match error {
                mpsc::error::TrySendError::Full(_) => PostgresError::Busy { detail },
                mpsc::error::TrySendError::Closed(_) => PostgresError::Unreachable { detail },
            })
        })?;
        let panicked = || StorageError::Postgres(PostgresError::Panicked { name: "ledger.hub_write" });
        answer.await.unwrap_or_else(|_| Err(panicked()))
    }
}

async fn write_batches(core: Arc<Core>, wake: Wake, mut receiver: mpsc::Receiver<Job>) {
    let mut jobs = Vec::with_capacity(HUB_BATCH_MAX);
    while receiver.recv_many(&mut jobs, HUB_BATCH_MAX).await > 0 {
        let (writes, replies): (Vec<_>, Vec<_>) = jobs.drain(..).map(|job| (job.write, job.reply)).unzip();
        // In a task of its own, so that a panic costs its batch and not the writer.
        let batch = tokio::spawn(settle(Arc::clone(&core), writes));
        let results = batch.await.unwrap_or_default();
        wake.committed();
        // Where the batch panicked there is no result, and the dropped reply says so.
        for (reply, result) in replies.into_iter().zip(results) {
            // A caller that went away does not want to know; what was committed stays committed.
            drop(reply.send(result));
        }
    }
}

async fn settle(core: Arc<Core>, writes: Vec<HubWrite>) -> Vec<Result<HubOutcome, StorageError>> {
    match try_together(&core, &writes).await {
        Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
        Err(error) if writes.len() > 1 && error.code() == ErrorCode::Internal => {
            let mut results = Vec::with_capacity(writes.len());
            for write in writes {
                let alone = try_together(&core, std::slice::from_ref(&write)).await;
                results.push(alone.map(|mut outcomes| outcomes.remove(0)));
            }
            results
        }
        Err(error) => writes.iter().map(|_| Err(error.clone())).collect(),
    }
}

async fn try_together(core: &Arc<Core>, writes: &[HubWrite]) -> Result<Vec<HubOutcome>, StorageError> {
    let mut races = 0;
    loop {
        match attempt(core, writes).await {
            Err(StorageError::Postgres(PostgresError::Raced { .. })) if races < RACES_MAX => races += 1,
            result => return result,
        }
    }
}

async fn attempt(core: &Arc<Core>, writes: &[HubWrite]) -> Result<Vec<HubOutcome>, StorageError> {
    let tx = core.begin(Mode::Write).await?;
    hub::lock(&tx, writes).await?;
    let (mut outcomes, mut late) = (Vec::with_capacity(writes.len()), Vec::new());
    for write in writes {
        let (outcome, row) = hub::write(&tx, write).await?;
        match row {
            Some(row) if planted(IDEM_OWN_TRANSACTION) => late.push(row),
            Some(row) => hub::store_key(&tx, &row).await?,
            None => {}
        }
        outcomes.push(outcome);
    }
    fault::point_of("ledger.hub_write", "before_commit");
    tx.commit().await?;
    fault::point_of("ledger.hub_write", "after_commit");
    store_late(core, late).await?;
    Ok(outcomes)
}

/// The planted bug's second transaction.
async fn store_late(core: &Arc<Core>, rows: Vec<KeyRow>) -> Result<(), StorageError> {
    if rows.is_empty() {
        return Ok(());
    }
    let tx = core.begin(Mode::Write).await?;
    for row in &rows {
        hub::store_key(&tx, row).await?;
    }
    fault::point_of("ledger.hub_key", "before_commit");
    tx.commit().await
}
