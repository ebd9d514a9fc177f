//! API tokens.

use ::sqlite::rusqlite::{Connection, Row, params};
use model::Timestamp;

use super::row::{all, at, at_option, change, code, count, member, one};
use super::window::bound;
use super::{manage, sql};
use crate::types::manage::{ApiToken, NewToken, Scopes, TokenId};
use crate::types::wayin::SecretHash;
use crate::{ManageError, StorageError};

pub(super) fn create(conn: &Connection, now: Timestamp, token: &NewToken) -> Result<ApiToken, ManageError> {
    let member = manage::live(conn, token.member)?;
    let params = params![token.hash.0, member.number, token.scopes.code(), now.as_micros()];
    change(conn, sql!("token_insert"), params)?;
    resolve(conn, token.hash)?.ok_or_else(|| ManageError::MemberNotFound(token.member.to_string()))
}

pub(super) fn list(conn: &Connection) -> Result<Vec<ApiToken>, StorageError> {
    Ok(all(conn, sql!("tokens"), [], api_token)?)
}

pub(super) fn revoke(conn: &Connection, now: Timestamp, id: TokenId) -> Result<bool, StorageError> {
    let number = bound(usize::try_from(id.0).unwrap_or(usize::MAX));
    Ok(change(conn, sql!("token_revoke"), params![number, now.as_micros()])? == 1)
}

pub(super) fn resolve(conn: &Connection, hash: SecretHash) -> Result<Option<ApiToken>, StorageError> {
    Ok(one(conn, sql!("token_live"), [hash.0], api_token)?)
}

fn api_token(row: &Row<'_>) -> ::sqlite::rusqlite::Result<ApiToken> {
    Ok(ApiToken {
        id: TokenId(count(row, 0)?),
        scopes: code(row, 1, Scopes::from_code)?,
        created_at: at(row, 2)?,
        revoked_at: at_option(row, 3)?,
        member: member(row, 4)?,
    })
}
