//! Browsers: links with which they sign in, their sessions, and tickets for their sockets.

use ::sqlite::rusqlite::{Connection, params};
use model::limits::{SESSION_TTL, SIGN_IN_TTL, TICKET_TTL};
use model::{MemberId, Timestamp};

use super::row::{at, change, member, one};
use super::{manage, sql};
use crate::types::chat::Session;
use crate::types::wayin::SecretHash;
use crate::{ManageError, StorageError};

pub(super) fn create(
    conn: &Connection,
    now: Timestamp,
    key: SecretHash,
    member: MemberId,
) -> Result<Timestamp, ManageError> {
    let member = manage::live(conn, member)?;
    let expires_at = now + SIGN_IN_TTL;
    change(conn, sql!("sign_in_insert"), params![key.0, member.number, expires_at.as_micros()])?;
    Ok(expires_at)
}

/// Uses the key and stores the session, or neither.
pub(super) fn open(
    conn: &Connection,
    now: Timestamp,
    key: SecretHash,
    session: SecretHash,
) -> Result<Option<Session>, StorageError> {
    let used = params![key.0, now.as_micros()];
    let member = one(conn, sql!("sign_in_use"), used, |row| row.get::<_, i64>(0))?;
    let Some(member) = member else { return Ok(None) };
    let until = now + SESSION_TTL;
    let params = params![session.0, member, now.as_micros(), until.as_micros()];
    change(conn, sql!("session_insert"), params)?;
    resolve(conn, now, session)
}

pub(super) fn resolve(
    conn: &Connection,
    now: Timestamp,
    session: SecretHash,
) -> Result<Option<Session>, StorageError> {
    Ok(one(conn, sql!("session_live"), params![session.0, now.as_micros()], |row| {
        Ok(Session { member: member(row, 0)?, expires_at: at(row, 6)? })
    })?)
}

pub(super) fn end(conn: &Connection, now: Timestamp, session: SecretHash) -> Result<bool, StorageError> {
    Ok(change(conn, sql!("session_end"), params![session.0, now.as_micros()])? == 1)
}

pub(super) fn create_ticket(
    conn: &Connection,
    now: Timestamp,
    ticket: SecretHash,
    credential: SecretHash,
) -> Result<Timestamp, StorageError> {
    let expires_at = now + TICKET_TTL;
    change(conn, sql!("socket_ticket_insert"), params![ticket.0, credential.0, expires_at.as_micros()])?;
    Ok(expires_at)
}

pub(super) fn use_ticket(
    conn: &Connection,
    now: Timestamp,
    ticket: SecretHash,
) -> Result<Option<SecretHash>, StorageError> {
    let used = params![ticket.0, now.as_micros()];
    Ok(one(conn, sql!("socket_ticket_use"), used, |row| row.get(0).map(SecretHash))?)
}

pub(super) fn sweep(conn: &Connection, now: Timestamp) -> Result<usize, StorageError> {
    let at = [now.as_micros()];
    Ok(change(conn, sql!("sign_in_sweep"), at)?
        + change(conn, sql!("session_sweep"), at)?
        + change(conn, sql!("socket_ticket_sweep"), at)?)
}
