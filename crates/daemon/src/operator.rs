//! A person gives a row another try under a new id, or retires it.
//!
//! - A row that may have left this host is replaced only after the broker said that it has no copy and never
//!   will, or by force.
//! - The courier does not touch a row while the broker is asked about it.

use mailbox::{Asking, Doubt, Held, OperatorError, Requeue, Requeued, Unsettled, Word};
use model::admission::StatusAnswer;
use model::outbox::{AbortedBy, OutboxState, Outcome};
use model::{ClientMessageId, Deadline, Draft, ErrorCode, Fingerprint, RowId, Timestamp};
use net::respond::Refusal;
use wire::local::{AbortAnswer, OutboxInspection, RequeueAnswer, RequeueRequest};
use wire::{MessageFields, Refused, written};

use crate::mesh::Mesh;
use crate::send::refuse;
use crate::{questions, storage, view};

/// Replaces a row by a successor under a new id.
pub(crate) async fn requeue(mesh: &Mesh, request: RequeueRequest) -> Result<RequeueAnswer, Refusal> {
    let row: RowId = request.id.parse()?;
    let given: Option<ClientMessageId> =
        request.new_client_message_id.as_deref().map(str::parse).transpose()?;
    let now = mesh.clock.now();
    let new_row_id = RowId::mint(now, &*mesh.entropy);
    let id = given.unwrap_or_else(|| new_row_id.into());
    let held = mesh.mailbox.hold(row, now).await.map_err(refusal)?;
    let lease = held.lease;
    let replaced = replace(mesh, held, (new_row_id, id), request).await;
    if replaced.is_err() {
        // A hold that is over already is no error, and one that stays ends by itself.
        mesh.mailbox.release(row, lease).await.map_err(|error| storage::refusal(&error))?;
        mesh.bells.queued.ring();
    }
    replaced
}

/// Retires a row at once; what the broker has of it is learnt now where there is a link, else later.
pub(crate) async fn abort(mesh: &Mesh, row: RowId) -> Result<AbortAnswer, Refusal> {
    let now = mesh.clock.now();
    let outcome = mesh.mailbox.abort(row, AbortedBy::Operator, now).await.map_err(refusal)?;
    mesh.moved(&[row]);
    // The row may have been the one its lane waited for.
    mesh.bells.queued.ring();
    let outcome = match (outcome, mesh.live()) {
        (Outcome::Unknown, Some(live)) => match questions::ask_about_ended(mesh, &live).await {
            Ok(()) => outcome_of(mesh, row).await?.unwrap_or(outcome),
            Err(end) => {
                tracing::warn!(%end, "the broker could not be asked about an aborted row");
                outcome
            }
        },
        (outcome, _) => outcome,
    };
    Ok(AbortAnswer { aborted_row_id: row, outcome: outcome.to_string() })
}

/// One row with everything about it.
pub(crate) async fn inspect(mesh: &Mesh, row: RowId) -> Result<OutboxInspection, Refusal> {
    let stored = |error| storage::refusal(&error);
    let chain = mesh.mailbox.outbox_chain(row).await.map_err(stored)?;
    let asked = chain.iter().find(|link| link.row == row).cloned();
    let asked = asked.ok_or_else(|| Refusal::plain(ErrorCode::NotFound))?;
    let payload = mesh.mailbox.outbox_payload(row).await.map_err(stored)?;
    Ok(OutboxInspection {
        request_fingerprint: asked.fingerprint.to_string(),
        deliver_by: asked.deliver_by,
        first_attempt_at: asked.first_attempt_at,
        message: payload.and_then(|payload| serde_json::from_slice(&payload).ok()),
        item: view::outbox_item(mesh, asked),
        chain: chain.into_iter().map(|row| view::outbox_item(mesh, row)).collect(),
    })
}

async fn replace(
    mesh: &Mesh,
    held: Held,
    (new_row_id, id): (RowId, ClientMessageId),
    request: RequeueRequest,
) -> Result<RequeueAnswer, Refusal> {
    let draft = successor(mesh, &held, id.clone(), request.patch_body)?;
    let word = ask(mesh, &held).await;
    let force = request.force_duplicate.unwrap_or(false);
    let fingerprint = held.row.fingerprint;
    let requeue = Requeue {
        row: held.row.row,
        lease: held.lease,
        word,
        doubt: if force { Doubt::Force } else { Doubt::Refuse },
        successor: new_row_id,
        client_message_id: id.clone(),
        fingerprint: Fingerprint::of(&draft),
        payload: written(&draft),
        deliver_by: deliver_by(&draft),
        now: mesh.clock.now(),
    };
    let requeued = mesh.mailbox.requeue(requeue).await.map_err(refusal)?;
    mesh.moved(&[held.row.row]);
    match requeued {
        Requeued::Replaced { outcome } => {
            mesh.bells.queued.ring();
            mesh.bells.ended.ring();
            Ok(RequeueAnswer {
                aborted_row_id: held.row.row,
                new_row_id,
                new_client_message_id: id,
                outcome: outcome.to_string(),
            })
        }
        Requeued::AlreadyAccepted(receipt) => {
            mesh.bells.queued.ring();
            Err(with_prefix(Refused::plain(ErrorCode::AlreadyAccepted), fingerprint)
                .with("broker_message_id", receipt.broker_message_id.to_string())
                .with("conversation", receipt.conversation.to_string())
                .with("history_id", receipt.history_id)
                .with("accepted_at", receipt.accepted_at.to_string())
                .into())
        }
        Requeued::Doubtful => Err(doubtful(word, fingerprint)),
        Requeued::IdTaken { holder, conflict } => Err(refuse(&id, holder, &conflict)),
    }
}

