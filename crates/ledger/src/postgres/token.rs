//! API tokens.

use tokio_postgres::Row;

use super::row::{at, at_option, bound, code, count, member, small};
use super::session::Tx;
use super::{manage, sql};
use crate::types::manage::{ApiToken, NewToken, Scopes, TokenId};
use crate::types::wayin::SecretHash;
use crate::{ManageError, StorageError};

pub(super) async fn create(tx: &Tx, token: &NewToken) -> Result<ApiToken, ManageError> {
    let member = manage::live(tx, token.member).await?;
    let (hash, scopes) = (token.hash.0.as_slice(), small(token.scopes.code()));
    tx.change(sql!("token_insert"), &[&hash, &member.number, &scopes, &tx.now.as_micros()]).await?;
    let made = resolve(tx, token.hash).await?;
    made.ok_or_else(|| ManageError::MemberNotFound(token.member.to_string()))
}

pub(super) async fn list(tx: &Tx) -> Result<Vec<ApiToken>, StorageError> {
    tx.all(sql!("tokens"), &[]).await?.iter().map(api_token).collect()
}

pub(super) async fn revoke(tx: &Tx, id: TokenId) -> Result<bool, StorageError> {
    let number = bound(usize::try_from(id.0).unwrap_or(usize::MAX));
    Ok(tx.change(sql!("token_revoke"), &[&number, &tx.now.as_micros()]).await? == 1)
}

pub(super) async fn resolve(tx: &Tx, hash: SecretHash) -> Result<Option<ApiToken>, StorageError> {
    tx.one(sql!("token_live"), &[&hash.0.as_slice()]).await?.as_ref().map(api_token).transpose()
}

fn api_token(row: &Row) -> Result<ApiToken, StorageError> {
    Ok(ApiToken {
        id: TokenId(count(row, 0)?),
        scopes: code(row, 1, Scopes::from_code)?,
        created_at: at(row, 2)?,
        revoked_at: at_option(row, 3)?,
        member: member(row, 4)?,
    })
}
