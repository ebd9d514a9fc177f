//! Browsers: links with which they sign in, their sessions, and tickets for their sockets.

use model::limits::{SESSION_TTL, SIGN_IN_TTL, TICKET_TTL};
use model::{MemberId, Timestamp};

use super::row::{at, bytes, member};
use super::session::Tx;
use super::{manage, sql};
use crate::types::chat::Session;
use crate::types::wayin::SecretHash;
use crate::{ManageError, StorageError};

pub(super) async fn create(tx: &Tx, key: SecretHash, member: MemberId) -> Result<Timestamp, ManageError> {
    let member = manage::live(tx, member).await?;
    let expires_at = tx.now + SIGN_IN_TTL;
    let key = key.0.as_slice();
    tx.change(sql!("sign_in_insert"), &[&key, &member.number, &expires_at.as_micros()]).await?;
    Ok(expires_at)
}

/// Uses the key and stores the session, or neither.
pub(super) async fn open(
    tx: &Tx,
    key: SecretHash,
    session: SecretHash,
) -> Result<Option<Session>, StorageError> {
    let (now, key, hash) = (tx.now.as_micros(), key.0.as_slice(), session.0.as_slice());
    let Some(row) = tx.one(sql!("sign_in_use"), &[&key, &now]).await? else { return Ok(None) };
    let member: i64 = row.try_get(0)?;
    let until = (tx.now + SESSION_TTL).as_micros();
    tx.change(sql!("session_insert"), &[&hash, &member, &now, &until]).await?;
    resolve(tx, session).await
}

pub(super) async fn resolve(tx: &Tx, session: SecretHash) -> Result<Option<Session>, StorageError> {
    let row = tx.one(sql!("session_live"), &[&session.0.as_slice(), &tx.now.as_micros()]).await?;
    row.map(|row| Ok(Session { member: member(&row, 0)?, expires_at: at(&row, 6)? })).transpose()
}

pub(super) async fn end(tx: &Tx, session: SecretHash) -> Result<bool, StorageError> {
    Ok(tx.change(sql!("session_end"), &[&session.0.as_slice(), &tx.now.as_micros()]).await? == 1)
}

pub(super) async fn create_ticket(
    tx: &Tx,
    ticket: SecretHash,
    credential: SecretHash,
) -> Result<Timestamp, StorageError> {
    let expires_at = tx.now + TICKET_TTL;
    let (ticket, credential) = (ticket.0.as_slice(), credential.0.as_slice());
    tx.change(sql!("socket_ticket_insert"), &[&ticket, &credential, &expires_at.as_micros()]).await?;
    Ok(expires_at)
}

pub(super) async fn use_ticket(tx: &Tx, ticket: SecretHash) -> Result<Option<SecretHash>, StorageError> {
    let row = tx.one(sql!("socket_ticket_use"), &[&ticket.0.as_slice(), &tx.now.as_micros()]).await?;
    row.map(|row| bytes(&row, 0).map(SecretHash)).transpose()
}

pub(super) async fn sweep(tx: &Tx, aged: Timestamp) -> Result<u64, StorageError> {
    let now = aged.as_micros();
    Ok(tx.change(sql!("sign_in_sweep"), &[&now]).await?
        + tx.change(sql!("session_sweep"), &[&now]).await?
        + tx.change(sql!("socket_ticket_sweep"), &[&now]).await?)
}