/// The broker's word on a held row, asked with a fence where it must be.
async fn ask(mesh: &Mesh, held: &Held) -> Word {
    let (Asking::Needed { first_attempt_at }, Some(live)) = (held.asking, mesh.live()) else {
        return Word::Silence;
    };
    let unsettled = Unsettled {
        seq: held.row.seq,
        row: held.row.row,
        sender: held.row.sender,
        client_message_id: held.row.client_message_id.clone(),
        fingerprint: held.row.fingerprint,
        first_attempt_at,
    };
    match questions::message_status(&live, &unsettled).await {
        Ok(answer) => Word::Told(answer),
        Err(error) => {
            tracing::warn!(row = %held.row.row, ?error, "the broker does not say what became of a row");
            Word::Silence
        }
    }
}

fn doubtful(word: Word, fingerprint: Fingerprint) -> Refusal {
    match word {
        Word::Silence => Refusal::new(
            ErrorCode::BrokerUnreachable,
            "Nobody can say whether the broker has it. The row stays as it is; \
             --force-duplicate accepts a possible double.",
        ),
        Word::Told(StatusAnswer::Unknown) => {
            let refused: Refusal = with_prefix(Refused::plain(ErrorCode::OutcomeUnknown), fingerprint).into();
            refused.with_status(wire::status::UNKNOWN_TO_OPERATOR)
        }
        Word::Told(
            StatusAnswer::Accepted(_)
            | StatusAnswer::AcceptedOtherFingerprint
            | StatusAnswer::Retired
            | StatusAnswer::Absent,
        ) => Refusal::plain(ErrorCode::Internal),
    }
}

/// The row's own words, or others, under the new id. A ttl runs anew: somebody asks for it now.
fn successor(mesh: &Mesh, held: &Held, id: ClientMessageId, patch: Option<String>) -> Result<Draft, Refusal> {
    let mut fields: MessageFields = serde_json::from_slice(&held.payload).map_err(|error| {
        tracing::error!(row = %held.row.row, %error, "a stored message cannot be read");
        Refusal::plain(ErrorCode::Internal)
    })?;
    fields.client_message_id = id;
    if let Some(body) = patch {
        fields.body = body;
    }
    let draft = fields.into_draft(mesh.broker_now())?;
    match draft.deadline {
        Deadline::DeliverBy(at) if at <= mesh.broker_now() => Err(Refusal::plain(ErrorCode::DeliverByPassed)),
        Deadline::None | Deadline::DeliverBy(_) | Deadline::Ttl { .. } => Ok(draft),
    }
}

fn deliver_by(draft: &Draft) -> Option<Timestamp> {
    match draft.deadline {
        Deadline::None => None,
        Deadline::DeliverBy(at) | Deadline::Ttl { deliver_by: at, .. } => Some(at),
    }
}

async fn outcome_of(mesh: &Mesh, row: RowId) -> Result<Option<Outcome>, Refusal> {
    let row = mesh.mailbox.outbox_row(mailbox::OutboxKey::Row(row)).await;
    let row = row.map_err(|error| storage::refusal(&error))?;
    Ok(row.and_then(|row| match row.state {
        OutboxState::Dead { outcome, .. } | OutboxState::Aborted { outcome, .. } => Some(outcome),
        OutboxState::Pending | OutboxState::Inflight { .. } | OutboxState::Done { .. } => None,
    }))
}

fn refusal(error: OperatorError) -> Refusal {
    let message = error.to_string();
    match error {
        OperatorError::NotFound(_) | OperatorError::Wordless(_) => Refusal::new(ErrorCode::NotFound, message),
        OperatorError::Inflight { fingerprint, .. } | OperatorError::HeldElsewhere { fingerprint, .. } => {
            with_prefix(Refused::new(ErrorCode::RowInflight, message), fingerprint).into()
        }
        OperatorError::Done { receipt, fingerprint, .. } => {
            with_prefix(Refused::new(ErrorCode::AlreadyAccepted, message), fingerprint)
                .with("broker_message_id", receipt.broker_message_id.to_string())
                .with("history_id", receipt.history_id)
                .into()
        }
        OperatorError::Aborted { successor, fingerprint, .. } => {
            let refused = with_prefix(Refused::new(ErrorCode::RowAborted, message), fingerprint);
            match successor {
                Some(row) => refused.with("superseded_by", row.to_string()).into(),
                None => refused.into(),
            }
        }
        OperatorError::Storage(error) => storage::refusal(&error),
    }
}

/// What the row was asked that a conflict is about: a caller compares it with what it would ask.
fn with_prefix(refused: Refused, fingerprint: Fingerprint) -> Refused {
    refused.with("daemon_fingerprint_prefix", fingerprint.prefix())
}
