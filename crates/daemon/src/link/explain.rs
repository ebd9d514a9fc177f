//! What this node holds about a message, told to the broker when it asks. Bodies stay here.

use mailbox::{OutboxKey, OutboxRow};
use model::turn::TurnMark;
use model::{ClientMessageId, ErrorCode, MemberId, MessageId};
use serde_json::value::to_raw_value;
use sqlite::StorageError;
use tokio::sync::mpsc;
use wire::ask::{AnswerResult, NodeQuestion, NodeRecord};
use wire::link::{Answer, NodeAsk, ToBroker};
use wire::{ErrorBody, Refused};

use super::live::Live;
use super::verdict::LinkEnd;
use crate::mesh::Mesh;
use crate::view;

/// Answers one question after the other until the link is gone.
pub(super) async fn answer_all(mesh: &Mesh, live: &Live, mut asked: mpsc::Receiver<NodeAsk>) -> LinkEnd {
    while let Some(NodeAsk { n, question }) = asked.recv().await {
        let result = match held(mesh, question).await {
            Ok(records) => AnswerResult::Ok(to_raw_value(&records).expect("records are text and numbers")),
            Err(error) => {
                tracing::warn!(mesh = mesh.slug, %error, "a question of the broker could not be answered");
                let refused = Refused::plain(ErrorCode::Internal);
                let status = wire::status::http_status(refused.code);
                AnswerResult::Refused { status, error: ErrorBody::from(refused) }
            }
        };
        if live.tell(&ToBroker::Answer(Answer { n, result })).await.is_err() {
            break;
        }
    }
    // The reading half knows why the link ended.
    std::future::pending().await
}

async fn held(mesh: &Mesh, question: NodeQuestion) -> Result<Vec<NodeRecord>, StorageError> {
    let NodeQuestion::Explain { client_message_id, sender, broker_message_id } = question;
    let mut records = outbox(mesh, &client_message_id, sender).await?;
    if let Some(id) = broker_message_id {
        records.extend(inbox(mesh, id).await?);
    }
    Ok(records)
}

async fn outbox(
    mesh: &Mesh,
    id: &ClientMessageId,
    sender: Option<MemberId>,
) -> Result<Vec<NodeRecord>, StorageError> {
    let senders = mesh.everybody().into_iter().map(|member| member.id);
    let mut records = Vec::new();
    for sender in senders.filter(|member| sender.is_none_or(|sender| sender == *member)) {
        let key = OutboxKey::Client { sender, client_message_id: id.clone() };
        records.extend(mesh.mailbox.outbox_row(key).await?.map(|row| sent(mesh, row)));
    }
    Ok(records)
}

fn sent(mesh: &Mesh, row: OutboxRow) -> NodeRecord {
    NodeRecord::Outbox {
        sender: view::name_of(mesh, row.sender),
        status: row.state.status().to_string(),
        enqueued_at: row.enqueued_at,
        attempts: row.attempts,
        last_error: row.last_error,
    }
}

async fn inbox(mesh: &Mesh, id: MessageId) -> Result<Vec<NodeRecord>, StorageError> {
    let rows = mesh.mailbox.inbox_by_id(id).await?.into_iter();
    let records = rows.map(|row| NodeRecord::Inbox {
        recipient: view::name_of(mesh, row.recipient),
        received_at: row.received_at,
        rung: row.rung,
        turn: (row.turn != TurnMark::Waiting).then(|| row.turn.to_string()),
    });
    Ok(records.collect())
}
