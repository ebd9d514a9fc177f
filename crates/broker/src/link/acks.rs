//! What a node says it has committed.

use std::collections::HashSet;

use ledger::{AckedRow, LinkError, ReceiptAck};
use model::{DeliveryRung, limits};
use wire::link::{Ack, AckRef, Acked, Nack};

use super::frames::frames;
use super::session::Ctx;
use super::window::DeliveryKey;

/// Records rungs; what is acknowledged makes room in the mail window.
pub(crate) async fn ack(ctx: &Ctx, rows: Vec<Ack>) -> Result<Vec<String>, LinkError> {
    let mut acked = Vec::with_capacity(rows.len());
    let read: HashSet<DeliveryKey> =
        rows.iter().filter(|ack| ack.read_at.is_some()).map(|ack| (ack.row.id, ack.row.recipient)).collect();
    for part in rows.chunks(limits::WINDOW_ROWS_MAX) {
        let told = part.iter().map(|ack| ledger::Ack {
            id: ack.row.id,
            recipient: ack.row.recipient,
            rung: ack.row.rung,
            at: ack.at,
            read_at: ack.read_at,
            place: ack.place,
        });
        acked.extend(ctx.shared.ledger.ack(&ctx.via(), told.collect()).await?);
        // `accepted` says that nothing happened: releasing it would push the row again at once.
        let reached = part.iter().filter(|ack| ack.row.rung > DeliveryRung::Accepted);
        ctx.mail.release(reached.map(|ack| (ack.row.id, ack.row.recipient)));
    }
    Ok(acked_frames(acked, &read))
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
    Ok(acked_frames(acked, &HashSet::new()))
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

/// `read` are the rows whose ack also said that they were read.
fn acked_frames(rows: Vec<AckedRow>, read: &HashSet<DeliveryKey>) -> Vec<String> {
    let acked = |row: AckedRow| Acked {
        row: AckRef { id: row.id, recipient: row.recipient, rung: row.rung },
        read: read.contains(&(row.id, row.recipient)),
    };
    frames("acked", &rows.into_iter().map(acked).collect::<Vec<_>>())
}
