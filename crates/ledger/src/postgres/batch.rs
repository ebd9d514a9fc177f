//! The accepting writers: a few tasks, each with one connection at a time.
//!
//! - Whatever waits when a writer is free goes into one transaction; no timer is involved.
//! - A writer takes its batch when the one before has committed: it would only wait for the other's locks with what
//!   it took, and what comes meanwhile makes its batch longer. Whoever has to try again does it beside the next batch.
//! - A batch that met another transaction is judged again; one whose commit's answer was lost is looked up
//!   again before anybody is told anything.
//! - A frame that PostgreSQL cannot digest is tried alone, so that it spoils nobody else's.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use model::limits::WRITER_QUEUE_MAX;
use model::{ErrorCode, MessageId};
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc, oneshot};

use super::accept::{self, Look};
use super::session::Core;
use super::trouble::PostgresError;
use super::wake::Wake;
use crate::desk::Verdicts;
use crate::planted::{DEDUPE_OWN_TRANSACTION, planted};
use crate::types::accept::{Admission, LaneSubmission, Outcome};
use crate::{LinkError, StorageError};

/// One writes while another tries again.
pub(super) const WRITERS: usize = 2;
/// Messages of one transaction: bounds the time the first of them waits for the last.
const BATCH_MESSAGES_MAX: usize = 1_024;
/// How often a batch is judged again because another transaction was faster.
const RACES_MAX: usize = 8;
/// How often a lost server is looked for, before the callers are told that it is away.
const RECONNECTS_MAX: u32 = 5;
/// The first wait for a lost server; each further one doubles it.
const RECONNECT_DELAY: Duration = Duration::from_millis(100);

/// Where frames go in.
#[derive(Clone)]
pub(super) struct Queue {
    sender: mpsc::Sender<Job>,
}

/// The right to take a batch and to write it.
pub(super) type Turn = OwnedMutexGuard<mpsc::Receiver<Job>>;

pub(super) struct Job {
    lane: LaneSubmission,
    reply: oneshot::Sender<Result<Vec<Outcome>, LinkError>>,
}

impl Queue {
    /// Starts the writers; they end when the last queue is gone.
    pub fn start(core: &Arc<Core>, wake: &Wake) -> Self {
        let (sender, receiver) = mpsc::channel(WRITER_QUEUE_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..WRITERS {
            tokio::spawn(write_batches(Arc::clone(core), wake.clone(), Arc::clone(&receiver)));
        }
        Self { sender }
    }

    /// Waits for the frame's commit.
    pub async fn accept(&self, lane: LaneSubmission) -> Result<Vec<Outcome>, LinkError> {
        let (reply, answer) = oneshot::channel();
        self.sender.try_send(Job { lane, reply }).map_err(|error| {
            let detail = error.to_string();
            StorageError::Postgres(match error {
                mpsc::error::TrySendError::Full(_) => PostgresError::Busy { detail },
                mpsc::error::TrySendError::Closed(_) => PostgresError::Unreachable { detail },
            })
        })?;
        answer.await.unwrap_or_else(|_| {
            Err(StorageError::Postgres(PostgresError::Panicked { name: "ledger.accept" }).into())
        })
    }
}

async fn write_batches(core: Arc<Core>, wake: Wake, receiver: Arc<Mutex<mpsc::Receiver<Job>>>) {
    loop {
        let mut turn = Arc::clone(&receiver).lock_owned().await;
        let Some(jobs) = next_batch(&mut turn).await else { return };
        let (lanes, replies): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| (job.lane, job.reply)).unzip();
        // In a task of its own, so that a panic costs its batch and not the writer.
        let batch = tokio::spawn(settle(Arc::clone(&core), lanes, turn));
        let results = batch.await.unwrap_or_default();
        wake.committed();
        // Where the batch panicked there is no result, and the dropped reply says so.
        for (reply, result) in replies.into_iter().zip(results) {
            // A caller that went away does not want to know; what was committed stays committed.
            drop(reply.send(result));
        }
    }
}

/// Waits for one frame, then takes what else is there.
async fn next_batch(receiver: &mut mpsc::Receiver<Job>) -> Option<Vec<Job>> {
    let mut jobs = vec![receiver.recv().await?];
    let mut messages = jobs[0].lane.messages.len();
    while messages < BATCH_MESSAGES_MAX {
        let Ok(job) = receiver.try_recv() else { break };
        messages += job.lane.messages.len();
        jobs.push(job);
    }
    Some(jobs)
}

