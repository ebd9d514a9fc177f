//! The hub's records and keys.
//!
//! The one writer makes looking and writing one step. Every check comes before the first write, so that a refused
//! write has nothing to undo.

use std::collections::BTreeMap;

use ::sqlite::rusqlite::{Connection, Row, params};
use model::admission::{Known, KnownState};
use model::ageing::{ForgottenRecord, ForgottenUpto};
use model::hub::{Held, RecordId, RecordKind, Standing, key_expires_at};
use model::{ClientMessageId, Fingerprint, MemberId, MessageId, Timestamp};

use super::row::{all, at, change, code, count, one, text};
use super::store::World;
use super::window::bound;
use super::{accept, ageing, mesh, sql, status};
use crate::StorageError;
use crate::hub::{self, KeyRow, Put, applied, asked, judge_all, settled};
use crate::types::hub::{
    HubAnswer, HubApplied, HubEffect, HubKeyStatus, HubKnown, HubOutcome, HubPage, HubRecord, HubRefusal,
    HubWrite,
};
use crate::types::status::StatusQuestion;

/// The state of a key as it is stored; anything else is retired.
const STORED: i64 = 0;

/// Makes a write, but leaves its key to [`store_key`] in the same transaction.
pub(super) fn write(
    conn: &Connection,
    world: &World,
    write: &HubWrite,
) -> Result<(HubOutcome, Option<KeyRow>), StorageError> {
    let now = world.now();
    let refused = |refusal| Ok((HubOutcome::Refused(refusal), None));
    let principal = match accept::member_by_id(conn, write.principal)? {
        Some(member) if !member.removed => member.number,
        Some(_) | None => return refused(HubRefusal::Revoked),
    };
    if let Some(key) = &write.key
        && let Some(outcome) = settled(known_to(conn, principal, &key.key)?, key, &world.forgotten_upto())
    {
        return Ok((outcome, None));
    }
    let done = match &write.effect {
        HubEffect::Read(id) => match read_message(conn, principal, *id, now)? {
            Some(read_at) => HubApplied::Read { id: *id, read_at },
            None => return refused(HubRefusal::NoSuchMessage),
        },
        HubEffect::Record { .. } | HubEffect::Batch { .. } => {
            match judge_all(&write.effect, standings(conn, &write.effect)?, now) {
                Ok(puts) => put_all(conn, principal, &write.effect, &puts)?,
                Err(refusal) => return refused(refusal),
            }
        }
    };
    let answer = (write.render)(&done);
    let row = write.key.clone().map(|key| KeyRow { principal, key, answer: answer.clone(), at: now });
    Ok((HubOutcome::Applied(answer), row))
}

/// Writes a key's row.
pub(super) fn store_key(conn: &Connection, world: &World, row: &KeyRow) -> Result<(), StorageError> {
    let KeyRow { principal, key, answer, at } = row;
    let params = params![
        principal,
        key.key.as_str(),
        key.method,
        key.path,
        key.fingerprint.as_bytes(),
        answer.status,
        answer.etag,
        answer.body,
        at.as_micros(),
        key_expires_at((*at).max(world.watch.reached())).as_micros()
    ];
    change(conn, sql!("idem_insert"), params)?;
    Ok(())
}

fn standings(conn: &Connection, effect: &HubEffect) -> Result<BTreeMap<RecordId, Standing>, StorageError> {
    let Some((kind, changes)) = hub::changes(effect) else { return Ok(BTreeMap::new()) };
    let mut standings = BTreeMap::new();
    for (id, ..) in changes {
        let found = one(conn, sql!("hub_standing"), params![kind.code(), id.as_str()], standing)?;
        standings.insert(id.clone(), found.unwrap_or(Standing::Absent));
    }
    Ok(standings)
}

fn put_all(
    conn: &Connection,
    principal: i64,
    effect: &HubEffect,
    puts: &[Put],
) -> Result<HubApplied, StorageError> {
    let Some((kind, _)) = hub::changes(effect) else { return Ok(HubApplied::Batch(Vec::new())) };
    for put in puts {
        let seq: Option<i64> = one(conn, sql!("hub_place"), [kind.code()], |row| row.get(0))?;
        let version = i64::try_from(put.version).unwrap_or(i64::MAX);
        let (id, at) = (put.id.as_str(), put.at.as_micros());
        let params = params![kind.code(), id, version, seq, put.body, principal, at];
        if change(conn, sql!("hub_put"), params)? != 1 {
            return Err(StorageError::Broken { what: format!("another version of {id}") });
        }
    }
    let mut records = Vec::with_capacity(puts.len());
    for put in puts.iter().filter(|put| put.body.is_some()) {
        records.extend(record(conn, kind, &put.id)?);
    }
    Ok(applied(effect, puts, records))
}

fn read_message(
    conn: &Connection,
    recipient: i64,
    id: MessageId,
    now: Timestamp,
) -> Result<Option<Timestamp>, StorageError> {
    Ok(one(conn, sql!("hub_read"), params![id.as_bytes(), recipient, now.as_micros()], |row| at(row, 0))?)
}

