//! Forgetting what may be forgotten, and auditing what must not contradict itself.

use std::time::Duration;

use ::sqlite::rusqlite::{Connection, params};
use model::admission::days_long;
use model::ageing::ForgottenRecord;
use model::limits::{ESCALATION_KEPT, NONCE_KEPT, TICKET_KEPT, UNDELIVERED_DAYS_MAX};
use model::{DeliveryRung, ErrorCode, MessageId, Timestamp};

use super::row::{all, at, change, code, id, one};
use super::store::World;
use super::window::{self, bound};
use super::{ageing, mail, signin, sql};
use crate::StorageError;
use crate::rules::{SWEEP_OVERLAP, UNDELIVERED};
use crate::types::explain::Orphan;
use crate::types::manage::{IdPlace, Pruned};

/// Rows one audit read looks at: bounds its transaction, not the audit.
const AUDIT_SLICE: usize = 10_000;

/// The ids of a step whose window has passed, and where the next step begins. No index leads to them: it would cost
/// every accept a row, to spare a walk that takes seconds for millions of ids and may take place whenever.
pub(super) fn expired_ids(
    conn: &Connection,
    aged: Timestamp,
    from: &IdPlace,
    limit: usize,
) -> Result<(Vec<IdPlace>, Option<IdPlace>), StorageError> {
    let params = params![from.client_message_id, from.sender, aged.as_micros(), bound(limit)];
    let rows = all(conn, sql!("dedupe_walk"), params, |row| {
        let place = IdPlace { client_message_id: row.get(0)?, sender: row.get(1)? };
        Ok((place, row.get::<_, bool>(2)?))
    })?;
    let next = (rows.len() == limit).then(|| rows.last().map(|(place, _)| place.clone())).flatten();
    let due = rows.into_iter().filter_map(|(place, passed)| passed.then_some(place)).collect();
    Ok((due, next))
}

/// Those of them whose window has still passed: it may have been made longer since they were read.
pub(super) fn forget_ids(
    conn: &Connection,
    world: &World,
    aged: Timestamp,
    due: &[IdPlace],
) -> Result<u64, StorageError> {
    let (mut forgotten, mut record) = (0, ForgottenRecord::EMPTY);
    for IdPlace { client_message_id, sender } in due {
        let params = params![sender, client_message_id, aged.as_micros()];
        change(conn, sql!("outlived_insert"), params)?;
        if let Some((seen_at, expires_at)) =
            one(conn, sql!("dedupe_delete"), params, |row| Ok((at(row, 0)?, at(row, 1)?)))?
        {
            (forgotten, record) = (forgotten + 1, record.with_id(seen_at, expires_at));
        }
    }
    ageing::forget(conn, world, record)?;
    Ok(forgotten)
}

pub(super) fn expire_undelivered(
    conn: &Connection,
    aged: Timestamp,
    limit: usize,
) -> Result<u64, StorageError> {
    let mut ended = past_deliver_by(conn, aged, limit)?;
    let recipients =
        all(conn, sql!("recipients_waiting"), [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?)))?;
    let oldest = Timestamp::from_micros(aged.as_micros() - days_in_micros(UNDELIVERED_DAYS_MAX));
    for (recipient, removed) in recipients {
        let left = limit.saturating_sub(ended);
        let rows = all(conn, sql!("mail_ages"), params![recipient, bound(left)], |row| {
            Ok((row.get::<_, i64>(0)?, at(row, 1)?))
        })?;
        for (message, ts) in rows {
            let (rung, why) = match (removed, ts < oldest) {
                (true, _) => (DeliveryRung::DeadLetter, ErrorCode::Revoked.code()),
                (false, true) => (DeliveryRung::Expired, UNDELIVERED),
                // Numbers rise with time, so the rest of this recipient's rows is younger.
                (false, false) => break,
            };
            window::end(conn, message, recipient, rung, aged, why)?;
            ended += 1;
        }
    }
    Ok(ended as u64)
}

fn past_deliver_by(conn: &Connection, aged: Timestamp, limit: usize) -> Result<usize, StorageError> {
    let swept = one(conn, sql!("mesh_swept"), [], |row| at(row, 0))?.ok_or(StorageError::NoMesh)?;
    let since = swept.as_micros() - i64::try_from(SWEEP_OVERLAP.as_micros()).unwrap_or(0);
    let rows =
        all(conn, sql!("mail_past_deliver_by"), params![since, aged.as_micros(), bound(limit)], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })?;
    for (message, recipient) in &rows {
        let why = ErrorCode::DeliverByPassed.code();
        window::end(conn, *message, *recipient, DeliveryRung::Expired, aged, why)?;
    }
    if rows.len() < limit {
        change(conn, sql!("mesh_set_swept"), [aged.as_micros()])?;
    }
    Ok(rows.len())
}