async fn settle(
    core: Arc<Core>,
    lanes: Vec<LaneSubmission>,
    turn: Turn,
) -> Vec<Result<Vec<Outcome>, LinkError>> {
    // The planted bug is one of batches side by side: its ids come too late for the next.
    let turn = Some(turn).filter(|_| !planted(DEDUPE_OWN_TRANSACTION));
    match try_together(&core, &lanes, turn).await {
        Ok(verdicts) => verdicts.into_iter().map(|verdict| verdict.map_err(LinkError::from)).collect(),
        Err(error) if lanes.len() > 1 && error.code() == ErrorCode::Internal => {
            let mut results = Vec::with_capacity(lanes.len());
            for lane in lanes {
                let alone = try_together(&core, std::slice::from_ref(&lane), None).await;
                results.push(alone.map_err(LinkError::from).and_then(|mut verdicts| Ok(verdicts.remove(0)?)));
            }
            results
        }
        Err(error) => lanes.iter().map(|_| Err(error.clone().into())).collect(),
    }
}

/// Whoever tries again does it beside the next batch.
async fn try_together(
    core: &Arc<Core>,
    lanes: &[LaneSubmission],
    mut turn: Option<Turn>,
) -> Result<Verdicts, StorageError> {
    let mut lost = HashSet::new();
    let (mut races, mut reconnects) = (0, 0);
    let mut look = Look::No;
    loop {
        let mut minted = HashSet::new();
        let error = match accept::attempt(core, lanes, &mut minted, look).await {
            Ok(Some(verdicts)) => return Ok(own(verdicts, lost)),
            Ok(None) => {
                look = Look::Yes;
                continue;
            }
            Err(error) => error,
        };
        drop(turn.take());
        look = Look::Yes;
        match &error {
            StorageError::Postgres(PostgresError::Raced { .. }) if races < RACES_MAX => races += 1,
            // The answer to a commit may be lost with the connection: whether it was done shows in the
            // dedupe table, which the next try reads first.
            StorageError::Postgres(PostgresError::Unreachable { .. }) if reconnects < RECONNECTS_MAX => {
                lost.extend(minted);
                tokio::time::sleep(RECONNECT_DELAY * 2_u32.pow(reconnects)).await;
                reconnects += 1;
            }
            _ => return Err(error),
        }
    }
}

/// A message that an earlier try of this batch committed is new, not a duplicate; a second copy in the batch is.
fn own(mut verdicts: Verdicts, mut lost: HashSet<MessageId>) -> Verdicts {
    for outcome in verdicts.iter_mut().flatten().flatten() {
        if let Outcome::Admitted { receipt, admission: admission @ Admission::Duplicate { .. } } = outcome
            && lost.remove(&receipt.broker_message_id)
        {
            *admission = Admission::New { generation: None };
        }
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use model::outbox::BrokerReceipt;
    use model::{ConversationId, Timestamp};

    use super::*;

    fn admitted(byte: u8, admission: Admission) -> Outcome {
        let receipt = BrokerReceipt {
            broker_message_id: MessageId::from_bytes([byte; 16]),
            conversation: ConversationId::from_bytes([1; 16]),
            history_id: 1,
            accepted_at: Timestamp::from_micros(1),
        };
        Outcome::Admitted { receipt, admission }
    }

    #[test]
    fn what_a_lost_try_committed_is_new_once() {
        let duplicate = Admission::Duplicate { history_available: true };
        let verdicts = vec![Ok(vec![
            admitted(1, duplicate),
            admitted(1, duplicate),
            admitted(2, duplicate),
            admitted(3, Admission::New { generation: None }),
        ])];
        let lost = HashSet::from([MessageId::from_bytes([1; 16]), MessageId::from_bytes([9; 16])]);
        let expected = vec![Ok(vec![
            admitted(1, Admission::New { generation: None }),
            admitted(1, duplicate),
            admitted(2, duplicate),
            admitted(3, Admission::New { generation: None }),
        ])];
        assert_eq!(own(verdicts, lost), expected);
    }
}