/// What a principal's key is known for, here or as a message's id.
pub(super) fn known(
    conn: &Connection,
    principal: MemberId,
    key: &ClientMessageId,
) -> Result<Option<HubKnown>, StorageError> {
    match accept::member_by_id(conn, principal)? {
        Some(member) => known_to(conn, member.number, key),
        None => Ok(None),
    }
}

fn known_to(
    conn: &Connection,
    principal: i64,
    key: &ClientMessageId,
) -> Result<Option<HubKnown>, StorageError> {
    let stored = one(conn, sql!("idem"), params![principal, key.as_str()], stored_key)?;
    if stored.is_some() {
        return Ok(stored);
    }
    Ok(status::known(conn, principal, key)?.map(of_message))
}

fn of_message(known: Known) -> HubKnown {
    match known.state {
        KnownState::Accepted { receipt, .. } => HubKnown::Message { fingerprint: known.fingerprint, receipt },
        KnownState::Retired => HubKnown::Retired,
    }
}

/// What became of a key.
pub(super) fn ask(
    conn: &Connection,
    now: Timestamp,
    forgotten: &ForgottenUpto,
    principal: MemberId,
    key: &ClientMessageId,
    created_at: Option<Timestamp>,
) -> Result<HubKeyStatus, StorageError> {
    Ok(asked(known(conn, principal, key)?, created_at, now, forgotten).0)
}

/// The same, and a no stays true: a key nobody used is retired, as a message's id too.
pub(super) fn fence(
    conn: &Connection,
    world: &World,
    principal: MemberId,
    key: &ClientMessageId,
    created_at: Option<Timestamp>,
) -> Result<HubKeyStatus, StorageError> {
    let now = world.now();
    let Some(member) = accept::member_by_id(conn, principal)? else { return Ok(HubKeyStatus::Unknown) };
    let (found, retire) =
        asked(known_to(conn, member.number, key)?, created_at, now, &world.forgotten_upto());
    if !retire {
        return Ok(found);
    }
    let until = key_expires_at(now.max(world.watch.reached())).as_micros();
    change(conn, sql!("idem_retire"), params![member.number, key.as_str(), now.as_micros(), until])?;
    let question = StatusQuestion {
        sender: principal,
        client_message_id: key.clone(),
        fingerprint: Fingerprint::from_bytes([0; 32]),
        first_attempt_at: now,
    };
    let kept = world.id_retention(mesh::read(conn)?.policies.dedupe);
    status::retire(conn, now, kept, member.number, &question)?;
    Ok(HubKeyStatus::Retired)
}

pub(super) fn record(
    conn: &Connection,
    kind: RecordKind,
    id: &RecordId,
) -> Result<Option<HubRecord>, StorageError> {
    Ok(one(conn, sql!("hub_record"), params![kind.code(), id.as_str()], hub_record)?)
}

pub(super) fn list(
    conn: &Connection,
    kind: RecordKind,
    after: u64,
    limit: usize,
) -> Result<HubPage, StorageError> {
    let head = one(conn, sql!("hub_head"), [kind.code()], |row| count(row, 0))?.unwrap_or(0);
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let params = params![kind.code(), after, bound(limit.saturating_add(1))];
    let mut records = all(conn, sql!("hub_records"), params, hub_record)?;
    let more = records.len() > limit;
    records.truncate(limit);
    Ok(HubPage { records, head, more })
}

pub(super) fn expire_keys(
    conn: &Connection,
    world: &World,
    aged: Timestamp,
    limit: usize,
) -> Result<u64, StorageError> {
    let seen = all(conn, sql!("idem_expire"), params![aged.as_micros(), bound(limit)], |row| at(row, 0))?;
    let record = seen.iter().fold(ForgottenRecord::EMPTY, |record, seen| record.with_key(*seen));
    ageing::forget(conn, world, record)?;
    Ok(seen.len() as u64)
}

/// version, updated_at, body
fn standing(row: &Row<'_>) -> ::sqlite::rusqlite::Result<Standing> {
    let version = count(row, 0)?;
    Ok(match row.get(2)? {
        Some(body) => Standing::Present(Held { version, updated_at: at(row, 1)?, body }),
        None => Standing::Deleted { version },
    })
}

/// kind, id, version, body, created_by, created_at, updated_by, updated_at, seq
fn hub_record(row: &Row<'_>) -> ::sqlite::rusqlite::Result<HubRecord> {
    Ok(HubRecord {
        kind: code(row, 0, RecordKind::from_code)?,
        id: text(row, 1)?,
        version: count(row, 2)?,
        body: row.get(3)?,
        created_by: text(row, 4)?,
        created_at: at(row, 5)?,
        updated_by: text(row, 6)?,
        updated_at: at(row, 7)?,
        seq: count(row, 8)?,
    })
}

/// state, fingerprint, status, etag, body, created_at
fn stored_key(row: &Row<'_>) -> ::sqlite::rusqlite::Result<HubKnown> {
    if row.get::<_, i64>(0)? != STORED {
        return Ok(HubKnown::Retired);
    }
    Ok(HubKnown::Stored {
        fingerprint: Fingerprint::from_bytes(row.get(1)?),
        answer: HubAnswer { changed_at: None, status: row.get(2)?, etag: row.get(3)?, body: row.get(4)? },
        created_at: at(row, 5)?,
    })
}