fn days_in_micros(days: u32) -> i64 {
    i64::try_from(days_long(days).as_micros()).unwrap_or(i64::MAX)
}

/// Each log from its floor up, so that what is left of it stays without a gap.
pub(super) fn prune_messages(
    conn: &Connection,
    before: Timestamp,
    limit: usize,
) -> Result<Pruned, StorageError> {
    let logs = all(conn, sql!("logs_to_prune"), [before.as_micros()], |row| row.get::<_, i64>(0))?;
    let mut pruned = 0;
    for log in logs {
        pruned += prune_log(conn, log, before, limit - pruned)?;
    }
    Ok(Pruned { messages: pruned as u64, more: pruned == limit })
}

pub(super) fn prune_log(
    conn: &Connection,
    log: i64,
    before: Timestamp,
    limit: usize,
) -> Result<usize, StorageError> {
    let rows = all(conn, sql!("messages_to_prune"), params![log, bound(limit)], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, at(row, 2)?))
    })?;
    let (mut pruned, mut highest) = (0, None);
    for (message, seq, _) in rows.into_iter().take_while(|(_, _, ts)| *ts < before) {
        change(conn, sql!("conversation_raise_floor"), params![log, seq, message])?;
        change(conn, sql!("dedupe_history_gone"), [message])?;
        delete_deliveries(conn, message)?;
        change(conn, sql!("mention_delete"), [message])?;
        change(conn, sql!("outlived_delete"), [message])?;
        change(conn, sql!("message_delete"), [message])?;
        highest = highest.max(Some(message));
        pruned += 1;
    }
    if let Some(highest) = highest {
        change(conn, sql!("mesh_raise_numbers"), [highest])?;
    }
    Ok(pruned)
}

fn delete_deliveries(conn: &Connection, message: i64) -> Result<(), StorageError> {
    let deleted = all(conn, sql!("delivery_delete"), [message], |row| {
        Ok((row.get::<_, i64>(0)?, code(row, 1, DeliveryRung::from_code)?))
    })?;
    let mut waiting = deleted.into_iter().filter(|(_, rung)| *rung == DeliveryRung::Accepted);
    waiting.try_for_each(|(recipient, _)| mail::done(conn, recipient, message))
}

/// Used things stay a while, so that a late copy is told what happened to it.
pub(super) fn sweep_way_in(conn: &Connection, aged: Timestamp) -> Result<u64, StorageError> {
    let ago = |span: Duration| aged.as_micros() - i64::try_from(span.as_micros()).unwrap_or(0);
    let swept = change(conn, sql!("nonce_sweep"), [aged.as_micros()])?
        + change(conn, sql!("challenge_sweep"), [ago(NONCE_KEPT)])?
        + change(conn, sql!("ticket_sweep"), [ago(TICKET_KEPT)])?
        + change(conn, sql!("invite_sweep"), [ago(TICKET_KEPT)])?
        + change(conn, sql!("escalation_sweep"), [ago(ESCALATION_KEPT)])?
        + signin::sweep(conn, aged)?;
    Ok(swept as u64)
}

/// Where the next slice of an audit begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AuditAt {
    Dedupe { client_message_id: String, sender: i64 },
    Message { after: i64 },
    Delivery { message: i64, recipient: i64 },
    Mention { member: i64, message: i64 },
    End,
}

impl AuditAt {
    pub const START: AuditAt = AuditAt::Dedupe { client_message_id: String::new(), sender: 0 };
}

/// One slice. A row and what it is compared with are read in the same transaction, which is all the
/// comparison needs; rows younger than `before` are left out.
pub(super) fn audit(
    conn: &Connection,
    now: Timestamp,
    before: Timestamp,
    from: &AuditAt,
) -> Result<(Vec<Orphan>, AuditAt), StorageError> {
    match from {
        AuditAt::Dedupe { client_message_id, sender } => {
            audit_dedupe(conn, before, client_message_id, *sender)
        }
        AuditAt::Message { after } => audit_messages(conn, now, before, *after),
        AuditAt::Delivery { message, recipient } => audit_deliveries(conn, now, before, *message, *recipient),
        AuditAt::Mention { member, message } => audit_mentions(conn, *member, *message),
        AuditAt::End => Ok((Vec::new(), AuditAt::End)),
    }
}

