//! The two windows of a link, as state queries: a row that commits late elsewhere is found because it is
//! undelivered, not because a cursor has not passed it.

use std::collections::HashSet;

use ::sqlite::rusqlite::{Connection, Row, params};
use model::{Cursor, DeliveryRung, MemberId, MessageId, Timestamp};

use super::row::{all, at, at_option, change, code, count, id, one, text};
use super::{history, link, mail, received, sql};
use crate::rules::{self, Speaker, acks_for, has_it_again, place_number, plain};
use crate::types::accept::Via;
use crate::types::wayin::Link;
use crate::types::window::{Ack, AckedRow, MailRow, Nack, ReceiptAck, ReceiptRow};
use crate::{LinkError, StorageError};

/// A delivery under its message's number.
pub(super) struct Found {
    pub message: i64,
    pub recipient: i64,
    sender: i64,
    held: DeliveryRung,
}

/// What an ack may climb on.
enum Looked {
    /// The delivery is here.
    Here(Found),
    /// The recipient is the speaker's; its delivery is not here (any more).
    Gone,
    /// The recipient is not the speaker's.
    Foreign,
}

pub(super) fn mail(
    conn: &Connection,
    link: &Link,
    unacked: &[(MessageId, MemberId)],
    limit: usize,
) -> Result<Vec<MailRow>, LinkError> {
    let node = link::check(conn, link)?;
    let unacked: HashSet<_> = unacked.iter().copied().collect();
    // Unacked rows are still undelivered, so they stand among the first ones found.
    let look = limit.saturating_add(unacked.len());
    let mut again = received::again(conn, &node, |key| unacked.contains(key), bound(look))?;
    again.truncate(limit);
    let mut waiting = Vec::new();
    for (recipient, recipient_id) in link::at_home(conn, node.number)? {
        let rows = all(conn, sql!("mail_numbers"), params![recipient, bound(look)], |row| {
            Ok((row.get::<_, i64>(0)?, recipient, id(row, 1, MessageId::from_bytes)?))
        })?;
        waiting.extend(rows.into_iter().filter(|(_, _, id)| !unacked.contains(&(*id, recipient_id))));
    }
    // Each conversation's numbers rise with its seq, so oldest first is log order.
    waiting.sort_unstable_by_key(|(message, recipient, _)| (*message, *recipient));
    // What is sent again was accepted first, and stands first in its log.
    waiting.truncate(limit - again.len());
    let mut mail = Vec::with_capacity(again.len() + waiting.len());
    for row in again {
        let sent =
            one(conn, sql!("mail_row"), params![row.message, row.recipient], |found| mail_row(found, true))?;
        mail.extend(sent.map(|sent| MailRow { again: Some(row.rung), ..sent }));
    }
    for (message, recipient, _) in waiting {
        let row = one(conn, sql!("mail_row"), params![message, recipient], |row| {
            mail_row(row, message <= node.redelivered_upto)
        })?;
        mail.extend(row);
    }
    Ok(mail)
}

pub(super) fn ack(
    conn: &Connection,
    now: Timestamp,
    via: &Via,
    rows: &[Ack],
) -> Result<Vec<AckedRow>, LinkError> {
    let speaker = link::speaker(conn, via)?;
    let mut acked = Vec::with_capacity(rows.len());
    for row in rows {
        let confirmed = match look(conn, speaker, row.id, row.recipient)? {
            Looked::Here(found) => {
                let (at, read_at) = (row.at.min(now), row.read_at.map(|at| at.min(now)));
                climb(conn, &found, &Told { rung: row.rung, at, why: None, read_at, place: row.place })?;
                true
            }
            // Pruned, or lost in a restore: its sender's node sends it again, and it is acked again then.
            Looked::Gone => true,
            Looked::Foreign => false,
        };
        acked.extend(confirmed.then_some(AckedRow { id: row.id, recipient: row.recipient, rung: row.rung }));
    }
    if let (Speaker::Node(node), Some(upto)) = (speaker, rows.iter().filter_map(|row| row.place).max()) {
        change(conn, sql!("inbox_received"), params![node, place_number(upto)])?;
    }
    Ok(acked)
}

pub(super) fn nack(
    conn: &Connection,
    now: Timestamp,
    link: &Link,
    rows: &[Nack],
) -> Result<Vec<AckedRow>, LinkError> {
    let speaker = Speaker::Node(link::check(conn, link)?.number);
    let mut ended = Vec::with_capacity(rows.len());
    let rung = DeliveryRung::DeadLetter;
    for row in rows {
        let confirmed = match look(conn, speaker, row.id, row.recipient)? {
            Looked::Here(found) => {
                climb(conn, &found, &Told { why: Some(&row.code), ..Told::plain(rung, now) })?;
                true
            }
            Looked::Gone => true,
            Looked::Foreign => false,
        };
        ended.extend(confirmed.then_some(AckedRow { id: row.id, recipient: row.recipient, rung }));
    }
    Ok(ended)
}

pub(super) fn receipts(
    conn: &Connection,
    link: &Link,
    unacked: &[(MessageId, MemberId)],
    limit: usize,
) -> Result<Vec<ReceiptRow>, LinkError> {
    let node = link::check(conn, link)?;
    let unacked: HashSet<_> = unacked.iter().copied().collect();
    let look = limit.saturating_add(unacked.len());
    let mut untold = Vec::new();
    for (sender, sender_id) in link::at_home(conn, node.number)? {
        let rows = all(conn, sql!("receipt_rows"), params![sender, bound(look)], |row| {
            Ok((row.get::<_, i64>(0)?, receipt_row(row, sender_id)?))
        })?;
        untold.extend(rows.into_iter().filter(|(_, row)| !unacked.contains(&(row.id, row.recipient))));
    }
    untold.sort_by_key(|(message, _)| *message);
    untold.truncate(limit);
    Ok(untold.into_iter().map(|(_, row)| row).collect())
}

