//! The hub's records and keys.
//!
//! - A transaction locks the heads of the kinds it changes first, in their order: whoever holds a kind's head is
//!   alone with its records, and the places it gives are in the order of commits.
//! - A key that another transaction commits after it was looked up breaks the primary key of `idem`: the batch is
//!   undone and judged again.

use std::collections::BTreeMap;

use model::admission::{Known, KnownState};
use model::ageing::ForgottenRecord;
use model::hub::{Held, RecordId, RecordKind, Standing, key_expires_at};
use model::{ClientMessageId, Fingerprint, MemberId, MessageId, Timestamp};
use tokio_postgres::Row;

use super::row::{at, bound, bytes, code, count, small, text};
use super::session::Tx;
use super::{accept, ageing, mesh, sql, status};
use crate::StorageError;
use crate::hub::{self, KeyRow, Put, applied, asked, judge_all, settled};
use crate::types::hub::{
    HubAnswer, HubApplied, HubEffect, HubKeyStatus, HubKnown, HubOutcome, HubPage, HubRecord, HubRefusal,
    HubWrite,
};
use crate::types::status::StatusQuestion;

/// The state of a key as it is stored; anything else is retired.
const STORED: i16 = 0;

/// Locks the heads that `writes` move.
pub(super) async fn lock(tx: &Tx, writes: &[HubWrite]) -> Result<(), StorageError> {
    let changed = writes.iter().filter_map(|write| hub::changes(&write.effect));
    let kinds: Vec<i16> = changed.map(|(kind, _)| small(kind.code())).collect();
    if !kinds.is_empty() {
        tx.all(sql!("hub_lock"), &[&kinds]).await?;
    }
    Ok(())
}

/// Makes a write, but leaves its key to [`store_key`] in the same transaction.
pub(super) async fn write(tx: &Tx, write: &HubWrite) -> Result<(HubOutcome, Option<KeyRow>), StorageError> {
    let refused = |refusal| Ok((HubOutcome::Refused(refusal), None));
    let principal = match accept::member_by_id(tx, write.principal).await? {
        Some(member) if !member.removed => member.number,
        Some(_) | None => return refused(HubRefusal::Revoked),
    };
    if let Some(key) = &write.key
        && let Some(outcome) =
            settled(known_to(tx, principal, &key.key).await?, key, &tx.forgotten_upto(tx.now))
    {
        return Ok((outcome, None));
    }
    let done = match &write.effect {
        HubEffect::Read(id) => match read_message(tx, principal, *id).await? {
            Some(read_at) => HubApplied::Read { id: *id, read_at },
            None => return refused(HubRefusal::NoSuchMessage),
        },
        HubEffect::Record { .. } | HubEffect::Batch { .. } => {
            match judge_all(&write.effect, standings(tx, &write.effect).await?, tx.now) {
                Ok(puts) => put_all(tx, principal, &write.effect, &puts).await?,
                Err(refusal) => return refused(refusal),
            }
        }
    };
    let answer = (write.render)(&done);
    let row = write.key.clone().map(|key| KeyRow { principal, key, answer: answer.clone(), at: tx.now });
    Ok((HubOutcome::Applied(answer), row))
}

/// Writes a key's row.
pub(super) async fn store_key(tx: &Tx, row: &KeyRow) -> Result<(), StorageError> {
    let KeyRow { principal, key, answer, at } = row;
    let status = i16::try_from(answer.status).unwrap_or(i16::MAX);
    let (id, fingerprint) = (key.key.as_str(), key.fingerprint.as_bytes().as_slice());
    let until = key_expires_at((*at).max(tx.watch().reached())).as_micros();
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 10] = [
        principal,
        &id,
        &key.method,
        &key.path,
        &fingerprint,
        &status,
        &answer.etag,
        &answer.body,
        &at.as_micros(),
        &until,
    ];
    tx.change(sql!("idem_insert"), &params).await?;
    Ok(())
}

