//! What the link brings: stored once, then acked; and the rungs it climbs here, told back.
//!
//! - An ack leaves only after the commit of what it says, and is repeated for a duplicate.
//! - What cannot be stored is refused by name and stops nobody else.
//! - A rung the broker has not confirmed is told again on the next link.

use std::sync::Arc;

use mailbox::{AckRow, Arrival, Arrived, Confirmed, Receipt, Recorded};
use model::{ErrorCode, MemberId, MessageId, Timestamp, limits};
use net::run_to_end;
use serde::Deserialize;
use serde_json::value::RawValue;
use sqlite::StorageError;
use tokio::sync::mpsc;
use wire::link::{Ack, AckRef, Acked, MailRow, Nack, ReceiptRow, Rows, ToBroker};
use wire::text;

use crate::link::{LinkEnd, Live};
use crate::mesh::Mesh;

/// What a link brought, in the order it came.
pub(crate) enum Delivery {
    /// Messages, and rows that are none.
    Mail { rows: Vec<MailRow>, poison: Vec<Nack> },
    /// Rungs the broker has committed.
    Acked(Vec<Acked>),
    /// Rungs of messages sent from here.
    Receipts(Vec<ReceiptRow>),
}

/// Takes deliveries until the link is over. What waits together is stored together.
pub(crate) async fn receive(
    mesh: &Arc<Mesh>,
    live: &Live,
    mut arriving: mpsc::Receiver<Delivery>,
) -> LinkEnd {
    let mut waiting = Vec::new();
    while arriving.recv_many(&mut waiting, limits::FRAME_MESSAGES_MAX).await > 0 {
        for delivery in joined(std::mem::take(&mut waiting)) {
            let taken = match delivery {
                Delivery::Mail { rows, poison } => take_mail(mesh, live, rows, poison).await,
                Delivery::Acked(rows) => confirm(mesh, live, rows).await,
                Delivery::Receipts(rows) => take_receipts(mesh, live, rows).await,
            };
            if let Err(end) = taken {
                return end;
            }
        }
    }
    LinkEnd::Lost("the link is over".to_owned())
}

/// Neighbours of one kind as one, in the same order: a commit then serves them all.
fn joined(deliveries: Vec<Delivery>) -> Vec<Delivery> {
    let mut joined: Vec<Delivery> = Vec::new();
    for delivery in deliveries {
        match (joined.last_mut(), delivery) {
            (Some(Delivery::Mail { rows, poison }), Delivery::Mail { rows: more, poison: worse }) => {
                rows.extend(more);
                poison.extend(worse);
            }
            (Some(Delivery::Acked(rows)), Delivery::Acked(more)) => rows.extend(more),
            (Some(Delivery::Receipts(rows)), Delivery::Receipts(more)) => rows.extend(more),
            (_, delivery) => joined.push(delivery),
        }
    }
    joined
}

/// Tells every rung the broker has not confirmed.
pub(crate) async fn repeat_acks(mesh: &Mesh, live: &Live) -> Result<(), LinkEnd> {
    let mut after = 0;
    loop {
        let rows = mesh.mailbox.unconfirmed(after, limits::WINDOW_ROWS_MAX).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.seq;
        let news = rows.iter().map(ack).filter(|ack| live.is_news(ack));
        tell(live, news.collect()).await?;
    }
}

/// Tells rungs as rows climb, until the link is over. Tells before it waits: a row may have climbed before anybody
/// listened.
pub(crate) async fn keep_telling(mesh: &Mesh, live: &Live) -> LinkEnd {
    let mut climbed = mesh.bells.climbed.listen();
    loop {
        climbed.reset();
        if let Err(end) = repeat_acks(mesh, live).await {
            return end;
        }
        climbed.wait(limits::LINK_SILENCE_MAX).await;
    }
}

