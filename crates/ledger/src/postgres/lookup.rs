//! Look-ups of ids (B0) of many callers as one statement.
//!
//! Whatever waits when a reader is free is asked together; no timer is involved. A look-up only optimises: whether an
//! id is taken is decided by the key inside the accept transaction.

use std::collections::HashMap;
use std::sync::Arc;

use model::admission::Known;
use model::limits::WRITER_QUEUE_MAX;
use model::{ClientMessageId, MemberId};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_postgres::Row;

use super::row::{id, text};
use super::session::Core;
use super::trouble::PostgresError;
use super::{sql, status};
use crate::StorageError;

/// Callers who were answered together ask together again: a second reader would take half of them.
pub(super) const READERS: usize = 1;
/// Look-ups of one statement: a frame each, so at most some thousand ids.
const BATCH_MAX: usize = 128;

/// Where look-ups go in.
#[derive(Clone)]
pub(super) struct LookUps {
    waiting: mpsc::Sender<Job>,
}

struct Job {
    sender: MemberId,
    ids: Vec<ClientMessageId>,
    reply: oneshot::Sender<Answer>,
}

/// What is known of ids, by their senders; nothing of those nobody knows.
pub(super) type Found = HashMap<(MemberId, ClientMessageId), Known>;

/// One per id.
type Answer = Result<Vec<Option<Known>>, StorageError>;

impl LookUps {
    /// Starts the readers; they end when the last handle is gone.
    pub fn start(core: &Arc<Core>) -> Self {
        let (waiting, jobs) = mpsc::channel(WRITER_QUEUE_MAX);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..READERS {
            tokio::spawn(read_batches(Arc::clone(core), Arc::clone(&jobs)));
        }
        Self { waiting }
    }

    /// What is known of a sender's ids.
    pub async fn known(&self, sender: MemberId, ids: &[ClientMessageId]) -> Answer {
        let (reply, answer) = oneshot::channel();
        let job = Job { sender, ids: ids.to_vec(), reply };
        self.waiting.try_send(job).map_err(|error| {
            let detail = error.to_string();
            match error {
                mpsc::error::TrySendError::Full(_) => PostgresError::Busy { detail },
                mpsc::error::TrySendError::Closed(_) => PostgresError::Unreachable { detail },
            }
        })?;
        answer.await.unwrap_or(Err(StorageError::Postgres(PostgresError::Panicked { name: "ledger.known" })))
    }
}

async fn read_batches(core: Arc<Core>, waiting: Arc<Mutex<mpsc::Receiver<Job>>>) {
    loop {
        let mut jobs = Vec::new();
        if waiting.lock().await.recv_many(&mut jobs, BATCH_MAX).await == 0 {
            return;
        }
        // In a task of its own, so that a panic costs its batch and not the reader.
        let core = Arc::clone(&core);
        // Where it panicked the replies were dropped, and that says so.
        let _panicked = tokio::spawn(async move { answer(&core, jobs).await }).await;
    }
}

async fn answer(core: &Core, jobs: Vec<Job>) {
    let found = read(core, &jobs).await;
    for Job { sender, ids, reply } in jobs {
        let known = found.as_ref().map_err(StorageError::clone);
        let known = known.map(|found| ids.into_iter().map(|id| found.get(&(sender, id)).copied()).collect());
        // A caller that went away does not want to know.
        drop(reply.send(known));
    }
}

async fn read(core: &Core, jobs: &[Job]) -> Result<Found, StorageError> {
    let asked = jobs.iter().flat_map(|job| job.ids.iter().map(|id| (job.sender.as_uuid(), id.as_str())));
    let (senders, ids): (Vec<_>, Vec<_>) = asked.unzip();
    found(&core.look_up(sql!("accept_known"), &[&senders, &ids]).await?)
}

/// The rows of `accept_known`.
pub(super) fn found(rows: &[Row]) -> Result<Found, StorageError> {
    rows.iter().map(|row| Ok(((id(row, 0)?, text(row, 1)?), status::read(row, 2)?))).collect()
}
