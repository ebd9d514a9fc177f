//! Conversations that wait for an answer.
//!
//! - The ledger writes every change as a row, in the transaction of the message that made it. So a question that was
//!   asked and answered between two looks is still told as both.
//! - A look reads the rows of the last while and tells those it has not told: rows become visible in another order than
//!   that of their instants, but never later than the overlap.
//! - A connection gets the level when it opens, then the edges.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ledger::{AskedQuestion, Escalation, StorageError};
use model::{ConversationId, MemberId, Timestamp, limits};
use tokio::sync::broadcast;
use tokio::time::{sleep, timeout};
use wire::chat::{Escalation as Told, ToSubscriber};
use wire::message::MessageFields;

use crate::broker::Shared;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is told to connections of this process.
pub(crate) struct Escalations {
    edges: broadcast::Sender<Arc<Edge>>,
    told: Mutex<Seen>,
}

/// A change, for whoever may know of it.
pub(super) struct Edge(Escalation);

/// Changes that were told, as long as a look may find them again.
struct Seen {
    told: HashMap<(ConversationId, u64), Timestamp>,
    looked_at: Timestamp,
}

impl Escalations {
    /// From now on: what stands in the ledger already is told to connections as the level.
    pub(crate) async fn open(ledger: &dyn ledger::Ledger) -> Result<Self, StorageError> {
        let now = ledger.now().await?;
        let escalations = Self {
            edges: broadcast::Sender::new(limits::ESCALATION_EDGES_MAX),
            told: Mutex::new(Seen { told: HashMap::new(), looked_at: now }),
        };
        escalations.look(ledger).await?;
        Ok(escalations)
    }

    /// Every change from now on.
    pub(super) fn edges(&self) -> broadcast::Receiver<Arc<Edge>> {
        self.edges.subscribe()
    }

    /// Tells what has not been told.
    async fn look(&self, ledger: &dyn ledger::Ledger) -> Result<(), StorageError> {
        let now = ledger.now().await?;
        let looked_at = self.told.lock().unwrap_or_else(PoisonError::into_inner).looked_at;
        // The clock may have been set back since the last look.
        let mut since = earlier(looked_at.min(now), limits::ESCALATION_OVERLAP);
        let oldest = since;
        loop {
            let rows = ledger.escalation_edges(since, limits::PAGE_ROWS_MAX).await?;
            let (full, last) = (rows.len() == limits::PAGE_ROWS_MAX, rows.last().map(|row| row.at));
            self.tell(rows);
            match last {
                Some(last) if full && last > since => since = last,
                Some(_) | None => break,
            }
        }
        let mut seen = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        seen.looked_at = now;
        seen.told.retain(|_, at| *at >= oldest);
        Ok(())
    }

    fn tell(&self, rows: Vec<Escalation>) {
        let mut seen = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            if seen.told.insert((row.conversation, row.rev), row.at).is_none() {
                // Without a connection nobody listens.
                let _ = self.edges.send(Arc::new(Edge(row)));
            }
        }
    }
}

impl Edge {
    /// Which change of which conversation.
    pub(super) fn number(&self) -> (ConversationId, u64) {
        (self.0.conversation, self.0.rev)
    }

    /// The frame for a reader; nothing when the conversation is not its to read.
    pub(super) fn frame_for(&self, reader: MemberId) -> Option<ToSubscriber> {
        let Edge(edge) = self;
        let conversation_name = edge.audience.name_to(reader)?.to_string();
        Some(match &edge.question {
            Some(question) => ToSubscriber::InputRequested(told(edge, question, conversation_name)),
            None => ToSubscriber::EscalationCleared {
                conversation_id: edge.conversation,
                conversation_name,
                rev: edge.rev,
            },
        })
    }
}

/// Everything that waits for an answer now, of what `reader` may read.
pub(super) async fn waiting(shared: &Shared, reader: MemberId) -> Result<Vec<Told>, StorageError> {
    let rows = shared.ledger.escalations(reader, limits::ESCALATIONS_MAX).await?;
    let shown = rows.iter().filter_map(|row| {
        let name = row.audience.name_to(reader)?.to_string();
        Some(told(row, row.question.as_ref()?, name))
    });
    Ok(shown.collect())
}

/// Looks whenever something was committed.
pub(super) async fn keep(shared: &Shared) {
    let mut stirred = shared.ledger.stirred();
    while !shared.stop.is_cancelled() {
        tokio::select! {
            woken = timeout(limits::SAFETY_POLL_EVERY, stirred.changed()) => {
                if let Ok(Err(_)) = woken {
                    return;
                }
            }
            () = shared.stop.cancelled() => return,
        }
        if let Err(error) = shared.escalations.look(shared.ledger.as_ref()).await {
            tracing::warn!(%error, "changes of what waits for an answer were not read");
        }
        sleep(LOOK_EVERY).await;
    }
}

fn told(row: &Escalation, question: &AskedQuestion, conversation_name: String) -> Told {
    let body = question.message.as_ref().and_then(|(_, envelope)| {
        let fields: MessageFields = serde_json::from_slice(envelope).ok()?;
        Some(fields.body.chars().take(limits::QUESTION_CHARS_MAX).collect())
    });
    Told {
        conversation_id: row.conversation,
        conversation_name,
        rev: row.rev,
        message_id: question.message.as_ref().map(|(id, _)| *id),
        history_id: question.history_id,
        sender: question.by.clone(),
        question: body.unwrap_or_default(),
        created_at: row.at,
    }
}

fn earlier(at: Timestamp, span: Duration) -> Timestamp {
    Timestamp::from_micros(at.as_micros() - i64::try_from(span.as_micros()).unwrap_or(0))
}