/// Mail of which some rows do not parse: the good ones, and the bad ones by name. `None` when it is no mail, or
/// a row does not even say which one it is.
pub(crate) fn salvage(frame: &str) -> Option<Delivery> {
    #[derive(Deserialize)]
    struct Mail {
        r#type: String,
        rows: Vec<Box<RawValue>>,
    }
    #[derive(Deserialize)]
    struct Bad {
        #[serde(with = "text")]
        recipient: MemberId,
        message: BadMessage,
    }
    #[derive(Deserialize)]
    struct BadMessage {
        #[serde(with = "text")]
        id: MessageId,
    }
    let mail: Mail = serde_json::from_str(frame).ok()?;
    if mail.r#type != "mail" {
        return None;
    }
    let (mut rows, mut poison) = (Vec::new(), Vec::new());
    for raw in mail.rows {
        match serde_json::from_str(raw.get()) {
            Ok(row) => rows.push(row),
            Err(error) => {
                let Bad { recipient, message } = serde_json::from_str(raw.get()).ok()?;
                tracing::warn!(id = %message.id, %error, "a message cannot be read and is refused");
                poison.push(nack(message.id, recipient));
            }
        }
    }
    Some(Delivery::Mail { rows, poison })
}

/// Stores what arrived and wakes its readers, whether or not the link still stands: when the rows come again they are
/// known, and wake nobody.
async fn record(
    mesh: Arc<Mesh>,
    arrived: Vec<Arrived>,
    broker_now: Timestamp,
) -> Result<Vec<Recorded>, StorageError> {
    let recorded = mesh.mailbox.record(arrived, mesh.clock.now(), broker_now).await?;
    mesh.tally.received(&recorded);
    if recorded.iter().any(|row| matches!(row.arrival, Arrival::Fresh { .. })) {
        mesh.bells.arrived.ring();
    }
    Ok(recorded)
}

async fn take_mail(
    mesh: &Arc<Mesh>,
    live: &Live,
    rows: Vec<MailRow>,
    mut poison: Vec<Nack>,
) -> Result<(), LinkEnd> {
    let again = rows.iter().filter(|row| row.again.is_some()).count() as u64;
    let arrived = rows.into_iter().map(arrived).collect();
    let broker_now = live.broker_now(&*mesh.clock);
    let recorded = run_to_end(record(mesh.clone(), arrived, broker_now)).await?;
    if live.came_again(again) {
        mesh.mailbox.inbox_is_complete().await?;
    }
    let mut acks = Vec::new();
    for row in recorded {
        match answer(row) {
            Ok(ack) => acks.push(ack),
            Err(nack) => poison.push(nack),
        }
    }
    tell(live, acks).await?;
    if poison.is_empty() {
        return Ok(());
    }
    live.tell(&ToBroker::Nack(Rows { rows: poison })).await.map_err(gone)
}

fn answer(row: Recorded) -> Result<Ack, Nack> {
    match row.ack() {
        Some((rung, at)) => {
            let (read_at, place) = (row.read_at(), row.place());
            Ok(Ack { row: AckRef { id: row.id, recipient: row.recipient, rung }, at, read_at, place })
        }
        None => {
            tracing::warn!(id = %row.id, arrival = ?row.arrival, "a message cannot be stored and is refused");
            Err(nack(row.id, row.recipient))
        }
    }
}

async fn confirm(mesh: &Mesh, live: &Live, rows: Vec<Acked>) -> Result<(), LinkEnd> {
    live.heard(&rows);
    let confirmed = rows.into_iter().map(|Acked { row, read }| Confirmed {
        id: row.id,
        recipient: row.recipient,
        rung: row.rung,
        read,
    });
    mesh.mailbox.confirm(confirmed.collect()).await?;
    Ok(())
}

async fn take_receipts(mesh: &Mesh, live: &Live, rows: Vec<ReceiptRow>) -> Result<(), LinkEnd> {
    let told = rows.iter().map(|row| row.row.clone()).collect();
    let receipts = rows.into_iter().map(|row| Receipt {
        id: row.row.id,
        sender: row.sender,
        client_message_id: row.client_message_id,
        rung: row.row.rung,
        at: row.at,
        ended_code: row.ended_code,
    });
    let risen = mesh.mailbox.apply_receipts(receipts.collect()).await?;
    if !risen.is_empty() {
        mesh.moved(&risen);
    }
    live.tell(&ToBroker::ReceiptsAck(Rows { rows: told })).await.map_err(gone)
}

