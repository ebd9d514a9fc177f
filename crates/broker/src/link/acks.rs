//! What a node says it has committed.

use ledger::{AckedRow, LinkError, ReceiptAck};
use model::{DeliveryRung, limits};
use wire::link::{Ack, AckRef, Nack};

use super::frames::frames;
use super::session::Ctx;

/// Records rungs; what is acknowledged makes room in the mail window.
pub(crate) async fn ack(ctx: &Ctx, rows: Vec<Ack>) -> Result<Vec<String>, LinkError> {
    let mut acked = Vec::with_capacity(rows.len());
    for part in rows.chunks(limits::WINDOW_ROWS_MAX) {
        let told = part.iter().map(|ack| ledger::Ack {
            id: ack.row.id,
            recipient: ack.row.recipient,
            rung: ack.row.rung,
            at: ack.at,
            read_at: None,
        });
        acked.extend(ctx.shared.ledger.ack(&ctx.via(), told.collect()).await?);
        // `accepted` says that nothing happened: releasing it would push the row again at once.
        let reached = part.iter().filter(|ack| ack.row.rung > DeliveryRung::Accepted);
        ctx.mail.release(reached.map(|ack| (ack.row.id, ack.row.recipient)));
    }
    Ok(acked_frames(acked))
}

/// Ends rows the node cannot store.
pub(crate) async fn nack(ctx: &Ctx, rows: Vec<Nack>) -> Result<Vec<String>, LinkError> {
    let mut acked = Vec::with_capacity(rows.len());
    for part in rows.chunks(limits::WINDOW_ROWS_MAX) {
        let told = part.iter().map(|nack| ledger::Nack {
            id: nack.id,
            recipient: nack.recipient,
            code: nack.code.clone(),
        });
        acked.extend(ctx.shared.ledger.nack(&ctx.link, told.collect()).await?);
        ctx.mail.release(part.iter().map(|nack| (nack.id, nack.recipient)));
    }
    Ok(acked_frames(acked))
}

/// Records which receipts the senders' node has committed.
pub(crate) async fn receipts(ctx: &Ctx, rows: Vec<AckRef>) -> Result<Vec<String>, LinkError> {
    for part in rows.chunks(limits::WINDOW_ROWS_MAX) {
        let told = part.iter().map(|row| ReceiptAck { id: row.id, recipient: row.recipient, rung: row.rung });
        ctx.shared.ledger.receipts_ack(&ctx.link, told.collect()).await?;
        ctx.receipts.release(part.iter().map(|row| (row.id, row.recipient)));
    }
    Ok(Vec::new())
}

fn acked_frames(rows: Vec<AckedRow>) -> Vec<String> {
    let rows: Vec<AckRef> =
        rows.into_iter().map(|row| AckRef { id: row.id, recipient: row.recipient, rung: row.rung }).collect();
    frames("acked", &rows)
}
