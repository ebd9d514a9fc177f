//! Forgetting what may be forgotten, and auditing what must not contradict itself.

use std::time::Duration;

use model::admission::days_long;
use model::ageing::ForgottenRecord;
use model::limits::{ESCALATION_KEPT, NONCE_KEPT, TICKET_KEPT, UNDELIVERED_DAYS_MAX};
use model::{DeliveryRung, ErrorCode, Timestamp};
use tokio_postgres::Row;

use super::row::{at, bound, id_option, small};
use super::session::Tx;
use super::{ageing, mail, signin, sql};
use crate::StorageError;
use crate::rules::{SWEEP_OVERLAP, UNDELIVERED};
use crate::types::explain::Orphan;
use crate::types::manage::{Forgotten, IdPlace, Pruned};

/// An index has the oldest first: there is more wherever it found its fill, and no place to remember.
pub(super) async fn expire_dedupe(
    tx: &Tx,
    aged: Timestamp,
    from: IdPlace,
    limit: usize,
) -> Result<Forgotten, StorageError> {
    let rows = tx.all(sql!("dedupe_expire"), &[&aged.as_micros(), &bound(limit)]).await?;
    let (ids, mut record) = (rows.len() as u64, ForgottenRecord::EMPTY);
    for row in &rows {
        record = record.with_id(at(row, 0)?, at(row, 1)?);
    }
    ageing::forget(tx, record).await?;
    Ok(Forgotten { ids, next: (ids == limit as u64).then_some(from) })
}

pub(super) async fn expire_undelivered(tx: &Tx, aged: Timestamp, limit: usize) -> Result<u64, StorageError> {
    let hurried = past_deliver_by(tx, aged, limit).await?;
    let left = limit.saturating_sub(usize::try_from(hurried).unwrap_or(limit));
    let oldest = ago(aged, days_long(UNDELIVERED_DAYS_MAX));
    let (expired, dead) = (small(DeliveryRung::Expired.code()), small(DeliveryRung::DeadLetter.code()));
    let revoked = ErrorCode::Revoked.code();
    let now = tx.now.as_micros();
    let ended = tx
        .all(
            sql!("deliveries_end_old"),
            &[&oldest, &bound(left), &now, &expired, &UNDELIVERED, &dead, &revoked],
        )
        .await?;
    mail::done_of(tx, &ended).await?;
    Ok(hurried + ended.len() as u64)
}

async fn past_deliver_by(tx: &Tx, aged: Timestamp, limit: usize) -> Result<u64, StorageError> {
    let row = tx.one(sql!("mesh_swept"), &[]).await?.ok_or(StorageError::NoMesh)?;
    let since = at(&row, 0)?.as_micros() - micros(SWEEP_OVERLAP);
    let (aged, rung) = (aged.as_micros(), small(DeliveryRung::Expired.code()));
    let why = ErrorCode::DeliverByPassed.code();
    let ended = tx.all(sql!("deliveries_end_past"), &[&since, &aged, &bound(limit), &rung, &why]).await?;
    mail::done_of(tx, &ended).await?;
    if ended.len() < limit {
        tx.change(sql!("mesh_set_swept"), &[&aged]).await?;
    }
    Ok(ended.len() as u64)
}

/// Each log from its floor up, so that what is left of it stays without a gap.
pub(super) async fn prune_messages(tx: &Tx, before: Timestamp, limit: usize) -> Result<Pruned, StorageError> {
    let mut pruned = 0;
    for log in tx.all(sql!("logs_to_prune"), &[&before.as_micros()]).await? {
        if pruned == limit {
            break;
        }
        pruned += prune_log(tx, log.try_get(0)?, before, limit - pruned).await?;
    }
    Ok(Pruned { messages: pruned as u64, more: pruned == limit })
}