pub(super) fn receipts_ack(conn: &Connection, link: &Link, rows: &[ReceiptAck]) -> Result<(), LinkError> {
    let node = link::check(conn, link)?;
    let senders: HashSet<i64> =
        link::at_home(conn, node.number)?.into_iter().map(|(number, _)| number).collect();
    for row in rows {
        let found = delivery(conn, row.id, row.recipient)?;
        if let Some(found) = found.filter(|found| senders.contains(&found.sender)) {
            change(conn, sql!("delivery_told"), params![found.message, found.recipient, row.rung.code()])?;
        }
    }
    Ok(())
}

/// Ends or raises a delivery; the model decides what is a rise.
pub(super) fn end(
    conn: &Connection,
    message: i64,
    recipient: i64,
    rung: DeliveryRung,
    at: Timestamp,
    why: &str,
) -> Result<(), StorageError> {
    let found = Found { message, recipient, sender: 0, held: DeliveryRung::Accepted };
    climb(conn, &found, &Told { why: Some(why), ..Told::plain(rung, at) })
}

/// What is said of a delivery.
pub(super) struct Told<'a> {
    pub rung: DeliveryRung,
    pub at: Timestamp,
    pub why: Option<&'a str>,
    pub read_at: Option<Timestamp>,
    /// In the recipient's inbox.
    pub place: Option<u64>,
}

impl Told<'_> {
    /// A rung and nothing else.
    pub fn plain(rung: DeliveryRung, at: Timestamp) -> Self {
        Self { rung, at, why: None, read_at: None, place: None }
    }
}

pub(super) fn climb(conn: &Connection, found: &Found, told: &Told<'_>) -> Result<(), StorageError> {
    let Told { at, why, read_at, place, .. } = *told;
    let step = rules::climb(found.held, told.rung);
    let has_it = has_it_again(found.held, told.rung, place);
    if step.is_none() && read_at.is_none() {
        if has_it {
            change(conn, sql!("again_done"), [found.message, found.recipient])?;
        }
        return Ok(());
    }
    let of =
        |rung| step.and_then(|step| step.reached).filter(|reached| *reached == rung).map(|_| at.as_micros());
    let ended_at = step.filter(|step| step.ends).map(|_| at.as_micros());
    let params = params![
        found.message,
        found.recipient,
        step.map_or(found.held, |step| step.rung).code(),
        of(DeliveryRung::Delivered),
        of(DeliveryRung::Notified),
        of(DeliveryRung::Engaged),
        of(DeliveryRung::Processed),
        ended_at,
        ended_at.and(why.map(plain)),
        read_at.map(Timestamp::as_micros),
        place.map(place_number),
        has_it
    ];
    change(conn, sql!("delivery_climb"), params)?;
    match (found.held, step) {
        (DeliveryRung::Accepted, Some(_)) => mail::done(conn, found.recipient, found.message),
        (_, None) | (_, Some(_)) => Ok(()),
    }
}

fn look(
    conn: &Connection,
    speaker: Speaker,
    message: MessageId,
    recipient: MemberId,
) -> Result<Looked, StorageError> {
    let home =
        one(conn, sql!("member_facts_by_id"), [recipient.as_bytes()], |row| row.get::<_, Option<i64>>(1))?;
    if !acks_for(speaker, home) {
        return Ok(Looked::Foreign);
    }
    Ok(delivery(conn, message, recipient)?.map_or(Looked::Gone, Looked::Here))
}

pub(super) fn delivery(
    conn: &Connection,
    message: MessageId,
    recipient: MemberId,
) -> Result<Option<Found>, StorageError> {
    let params = params![message.as_bytes(), recipient.as_bytes()];
    Ok(one(conn, sql!("delivery"), params, |row| {
        Ok(Found {
            message: row.get(0)?,
            recipient: row.get(1)?,
            sender: row.get(2)?,
            held: code(row, 3, DeliveryRung::from_code)?,
        })
    })?)
}

pub(super) fn mail_row(row: &Row<'_>, redelivered: bool) -> ::sqlite::rusqlite::Result<MailRow> {
    let (message, created_at) = (id(row, 0, MessageId::from_bytes)?, at(row, 6)?);
    Ok(MailRow {
        id: message,
        recipient: id(row, 1, MemberId::from_bytes)?,
        sender: id(row, 2, MemberId::from_bytes)?,
        sender_name: text(row, 3)?,
        client_message_id: text(row, 4)?,
        history_id: count(row, 5)?,
        created_at,
        cursor: Cursor::After { at: created_at, id: message, epoch: row.get(10)? },
        envelope: row.get(7)?,
        deliver_by: at_option(row, 8)?,
        read_at: at_option(row, 9)?,
        place: history::place_of(row, 11)?,
        redelivered,
        again: None,
    })
}

fn receipt_row(row: &Row<'_>, sender: MemberId) -> ::sqlite::rusqlite::Result<ReceiptRow> {
    Ok(ReceiptRow {
        id: id(row, 1, MessageId::from_bytes)?,
        sender,
        client_message_id: text(row, 2)?,
        recipient: id(row, 3, MemberId::from_bytes)?,
        rung: code(row, 4, DeliveryRung::from_code)?,
        at: at(row, 5)?,
        ended_code: row.get(6)?,
    })
}

/// A limit as SQLite takes it.
pub(super) fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