async fn tell(live: &Live, acks: Vec<Ack>) -> Result<(), LinkEnd> {
    if acks.is_empty() {
        return Ok(());
    }
    live.told(&acks);
    live.tell(&ToBroker::Ack(Rows { rows: acks })).await.map_err(gone)
}

/// A row of mail as the mailbox takes it.
pub(crate) fn arrived(row: MailRow) -> Arrived {
    let envelope = serde_json::to_vec(&row.message).expect("a message that was read can be written");
    Arrived {
        id: row.message.id,
        sender: row.sender_id,
        client_message_id: row.message.fields.client_message_id,
        recipient: row.recipient,
        conversation: row.message.conversation,
        history_id: row.message.history_id,
        envelope,
        deliver_by: row.deliver_by,
        read_at: row.read_at,
        redelivered: row.message.redelivered,
        priority: row.message.fields.priority,
        again: row.again,
    }
}

fn ack(row: &AckRow) -> Ack {
    let told = AckRef { id: row.id, recipient: row.recipient, rung: row.rung };
    Ack { row: told, at: row.at, read_at: row.read_at, place: Some(row.seq) }
}

fn nack(id: MessageId, recipient: MemberId) -> Nack {
    Nack { id, recipient, code: ErrorCode::InvalidRequest.code().to_owned() }
}

fn gone(error: net::socket::SendError) -> LinkEnd {
    LinkEnd::Lost(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    fn row(message: &str) -> String {
        format!(r#"{{"recipient":"{ID}","sender_id":"{ID}","message":{message}}}"#)
    }

    fn good() -> String {
        row(&format!(
            r##"{{"id":"{ID}","conversation":"{ID}","history_id":1,"sender":"jane","created_at":"2027-01-01T00:00:00Z",
               "cursor":"","client_message_id":"a","to":"#t","body":"hi"}}"##
        ))
    }

    fn salvaged(rows: &[String]) -> Option<(usize, Vec<String>)> {
        match salvage(&format!(r#"{{"type":"mail","rows":[{}]}}"#, rows.join(",")))? {
            Delivery::Mail { rows, poison } => {
                Some((rows.len(), poison.into_iter().map(|nack| nack.id.to_string()).collect()))
            }
            Delivery::Acked(_) | Delivery::Receipts(_) => None,
        }
    }

    #[test]
    fn a_row_that_cannot_be_read_is_named_and_its_neighbours_are_kept() {
        let bad = row(&format!(r#"{{"id":"{ID}","body":7}}"#));
        assert_eq!(salvaged(&[good(), bad, good()]), Some((2, vec![ID.to_owned()])));
    }

    #[test]
    fn what_waits_together_is_joined_and_keeps_its_order() {
        let mail = || salvage(&format!(r#"{{"type":"mail","rows":[{}]}}"#, good())).unwrap();
        let waiting =
            vec![mail(), mail(), Delivery::Acked(Vec::new()), mail(), Delivery::Receipts(Vec::new())];
        let shape: Vec<usize> = joined(waiting)
            .iter()
            .map(|delivery| match delivery {
                Delivery::Mail { rows, .. } => rows.len(),
                Delivery::Acked(_) => 10,
                Delivery::Receipts(_) => 20,
            })
            .collect();
        assert_eq!(shape, [2, 10, 1, 20]);
    }

    #[test]
    fn a_row_without_a_name_cannot_be_refused_and_ends_the_link() {
        assert_eq!(salvaged(&[good(), "7".to_owned()]), None);
        assert!(salvage(r#"{"type":"receipts","rows":[7]}"#).is_none());
        assert!(salvage("nonsense").is_none());
    }
}
