//! An operator makes room: payloads of rows that have ended go before their time, their ids stay.

use mailbox::{EndedRows, PayloadCount};
use model::ErrorCode;
use model::outbox::Status;
use net::respond::Refusal;
use wire::local::{PruneAnswer, PruneRequest, PrunedPayloads};

use crate::ground::Ground;
use crate::storage;

/// Frees what the request names, or says what would be freed.
pub(crate) async fn prune(ground: &Ground, request: PruneRequest) -> Result<PruneAnswer, Refusal> {
    let mesh = ground.mesh(request.mesh.as_deref())?;
    let only = request.status.as_deref().map(ended_rows).transpose()?;
    let now = mesh.clock.now();
    let stored = |error| storage::refusal(&error);
    let mut answer = PruneAnswer {
        mesh: mesh.slug.clone(),
        pruned: request.confirm,
        done: PrunedPayloads::default(),
        dead: PrunedPayloads::default(),
        aborted: PrunedPayloads::default(),
        total: PrunedPayloads::default(),
        disk_percent: 0,
        reusable_bytes: 0,
    };
    for ended in EndedRows::ALL.into_iter().filter(|ended| only.is_none_or(|only| only == *ended)) {
        let count = if request.confirm {
            mesh.mailbox.prune_outbox(ended, now).await.map_err(stored)?
        } else {
            mesh.mailbox.prunable(ended).await.map_err(stored)?
        };
        let PayloadCount { rows, bytes } = count;
        let place = match ended {
            EndedRows::Done => &mut answer.done,
            EndedRows::Dead => &mut answer.dead,
            EndedRows::Aborted => &mut answer.aborted,
        };
        *place = PrunedPayloads { rows, bytes };
        answer.total.rows += rows;
        answer.total.bytes += bytes;
    }
    if answer.pruned {
        let PrunedPayloads { rows, bytes } = answer.total;
        tracing::info!(mesh = mesh.slug, rows, bytes, "payloads of ended rows were freed, their ids stay");
    }
    // New sends need not wait for the next look.
    ground.look_at_disk().await;
    answer.disk_percent = ground.disk.percent();
    answer.reusable_bytes = mesh.mailbox.bytes_reusable().await.map_err(stored)?;
    Ok(answer)
}

fn ended_rows(text: &str) -> Result<EndedRows, Refusal> {
    let status: Status = text.parse()?;
    EndedRows::of(status).ok_or_else(|| {
        let message = format!("status must be done, dead or aborted; a row that is {status} keeps its words");
        Refusal::new(ErrorCode::InvalidRequest, message)
    })
}
