//! Older files put back: an inbox that holds less than it told is sent what it lacks, and books that lack what a node
//! knows name the time they lost.

use model::DeliveryRung;
use uuid::Uuid;

use super::link::LinkNode;
use super::row::{at, bound, code, count};
use super::session::Tx;
use super::{sql, window};
use crate::StorageError;
use crate::rules::{InboxFile, InboxMark, Testimony, inbox_mark, place_number, work_kept_since};
use crate::types::wayin::{InboxWentBack, LedgerWentBack};
use crate::types::window::MailRow;

/// Notes how much the inbox holds; when that is less than before, everything it may lack is marked.
pub(super) async fn note_inbox(
    tx: &Tx,
    node: &LinkNode,
    file: InboxFile,
    told: Option<u64>,
) -> Result<Option<InboxWentBack>, StorageError> {
    let mut went_back = node.went_back;
    match inbox_mark(node.received_upto, told, file) {
        InboxMark::Kept { upto } if upto == node.received_upto => {}
        InboxMark::Kept { upto } => {
            tx.change(sql!("inbox_received"), &[&node.number, &place_number(upto)]).await?;
        }
        InboxMark::WentBack { from, to } => {
            let last = tx.one(sql!("message_last_number"), &[]).await?;
            let last: i64 = last.map_or(Ok(0), |row| row.try_get(0))?;
            let (first, behind) = (place_number(from), place_number(to));
            let noted = tx.now.as_micros();
            tx.change(sql!("inbox_went_back"), &[&node.number, &first, &behind, &noted]).await?;
            tx.change(sql!("node_redelivered"), &[&node.number, &last]).await?;
            tx.change(sql!("again_mark"), &[&node.number, &behind, &work_kept_since(tx.now)]).await?;
            went_back = Some(InboxWentBack { noticed_at: tx.now, from, to, left: 0 });
        }
    }
    let Some(went_back) = went_back else { return Ok(None) };
    let left = tx.one(sql!("again_count"), &[&node.number]).await?;
    let left = left.map_or(Ok(0), |row| count(&row, 0))?;
    Ok(Some(InboxWentBack { left, ..went_back }))
}

/// What is to be sent again to members at home at a node, oldest first.
pub(super) async fn again(
    tx: &Tx,
    node: &LinkNode,
    (messages, recipients): (&[Uuid], &[Uuid]),
    limit: usize,
) -> Result<Vec<MailRow>, StorageError> {
    if node.went_back.is_none() {
        return Ok(Vec::new());
    }
    let rows = tx.all(sql!("mail_again"), &[&node.number, &messages, &recipients, &bound(limit)]).await?;
    let again = rows.iter().map(|row| {
        let again = Some(code(row, 15, DeliveryRung::from_code)?);
        Ok(MailRow { redelivered: true, again, ..window::mail_row(row, 0)? })
    });
    again.collect()
}

/// Notes what a node's witnesses say of the books; answers with the last loss there was.
pub(super) async fn note_books(
    tx: &Tx,
    testimony: &Testimony,
    noticed_by: &str,
) -> Result<Option<LedgerWentBack>, StorageError> {
    let last = last_loss(tx).await?;
    if !testimony.is_news(last.as_ref().map(|last| last.upto)) {
        return Ok(last);
    }
    // Other processes wrote to this database too, so its end before the loss is known by witnesses alone.
    let ends_at = testimony.held_upto.or(testimony.missing_from).unwrap_or(tx.now);
    let loss =
        LedgerWentBack { noticed_at: tx.now, ends_at, upto: tx.now, noticed_by: noticed_by.to_owned() };
    let (noted, ends_at) = (loss.noticed_at.as_micros(), loss.ends_at.as_micros());
    tx.change(sql!("went_back_insert"), &[&noted, &ends_at, &loss.upto.as_micros(), &noticed_by]).await?;
    Ok(Some(loss))
}

/// The last time the books were found older than they had been.
async fn last_loss(tx: &Tx) -> Result<Option<LedgerWentBack>, StorageError> {
    let Some(row) = tx.one(sql!("went_back"), &[]).await? else { return Ok(None) };
    Ok(Some(LedgerWentBack {
        noticed_at: at(&row, 0)?,
        ends_at: at(&row, 1)?,
        upto: at(&row, 2)?,
        noticed_by: row.try_get(3)?,
    }))
}

/// Deliveries that an inbox has by now, or cannot take.
pub(super) async fn has_it(tx: &Tx, deliveries: Vec<(i64, i64)>) -> Result<(), StorageError> {
    if !deliveries.is_empty() {
        let (messages, recipients): (Vec<_>, Vec<_>) = deliveries.into_iter().unzip();
        tx.change(sql!("again_done"), &[&messages, &recipients]).await?;
    }
    Ok(())
}