fn audit_dedupe(
    conn: &Connection,
    before: Timestamp,
    after: &str,
    sender: i64,
) -> Result<(Vec<Orphan>, AuditAt), StorageError> {
    let params = params![after, sender, before.as_micros(), bound(AUDIT_SLICE)];
    let rows = all(conn, sql!("audit_dedupe"), params, |row| {
        let missing: Option<[u8; 16]> = row.get(2)?;
        let misplaced: Option<[u8; 16]> = row.get(3)?;
        let orphans = [
            missing.map(|id| Orphan::BodyMissing(MessageId::from_bytes(id))),
            misplaced.map(|id| Orphan::PlaceMismatch(MessageId::from_bytes(id))),
        ];
        Ok((AuditAt::Dedupe { client_message_id: row.get(0)?, sender: row.get(1)? }, orphans))
    })?;
    Ok(slice(rows, AuditAt::Message { after: 0 }))
}

fn audit_messages(
    conn: &Connection,
    now: Timestamp,
    before: Timestamp,
    after: i64,
) -> Result<(Vec<Orphan>, AuditAt), StorageError> {
    let params = params![after, before.as_micros(), now.as_micros(), bound(AUDIT_SLICE)];
    let rows = all(conn, sql!("audit_messages"), params, |row| {
        let (unknown, direct) = (row.get::<_, bool>(1)?, row.get::<_, Option<bool>>(3)? == Some(true));
        let id = id(row, 2, MessageId::from_bytes)?;
        let orphans = [
            unknown.then_some(Orphan::MessageWithoutDedupe(id)),
            direct.then_some(Orphan::DirectWithoutDelivery(id)),
        ];
        Ok((AuditAt::Message { after: row.get(0)? }, orphans))
    })?;
    Ok(slice(rows, AuditAt::Delivery { message: 0, recipient: 0 }))
}

fn audit_deliveries(
    conn: &Connection,
    now: Timestamp,
    before: Timestamp,
    message: i64,
    recipient: i64,
) -> Result<(Vec<Orphan>, AuditAt), StorageError> {
    let params = params![message, recipient, before.as_micros(), now.as_micros(), bound(AUDIT_SLICE)];
    let rows = all(conn, sql!("audit_deliveries"), params, |row| {
        let (message, broken, outside) = (row.get(0)?, row.get::<_, bool>(2)?, row.get::<_, bool>(4)?);
        let orphan = match (broken, row.get::<_, Option<[u8; 16]>>(3)?) {
            (true, Some(id)) => Some(Orphan::DeliveryWithoutDedupe(MessageId::from_bytes(id))),
            (true, None) => Some(Orphan::DeliveryWithoutMessage { message }),
            (false, Some(id)) if outside => Some(Orphan::DeliveryOutsideMail(MessageId::from_bytes(id))),
            (false, _) => None,
        };
        Ok((AuditAt::Delivery { message, recipient: row.get(1)? }, [orphan]))
    })?;
    Ok(slice(rows, AuditAt::Mention { member: 0, message: 0 }))
}

fn audit_mentions(
    conn: &Connection,
    member: i64,
    message: i64,
) -> Result<(Vec<Orphan>, AuditAt), StorageError> {
    let rows = all(conn, sql!("audit_mentions"), params![member, message, bound(AUDIT_SLICE)], |row| {
        let (member, message) = (row.get(0)?, row.get(1)?);
        let orphan = row.get::<_, bool>(2)?.then_some(Orphan::MentionWithoutMessage { message });
        Ok((AuditAt::Mention { member, message }, [orphan]))
    })?;
    Ok(slice(rows, AuditAt::End))
}

/// The orphans of a slice; after a short slice comes the next table.
fn slice<const N: usize>(rows: Vec<(AuditAt, [Option<Orphan>; N])>, then: AuditAt) -> (Vec<Orphan>, AuditAt) {
    let next = match rows.last() {
        Some((at, _)) if rows.len() == AUDIT_SLICE => at.clone(),
        Some(_) | None => then,
    };
    (rows.into_iter().flat_map(|(_, orphans)| orphans).flatten().collect(), next)
}