async fn standings(tx: &Tx, effect: &HubEffect) -> Result<BTreeMap<RecordId, Standing>, StorageError> {
    let Some((kind, changes)) = hub::changes(effect) else { return Ok(BTreeMap::new()) };
    let mut standings = BTreeMap::new();
    for (id, ..) in changes {
        let found = tx.one(sql!("hub_standing"), &[&small(kind.code()), &id.as_str()]).await?;
        let standing = found.as_ref().map(standing).transpose()?;
        standings.insert(id.clone(), standing.unwrap_or(Standing::Absent));
    }
    Ok(standings)
}

async fn put_all(
    tx: &Tx,
    principal: i64,
    effect: &HubEffect,
    puts: &[Put],
) -> Result<HubApplied, StorageError> {
    let Some((kind, _)) = hub::changes(effect) else { return Ok(HubApplied::Batch(Vec::new())) };
    let number = small(kind.code());
    for put in puts {
        let place = tx.one(sql!("hub_place"), &[&number]).await?;
        let seq: i64 = place.map_or(Ok(0), |row| row.try_get(0))?;
        let version = i64::try_from(put.version).unwrap_or(i64::MAX);
        let (id, at) = (put.id.as_str(), put.at.as_micros());
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
            [&number, &id, &version, &seq, &put.body, &principal, &at];
        if tx.change(sql!("hub_put"), &params).await? != 1 {
            return Err(StorageError::Broken { what: format!("another version of {id}") });
        }
    }
    let mut records = Vec::with_capacity(puts.len());
    for put in puts.iter().filter(|put| put.body.is_some()) {
        records.extend(record(tx, kind, &put.id).await?);
    }
    Ok(applied(effect, puts, records))
}

async fn read_message(tx: &Tx, recipient: i64, id: MessageId) -> Result<Option<Timestamp>, StorageError> {
    let row = tx.one(sql!("hub_read"), &[&id.as_uuid(), &recipient, &tx.now.as_micros()]).await?;
    row.map(|row| at(&row, 0)).transpose()
}

/// What a principal's key is known for, here or as a message's id.
pub(super) async fn known(
    tx: &Tx,
    principal: MemberId,
    key: &ClientMessageId,
) -> Result<Option<HubKnown>, StorageError> {
    match accept::member_by_id(tx, principal).await? {
        Some(member) => known_to(tx, member.number, key).await,
        None => Ok(None),
    }
}

async fn known_to(tx: &Tx, principal: i64, key: &ClientMessageId) -> Result<Option<HubKnown>, StorageError> {
    if let Some(row) = tx.one(sql!("idem"), &[&principal, &key.as_str()]).await? {
        return stored_key(&row).map(Some);
    }
    Ok(status::known(tx, principal, key).await?.map(of_message))
}

fn of_message(known: Known) -> HubKnown {
    match known.state {
        KnownState::Accepted { receipt, .. } => HubKnown::Message { fingerprint: known.fingerprint, receipt },
        KnownState::Retired => HubKnown::Retired,
    }
}

/// What became of a key.
pub(super) async fn ask(
    tx: &Tx,
    principal: MemberId,
    key: &ClientMessageId,
    created_at: Option<Timestamp>,
) -> Result<HubKeyStatus, StorageError> {
    Ok(asked(known(tx, principal, key).await?, created_at, tx.now, &tx.forgotten_upto(tx.now)).0)
}

