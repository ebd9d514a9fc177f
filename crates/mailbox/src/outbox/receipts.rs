//! Rungs that travelled back: written on the sender's row, and only upwards.
//!
//! A receipt names a message of the broker. A row known to be that message takes the rung. A row whose
//! acceptance is not known yet only notes it, together with the message's id: the note counts when the
//! acceptance names the same message, and is dropped when it names another.

use std::sync::Arc;

use model::outbox::{Outcome, Status};
use model::receipt::rise;
use model::{ClientMessageId, DeliveryRung, MemberId, MessageId, RowId, Timestamp};
use rusqlite::{Connection, Row, named_params};
use sqlite::StorageError;

use super::names::Names;
use super::one;
use super::row::{self, Rungs};
use crate::column::{Sql, get};
use crate::{Mailbox, sql};

/// A rung of a message that a member at home here sent. A direct message has one recipient, whose rung
/// is the message's; topics keep theirs at the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The broker's message.
    pub id: MessageId,
    /// Who sent it.
    pub sender: MemberId,
    /// The caller's id for it.
    pub client_message_id: ClientMessageId,
    /// How far it came.
    pub rung: DeliveryRung,
    /// When.
    pub at: Timestamp,
    /// Why it ended, when it did.
    pub ended_code: Option<String>,
}

struct Told {
    seq: u64,
    row: RowId,
    status: Status,
    outcome: Option<Outcome>,
    message: Option<MessageId>,
    rungs: Rungs,
}

impl Mailbox {
    /// Applies receipts and answers the rows that rose. A receipt for a row this file does not have is
    /// nobody's any more: it may be acked like the others.
    pub async fn apply_receipts(&self, receipts: Vec<Receipt>) -> Result<Vec<RowId>, StorageError> {
        let names = Arc::clone(&self.names);
        self.db
            .write_checked("mailbox.receipts", move |conn| {
                let risen = receipts.iter().map(|receipt| apply(conn, &names, receipt));
                Ok(risen.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
            })
            .await
    }
}

fn apply(conn: &Connection, names: &Names, receipt: &Receipt) -> rusqlite::Result<Option<RowId>> {
    let place = names.place_of(conn, &receipt.sender, &receipt.client_message_id)?;
    let Some(seq) = place else { return Ok(None) };
    let told = conn.prepare_cached(sql::RECEIPT_ROW)?.query_row(named_params! {":seq": seq}, told)?;
    let same = told.message == Some(receipt.id);
    if !same && told.is_accepted() {
        return Ok(None);
    }
    if !same && told.message.is_some() {
        one(conn.prepare_cached(sql::RUNGS_CLEAR)?.execute(named_params! {":seq": told.seq})?)?;
    }
    let held = if same { told.rungs.held() } else { DeliveryRung::Accepted };
    let Some(rung) = rise(held, receipt.rung) else { return Ok(None) };
    one(conn.prepare_cached(sql::RECEIPT_PUT)?.execute(named_params! {
        ":seq": told.seq, ":status": Sql(&told.status), ":message": Sql(&receipt.id),
        ":rung": Sql(&rung), ":at": Sql(&receipt.at), ":code": receipt.ended_code,
    })?)?;
    Ok(Some(told.row))
}

impl Told {
    /// Whether the row's message is the broker's word, not hearsay.
    fn is_accepted(&self) -> bool {
        match self.status {
            Status::Done => true,
            Status::Aborted => self.outcome == Some(Outcome::Accepted),
            Status::Pending | Status::Inflight | Status::Dead => false,
        }
    }
}

fn told(row: &Row<'_>) -> rusqlite::Result<Told> {
    Ok(Told {
        seq: row.get("seq")?,
        row: get(row, "id")?,
        status: get(row, "status")?,
        outcome: get(row, "outcome")?,
        message: get(row, "broker_message_id")?,
        rungs: row::rungs(row)?,
    })
}
