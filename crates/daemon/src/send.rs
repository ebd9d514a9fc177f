//! Door 1: a caller's message becomes a durable row, and the answer says what is true of its id.
//!
//! - Nothing is answered before the commit; a refusal before it consumes no id.
//! - An id answers for the message it was first used for, in every state, for ever, on a full disk too.

use std::sync::Arc;

use http::StatusCode;
use mailbox::{Accepted, Member, NewRow};
use model::outbox::{Conflict, Verdict};
use model::{ClientMessageId, Deadline, ErrorCode, Fingerprint, RowId};
use net::respond::Refusal;
use net::run_to_end;
use sqlite::StorageError;
use wire::local::{Receipt, SendAnswer, SendRequest};
use wire::{Refused, written};

use crate::disk::Disk;
use crate::events::Event;
use crate::mesh::Mesh;
use crate::storage;

/// A 2xx answer with its status.
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) answer: SendAnswer,
}

/// Stores a message, and says what is true of its id then. A disk without room refuses new ids alone: an id that has a
/// row is answered from it, by a read.
pub(crate) async fn store(mesh: &Arc<Mesh>, disk: &Disk, new: NewRow) -> Result<Answered, Refusal> {
    let (sender, fingerprint) = (new.sender, new.fingerprint);
    let id = new.client_message_id.clone();
    let stored = match disk.check() {
        Ok(()) => match run_to_end(accept(mesh.clone(), new)).await {
            Err(error @ (StorageError::Full { .. } | StorageError::LogFull { .. })) => {
                Err(storage::refusal(&error))
            }
            accepted => Ok(accepted.map_err(|error| storage::refusal(&error))?),
        },
        Err(full) => Err(full),
    };
    let accepted = match stored {
        Ok(accepted) => accepted,
        Err(full) => {
            let known = mesh.mailbox.accepted_before(sender, id.clone(), fingerprint).await;
            let known = known.map_err(|error| storage::refusal(&error))?.ok_or(full)?;
            mesh.tally.sent(&known.verdict);
            known
        }
    };
    answer(mesh, id, accepted)
}

/// Stores a message and wakes the courier: the row leaves at once, whether or not its caller still waits.
async fn accept(mesh: Arc<Mesh>, new: NewRow) -> Result<Accepted, StorageError> {
    let accepted = mesh.mailbox.accept(new).await?;
    mesh.tally.sent(&accepted.verdict);
    if accepted.verdict == Verdict::Insert {
        mesh.bells.queued.ring();
        mesh.bells.moved.ring();
    }
    Ok(accepted)
}

/// The row of a message of `sender`, who is at home here: every rule of its form kept, nothing stored yet. `header` is
/// the Idempotency-Key line.
pub(crate) fn row_of(
    mesh: &Mesh,
    sender: &Member,
    request: SendRequest,
    header: Option<&str>,
) -> Result<NewRow, Refusal> {
    let now = mesh.clock.now();
    let key = request.key(header)?;
    let row = RowId::mint(now, &*mesh.entropy);
    let id = key.unwrap_or_else(|| row.into());
    let draft = match request.into_fields(id)?.into_draft(mesh.broker_now()) {
        Ok(draft) => draft,
        Err(refused) => {
            if refused.code == ErrorCode::HopLimit {
                mesh.tally.hop_limit();
                mesh.events.tell(Event::HopLimit { sender: sender.name.clone() });
            }
            return Err(refused.into());
        }
    };
    check_size(mesh, draft.body.as_str().len())?;
    let deliver_by = match draft.deadline {
        Deadline::None => None,
        Deadline::DeliverBy(at) | Deadline::Ttl { deliver_by: at, .. } => Some(at),
    };
    Ok(NewRow {
        row,
        sender: sender.id,
        client_message_id: draft.client_message_id.clone(),
        fingerprint: Fingerprint::of(&draft),
        to_asked: draft.to.to_string(),
        lane: draft.to.lane(&sender.name),
        payload: written(&draft),
        deliver_by,
        enqueued_at: now,
    })
}

/// The broker would refuse it for good, so the caller hears it now.
fn check_size(mesh: &Mesh, bytes: usize) -> Result<(), Refusal> {
    let max = mesh.terms().inline_bytes;
    if bytes <= max {
        return Ok(());
    }
    let message = format!("body has {bytes} bytes, this mesh's limit is {max}");
    Err(Refused::new(ErrorCode::TooLarge, message).with("field", "body").into())
}

/// The accept table.
fn answer(mesh: &Mesh, id: ClientMessageId, accepted: Accepted) -> Result<Answered, Refusal> {
    let Accepted { verdict, row, enqueued_at } = accepted;
    let queued = Receipt { rung: "queued".to_owned(), by: mesh.node.to_string(), at: enqueued_at };
    let waiting = |status: &str| SendAnswer {
        client_message_id: id.clone(),
        row,
        status: status.to_owned(),
        duplicate: false,
        broker_message_id: None,
        conversation: None,
        history_id: None,
        receipt: queued,
    };
    match verdict {
        Verdict::Insert | Verdict::Queued => {
            Ok(Answered { status: StatusCode::ACCEPTED, answer: waiting("queued") })
        }
        Verdict::Inflight => Ok(Answered { status: StatusCode::ACCEPTED, answer: waiting("inflight") }),
        Verdict::Duplicate(receipt) => {
            let at = receipt.accepted_at;
            let answer = SendAnswer {
                duplicate: true,
                broker_message_id: Some(receipt.broker_message_id.to_string()),
                conversation: Some(receipt.conversation.to_string()),
                history_id: Some(receipt.history_id),
                receipt: Receipt { rung: "accepted".to_owned(), by: "broker".to_owned(), at },
                ..waiting("done")
            };
            Ok(Answered { status: StatusCode::OK, answer })
        }
        Verdict::Conflict(conflict) => Err(refuse(&id, row, &conflict)),
    }
}

/// The id answers for another message, or for one that was given up.
pub(crate) fn refuse(id: &ClientMessageId, row: RowId, conflict: &Conflict) -> Refusal {
    let mut refused = Refused::plain(ErrorCode::IdempotencyKeyReused)
        .with("client_message_id", id.as_str())
        .with("conflict", conflict.text())
        .with("daemon_fingerprint_prefix", conflict.fingerprint.prefix())
        .with("row", row.to_string());
    if let Some(message) = &conflict.broker_message_id {
        refused = refused.with("broker_message_id", message.to_string());
    }
    if let Some(reason) = &conflict.reason {
        refused = refused.with("reason", reason.as_str());
    }
    refused.into()
}
