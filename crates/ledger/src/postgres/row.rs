//! Columns as values. A stored value that breaks its rule is an error, not a panic.

use std::fmt::Debug;
use std::str::FromStr;

use model::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::StorageError;
use crate::types::mesh::{Member, Role, kind_from_code};

type Result<T> = std::result::Result<T, StorageError>;

fn broken(what: impl Debug) -> StorageError {
    StorageError::Broken { what: format!("{what:?}") }
}

/// Text that must parse.
pub(super) fn text<T: FromStr>(row: &Row, column: usize) -> Result<T> {
    let text: &str = row.try_get(column)?;
    text.parse().map_err(|_| broken(text))
}

/// Text that must parse when it is there.
pub(super) fn text_option<T: FromStr>(row: &Row, column: usize) -> Result<Option<T>> {
    let text: Option<&str> = row.try_get(column)?;
    text.map(|text| text.parse().map_err(|_| broken(text))).transpose()
}

/// An id.
pub(super) fn id<T: From<Uuid>>(row: &Row, column: usize) -> Result<T> {
    Ok(row.try_get::<_, Uuid>(column)?.into())
}

/// An id that may be absent.
pub(super) fn id_option<T: From<Uuid>>(row: &Row, column: usize) -> Result<Option<T>> {
    Ok(row.try_get::<_, Option<Uuid>>(column)?.map(T::from))
}

/// A number that must be one of an enum's.
pub(super) fn code<T>(row: &Row, column: usize, from_code: fn(i64) -> Option<T>) -> Result<T> {
    let code: i16 = row.try_get(column)?;
    from_code(code.into()).ok_or_else(|| broken(code))
}

/// An instant.
pub(super) fn at(row: &Row, column: usize) -> Result<Timestamp> {
    Ok(Timestamp::from_micros(row.try_get(column)?))
}

/// An instant that may not have come.
pub(super) fn at_option(row: &Row, column: usize) -> Result<Option<Timestamp>> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(Timestamp::from_micros))
}

/// A number that cannot be negative.
pub(super) fn count(row: &Row, column: usize) -> Result<u64> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number).map_err(|_| broken(number))
}

/// An epoch of a log.
pub(super) fn epoch(row: &Row, column: usize) -> Result<model::Epoch> {
    let number: i64 = row.try_get(column)?;
    number.try_into().map_err(|_| broken(number))
}

/// So many bytes.
pub(super) fn bytes<const N: usize>(row: &Row, column: usize) -> Result<[u8; N]> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes.try_into().map_err(|_| broken(bytes))
}

/// The columns of `member` as every statement lists them: id, name, kind, home's name, role, removed_at.
pub(super) fn member(row: &Row, first: usize) -> Result<Member> {
    Ok(Member {
        id: id(row, first)?,
        name: text(row, first + 1)?,
        kind: code(row, first + 2, kind_from_code)?,
        home: text_option(row, first + 3)?,
        role: code(row, first + 4, Role::from_code)?,
        removed_at: at_option(row, first + 5)?,
    })
}

/// A stored number of an enum.
pub(super) fn small(code: u8) -> i16 {
    code.into()
}

/// A limit as PostgreSQL takes it.
pub(super) fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
