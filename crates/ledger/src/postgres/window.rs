//! The two windows of a link, as state queries: a row that commits late elsewhere is found because it is
//! undelivered, not because a cursor has not passed it.

use model::{Cursor, DeliveryRung, MemberId, MessageId, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::row::{at, at_option, bound, code, count, epoch, id, small, text};
use super::session::Tx;
use super::{history, link, mail, received, sql};
use crate::rules::{Speaker, acks_for, climb, has_it_again, place_number, plain};
use crate::types::accept::Via;
use crate::types::wayin::Link;
use crate::types::window::{Ack, AckedRow, MailRow, Nack, ReceiptAck, ReceiptRow};
use crate::{LinkError, StorageError};

pub(super) async fn mail(
    tx: &Tx,
    link: &Link,
    unacked: &[(MessageId, MemberId)],
    limit: usize,
) -> Result<Vec<MailRow>, LinkError> {
    let node = link::check(tx, link).await?;
    let (messages, recipients) = columns(unacked.iter().copied());
    // Unacked rows are still undelivered, so they stand among the first ones found.
    let look = bound(limit.saturating_add(unacked.len()));
    let mut mail = received::again(tx, &node, (&messages, &recipients), limit).await?;
    // What is sent again was accepted first, and stands first in its log.
    let rest = limit.saturating_sub(mail.len());
    let rows = tx.all(sql!("mail"), &[&node.number, &look, &messages, &recipients, &bound(rest)]).await?;
    for row in &rows {
        mail.push(mail_row(row, node.redelivered_upto)?);
    }
    Ok(mail)
}

pub(super) async fn ack(tx: &Tx, via: &Via, rows: &[Ack]) -> Result<Vec<AckedRow>, LinkError> {
    let speaker = link::speaker(tx, via).await?;
    let told: Vec<_> = rows
        .iter()
        .map(|row| Told {
            id: row.id,
            recipient: row.recipient,
            rung: row.rung,
            at: row.at.min(tx.now),
            why: None,
            read_at: row.read_at.map(|at| at.min(tx.now)),
            place: row.place.map(place_number),
        })
        .collect();
    let acked = record(tx, speaker, &told).await?;
    if let (Speaker::Node(node), Some(upto)) = (speaker, told.iter().filter_map(|row| row.place).max()) {
        tx.change(sql!("inbox_received"), &[&node, &upto]).await?;
    }
    Ok(acked)
}

pub(super) async fn nack(tx: &Tx, link: &Link, rows: &[Nack]) -> Result<Vec<AckedRow>, LinkError> {
    let speaker = Speaker::Node(link::check_locked(tx, link).await?.number);
    let told: Vec<_> = rows
        .iter()
        .map(|row| Told {
            id: row.id,
            recipient: row.recipient,
            rung: DeliveryRung::DeadLetter,
            at: tx.now,
            why: Some(plain(&row.code)),
            read_at: None,
            place: None,
        })
        .collect();
    Ok(record(tx, speaker, &told).await?)
}

pub(super) async fn receipts(
    tx: &Tx,
    link: &Link,
    unacked: &[(MessageId, MemberId)],
    limit: usize,
) -> Result<Vec<ReceiptRow>, LinkError> {
    let node = link::check(tx, link).await?;
    let (messages, recipients) = columns(unacked.iter().copied());
    let look = bound(limit.saturating_add(unacked.len()));
    let rows =
        tx.all(sql!("receipts"), &[&node.number, &look, &messages, &recipients, &bound(limit)]).await?;
    Ok(rows.iter().map(receipt_row).collect::<Result<_, _>>()?)
}

pub(super) async fn receipts_ack(tx: &Tx, link: &Link, rows: &[ReceiptAck]) -> Result<(), LinkError> {
    let node = link::check_locked(tx, link).await?;
    let (messages, recipients) = columns(rows.iter().map(|row| (row.id, row.recipient)));
    let rungs: Vec<i16> = rows.iter().map(|row| small(row.rung.code())).collect();
    tx.all(sql!("deliveries_lock"), &[&messages, &recipients]).await?;
    tx.change(sql!("deliveries_told"), &[&node.number, &messages, &recipients, &rungs]).await?;
    Ok(())
}

/// A delivery under its message's number.
pub(super) struct Found {
    pub message: i64,
    pub recipient: i64,
}

/// Where a delivery is, if it is.
pub(super) async fn delivery(
    tx: &Tx,
    message: MessageId,
    recipient: MemberId,
) -> Result<Option<Found>, StorageError> {
    let (messages, recipients) = columns(std::iter::once((message, recipient)));
    let rows = tx.all(sql!("deliveries_found"), &[&messages, &recipients]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    match (row.try_get(3)?, row.try_get(4)?) {
        (Some(message), Some(recipient)) => Ok(Some(Found { message, recipient })),
        (None, _) | (_, None) => Ok(None),
    }
}

/// Records one rung, now, for a member the broker speaks for.
pub(super) async fn tell(
    tx: &Tx,
    id: MessageId,
    recipient: MemberId,
    rung: DeliveryRung,
    why: Option<String>,
) -> Result<(), StorageError> {
    let told = Told { id, recipient, rung, at: tx.now, why, read_at: None, place: None };
    record(tx, Speaker::Broker, &[told]).await?;
    Ok(())
}

/// Ends undelivered rows of one recipient.
pub(super) async fn end(
    tx: &Tx,
    messages: &[i64],
    recipient: i64,
    rung: DeliveryRung,
    why: &str,
) -> Result<(), StorageError> {
    let (rung, now) = (small(rung.code()), tx.now.as_micros());
    let ended = tx.all(sql!("deliveries_end"), &[&messages, &recipient, &rung, &now, &why]).await?;
    mail::done_of(tx, &ended).await
}

/// What a node says of one delivery.
struct Told {
    id: MessageId,
    recipient: MemberId,
    rung: DeliveryRung,
    at: Timestamp,
    why: Option<String>,
    read_at: Option<Timestamp>,
    /// In the recipient's inbox.
    place: Option<i64>,
}

/// One array per column of the update.
#[derive(Default)]
struct Climbs {
    message: Vec<i64>,
    recipient: Vec<i64>,
    rung: Vec<i16>,
    instants: [Vec<Option<i64>>; 4],
    ended_at: Vec<Option<i64>>,
    ended_code: Vec<Option<String>>,
    read_at: Vec<Option<i64>>,
    place: Vec<Option<i64>>,
    has_it: Vec<bool>,
    /// Deliveries that change in nothing but that the inbox has them again.
    has_it_alone: Vec<(i64, i64)>,
    /// Recipients and stretches of rows that stop waiting.
    taken: Vec<(i64, i64)>,
}

/// The rungs whose instants are kept, in the order of [`Climbs::instants`].
const REACHED: [DeliveryRung; 4] =
    [DeliveryRung::Delivered, DeliveryRung::Notified, DeliveryRung::Engaged, DeliveryRung::Processed];

/// Records what is told and confirms it. The rows are locked in order first, because the other end of a pair
/// may be writing to the same ones.
async fn record(tx: &Tx, speaker: Speaker, told: &[Told]) -> Result<Vec<AckedRow>, StorageError> {
    let (messages, recipients) = columns(told.iter().map(|row| (row.id, row.recipient)));
    tx.all(sql!("deliveries_lock"), &[&messages, &recipients]).await?;
    let found = tx.all(sql!("deliveries_found"), &[&messages, &recipients]).await?;
    let mut climbs = Climbs::default();
    let mut acked = Vec::with_capacity(told.len());
    for row in &found {
        let place: i64 = row.try_get(0)?;
        let Some(told) = usize::try_from(place - 1).ok().and_then(|place| told.get(place)) else { continue };
        let home = row.try_get::<_, bool>(1)?.then(|| row.try_get::<_, Option<i64>>(2)).transpose()?;
        if !acks_for(speaker, home) {
            continue;
        }
        // A row that is not here was pruned, or lost in a restore: its sender's node sends it again, and it is
        // acked again then.
        if row.try_get::<_, Option<i64>>(3)?.is_some() {
            climbs.push(row, told)?;
        }
        acked.push(AckedRow { id: told.id, recipient: told.recipient, rung: told.rung });
    }
    climbs.write(tx).await?;
    Ok(acked)
}

impl Climbs {
    /// place, recipient known, its home, message, recipient, rung, stretch
    fn push(&mut self, row: &Row, told: &Told) -> Result<(), StorageError> {
        let (message, recipient) = (row.try_get(3)?, row.try_get(4)?);
        // One frame may tell several rungs of one row, each on top of the last.
        let earlier = self.message.iter().zip(&self.recipient).position(|key| key == (&message, &recipient));
        let held = match earlier {
            Some(place) => self.held(place)?,
            None => code(row, 5, DeliveryRung::from_code)?,
        };
        let step = climb(held, told.rung);
        let has_it = has_it_again(held, told.rung, told.place.and_then(|place| u64::try_from(place).ok()));
        if step.is_none() && told.read_at.is_none() {
            if has_it {
                self.has_it_alone.push((message, recipient));
            }
            return Ok(());
        }
        if held == DeliveryRung::Accepted
            && step.is_some()
            && let Some(stretch) = row.try_get(6)?
        {
            self.taken.push((recipient, stretch));
        }
        let place = earlier.unwrap_or_else(|| self.add(message, recipient));
        self.rung[place] = small(step.map_or(held, |step| step.rung).code());
        let reached = step.and_then(|step| step.reached);
        for (instants, rung) in self.instants.iter_mut().zip(REACHED) {
            let at = reached.filter(|reached| *reached == rung).map(|_| told.at.as_micros());
            instants[place] = instants[place].or(at);
        }
        if step.is_some_and(|step| step.ends) {
            self.ended_at[place] = Some(told.at.as_micros());
            self.ended_code[place] = told.why.clone();
        }
        self.read_at[place] = self.read_at[place].or(told.read_at.map(Timestamp::as_micros));
        self.place[place] = told.place.or(self.place[place]);
        self.has_it[place] |= has_it;
        Ok(())
    }

    fn held(&self, place: usize) -> Result<DeliveryRung, StorageError> {
        let code = i64::from(self.rung[place]);
        DeliveryRung::from_code(code).ok_or_else(|| StorageError::Broken { what: format!("rung {code}") })
    }

    fn add(&mut self, message: i64, recipient: i64) -> usize {
        self.message.push(message);
        self.recipient.push(recipient);
        self.rung.push(0);
        self.instants.iter_mut().for_each(|instants| instants.push(None));
        self.ended_at.push(None);
        self.ended_code.push(None);
        self.read_at.push(None);
        self.place.push(None);
        self.has_it.push(false);
        self.message.len() - 1
    }

    async fn write(mut self, tx: &Tx) -> Result<(), StorageError> {
        received::has_it(tx, std::mem::take(&mut self.has_it_alone)).await?;
        if self.message.is_empty() {
            return Ok(());
        }
        let Self { message, recipient, rung, instants, ended_at, ended_code, read_at, .. } = self;
        let Self { place, has_it, taken, .. } = self;
        let [delivered, notified, engaged, processed] = instants;
        tx.change(
            sql!("deliveries_climb"),
            &[
                &message,
                &recipient,
                &rung,
                &delivered,
                &notified,
                &engaged,
                &processed,
                &ended_at,
                &ended_code,
                &read_at,
                &place,
                &has_it,
            ],
        )
        .await?;
        mail::done(tx, taken).await
    }
}

/// Pairs as two arrays.
fn columns(pairs: impl Iterator<Item = (MessageId, MemberId)>) -> (Vec<Uuid>, Vec<Uuid>) {
    pairs.map(|(message, member)| (message.as_uuid(), member.as_uuid())).unzip()
}

pub(super) fn mail_row(row: &Row, redelivered_upto: i64) -> Result<MailRow, StorageError> {
    let (message, created_at) = (id(row, 0)?, at(row, 6)?);
    Ok(MailRow {
        id: message,
        recipient: id(row, 1)?,
        sender: id(row, 2)?,
        sender_name: text(row, 3)?,
        client_message_id: text(row, 4)?,
        history_id: count(row, 5)?,
        created_at,
        cursor: Cursor::After { at: created_at, id: message, epoch: epoch(row, 10)? },
        envelope: row.try_get(7)?,
        deliver_by: at_option(row, 8)?,
        read_at: at_option(row, 9)?,
        place: history::place_of(row, 11)?,
        redelivered: row.try_get::<_, i64>(14)? <= redelivered_upto,
        again: None,
    })
}

fn receipt_row(row: &Row) -> Result<ReceiptRow, StorageError> {
    Ok(ReceiptRow {
        id: id(row, 0)?,
        client_message_id: text(row, 1)?,
        recipient: id(row, 2)?,
        rung: code(row, 3, DeliveryRung::from_code)?,
        at: at(row, 4)?,
        ended_code: row.try_get(5)?,
        sender: id(row, 6)?,
    })
}