/// The same, and a no stays true: a key nobody used is retired, as a message's id too.
pub(super) async fn fence(
    tx: &Tx,
    principal: MemberId,
    key: &ClientMessageId,
    created_at: Option<Timestamp>,
) -> Result<HubKeyStatus, StorageError> {
    let Some(member) = accept::member_by_id(tx, principal).await? else { return Ok(HubKeyStatus::Unknown) };
    let question = StatusQuestion {
        sender: principal,
        client_message_id: key.clone(),
        fingerprint: Fingerprint::from_bytes([0; 32]),
        first_attempt_at: tx.now,
    };
    let window = mesh::read(tx).await?.policies.dedupe;
    let until = key_expires_at(tx.now.max(tx.watch().reached())).as_micros();
    loop {
        let known = known_to(tx, member.number, key).await?;
        let (found, retire) = asked(known, created_at, tx.now, &tx.forgotten_upto(tx.now));
        if !retire {
            return Ok(found);
        }
        let now = tx.now.as_micros();
        // Both inserts wait for whoever is writing the key; if it was faster, the key is looked up anew.
        if tx.change(sql!("idem_retire"), &[&member.number, &key.as_str(), &now, &until]).await? == 0 {
            continue;
        }
        if status::retire(tx, window, member.number, &question).await? {
            return Ok(HubKeyStatus::Retired);
        }
        tx.change(sql!("idem_unretire"), &[&member.number, &key.as_str()]).await?;
    }
}

pub(super) async fn record(
    tx: &Tx,
    kind: RecordKind,
    id: &RecordId,
) -> Result<Option<HubRecord>, StorageError> {
    let row = tx.one(sql!("hub_record"), &[&small(kind.code()), &id.as_str()]).await?;
    row.as_ref().map(hub_record).transpose()
}

pub(super) async fn list(
    tx: &Tx,
    kind: RecordKind,
    after: u64,
    limit: usize,
) -> Result<HubPage, StorageError> {
    let kind = small(kind.code());
    let head = tx.one(sql!("hub_head"), &[&kind]).await?.map_or(Ok(0), |row| count(&row, 0))?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = tx.all(sql!("hub_records"), &[&kind, &after, &bound(limit.saturating_add(1))]).await?;
    let mut records = rows.iter().map(hub_record).collect::<Result<Vec<_>, _>>()?;
    let more = records.len() > limit;
    records.truncate(limit);
    Ok(HubPage { records, head, more })
}

pub(super) async fn expire_keys(tx: &Tx, aged: Timestamp, limit: usize) -> Result<u64, StorageError> {
    let seen = tx.all(sql!("idem_expire"), &[&aged.as_micros(), &bound(limit)]).await?;
    let mut record = ForgottenRecord::EMPTY;
    for row in &seen {
        record = record.with_key(at(row, 0)?);
    }
    ageing::forget(tx, record).await?;
    Ok(seen.len() as u64)
}

/// version, updated_at, body
fn standing(row: &Row) -> Result<Standing, StorageError> {
    let version = count(row, 0)?;
    Ok(match row.try_get(2)? {
        Some(body) => Standing::Present(Held { version, updated_at: at(row, 1)?, body }),
        None => Standing::Deleted { version },
    })
}

/// kind, id, version, body, created_by, created_at, updated_by, updated_at, seq
fn hub_record(row: &Row) -> Result<HubRecord, StorageError> {
    Ok(HubRecord {
        kind: code(row, 0, RecordKind::from_code)?,
        id: text(row, 1)?,
        version: count(row, 2)?,
        body: row.try_get(3)?,
        created_by: text(row, 4)?,
        created_at: at(row, 5)?,
        updated_by: text(row, 6)?,
        updated_at: at(row, 7)?,
        seq: count(row, 8)?,
    })
}

/// state, fingerprint, status, etag, body, created_at
fn stored_key(row: &Row) -> Result<HubKnown, StorageError> {
    if row.try_get::<_, i16>(0)? != STORED {
        return Ok(HubKnown::Retired);
    }
    let status: i16 = row.try_get(2)?;
    Ok(HubKnown::Stored {
        fingerprint: Fingerprint::from_bytes(bytes(row, 1)?),
        answer: HubAnswer {
            changed_at: None,
            status: status.unsigned_abs(),
            etag: row.try_get(3)?,
            body: row.try_get(4)?,
        },
        created_at: at(row, 5)?,
    })
}