pub(super) async fn prune_log(
    tx: &Tx,
    log: i64,
    before: Timestamp,
    limit: usize,
) -> Result<usize, StorageError> {
    // Locked, so that its floor and its rows are moved by one janitor at a time.
    tx.one(sql!("log_lock"), &[&log]).await?;
    let rows = tx.all(sql!("messages_to_prune"), &[&log, &bound(limit)]).await?;
    let mut numbers: Vec<i64> = Vec::with_capacity(rows.len());
    for row in &rows {
        if at(row, 1)? >= before {
            break;
        }
        numbers.push(row.try_get(0)?);
    }
    let Some(last) = numbers.last() else { return Ok(0) };
    tx.change(sql!("conversation_raise_floor"), &[&log, last]).await?;
    tx.change(sql!("dedupe_history_gone"), &[&numbers]).await?;
    // After the dedupe rows: whoever forgets one of them meanwhile is waited for, and has noted its message by then.
    tx.change(sql!("outlived_delete"), &[&numbers]).await?;
    let deliveries = tx.all(sql!("delivery_delete"), &[&numbers]).await?;
    mail::done_of(tx, &deliveries).await?;
    tx.change(sql!("mention_delete"), &[&numbers]).await?;
    tx.change(sql!("message_delete"), &[&numbers]).await?;
    Ok(numbers.len())
}

/// Used things stay a while, so that a late copy is told what happened to it.
pub(super) async fn sweep_way_in(tx: &Tx, aged: Timestamp) -> Result<u64, StorageError> {
    Ok(tx.change(sql!("nonce_sweep"), &[&aged.as_micros()]).await?
        + tx.change(sql!("challenge_sweep"), &[&ago(aged, NONCE_KEPT)]).await?
        + tx.change(sql!("ticket_sweep"), &[&ago(aged, TICKET_KEPT)]).await?
        + tx.change(sql!("invite_sweep"), &[&ago(aged, TICKET_KEPT)]).await?
        + tx.change(sql!("escalation_sweep"), &[&ago(aged, ESCALATION_KEPT)]).await?
        + signin::sweep(tx, aged).await?)
}

/// The whole audit reads from one snapshot.
pub(super) async fn orphans(tx: &Tx, before: Timestamp, limit: usize) -> Result<Vec<Orphan>, StorageError> {
    let (before, now, bound) = (before.as_micros(), tx.now.as_micros(), bound(limit));
    let mut orphans = Vec::new();
    for row in tx.all(sql!("audit_dedupe"), &[&before, &bound]).await? {
        orphans.extend(id_option(&row, 0)?.map(Orphan::BodyMissing));
    }
    for row in tx.all(sql!("audit_places"), &[&bound]).await? {
        orphans.extend(id_option(&row, 0)?.map(Orphan::PlaceMismatch));
    }
    for row in tx.all(sql!("audit_messages"), &[&before, &now, &bound]).await? {
        orphans.extend(id_option(&row, 0)?.map(Orphan::MessageWithoutDedupe));
    }
    for row in tx.all(sql!("audit_directs"), &[&bound]).await? {
        orphans.extend(id_option(&row, 0)?.map(Orphan::DirectWithoutDelivery));
    }
    for row in tx.all(sql!("audit_deliveries"), &[&before, &now, &bound]).await? {
        orphans.push(delivery_orphan(&row)?);
    }
    for row in tx.all(sql!("audit_mentions"), &[&bound]).await? {
        orphans.push(Orphan::MentionWithoutMessage { message: row.try_get(0)? });
    }
    orphans.truncate(limit);
    Ok(orphans)
}

fn delivery_orphan(row: &Row) -> Result<Orphan, StorageError> {
    Ok(match (id_option(row, 0)?, row.try_get(2)?) {
        (None, _) => Orphan::DeliveryWithoutMessage { message: row.try_get(1)? },
        (Some(message), true) => Orphan::DeliveryWithoutDedupe(message),
        (Some(message), false) => Orphan::DeliveryOutsideMail(message),
    })
}

fn ago(at: Timestamp, span: Duration) -> i64 {
    at.as_micros() - micros(span)
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
