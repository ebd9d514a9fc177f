//! Columns as values. A stored value that breaks its rule is an error of the row, not a panic.

use std::fmt;
use std::str::FromStr;

use ::sqlite::rusqlite::types::Type;
use ::sqlite::rusqlite::{Connection, Error, OptionalExtension, Params, Result, Row, Statement};
use model::Timestamp;

use crate::types::mesh::{Member, Role, kind_from_code};

/// A value no rule of this program writes.
#[derive(Debug, thiserror::Error)]
#[error("the ledger holds {0}, which no rule of this program writes")]
struct Broken(String);

fn broken(column: usize, what: impl fmt::Debug) -> Error {
    Error::FromSqlConversionFailure(column, Type::Null, Box::new(Broken(format!("{what:?}"))))
}

/// Text that must parse.
pub(super) fn text<T: FromStr>(row: &Row<'_>, column: usize) -> Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    text.parse().map_err(|_| broken(column, text))
}

/// Text that must parse when it is there.
pub(super) fn text_option<T: FromStr>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    match row.get_ref(column)?.as_str_or_null()? {
        Some(text) => text.parse().map(Some).map_err(|_| broken(column, text)),
        None => Ok(None),
    }
}

/// Sixteen bytes of an id.
pub(super) fn id<T>(row: &Row<'_>, column: usize, from_bytes: fn([u8; 16]) -> T) -> Result<T> {
    row.get(column).map(from_bytes)
}

/// A number that must be one of an enum's.
pub(super) fn code<T>(row: &Row<'_>, column: usize, from_code: fn(i64) -> Option<T>) -> Result<T> {
    let code: i64 = row.get(column)?;
    from_code(code).ok_or_else(|| broken(column, code))
}

/// An instant.
pub(super) fn at(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    row.get(column).map(Timestamp::from_micros)
}

/// An instant that may not have come.
pub(super) fn at_option(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_micros))
}

/// A number that cannot be negative.
pub(super) fn count(row: &Row<'_>, column: usize) -> Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| broken(column, number))
}

/// The columns of `member` as every statement lists them: id, name, kind, home's name, role, removed_at.
pub(super) fn member(row: &Row<'_>, first: usize) -> Result<Member> {
    Ok(Member {
        id: id(row, first, model::MemberId::from_bytes)?,
        name: text(row, first + 1)?,
        kind: code(row, first + 2, kind_from_code)?,
        home: text_option(row, first + 3)?,
        role: code(row, first + 4, Role::from_code)?,
        removed_at: at_option(row, first + 5)?,
    })
}

/// At most one row of a statement that is asked again and again.
pub(super) fn first<T>(
    statement: &mut Statement<'_>,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    statement.query_row(params, read).optional()
}

/// At most one row.
pub(super) fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    first(&mut *conn.prepare_cached(sql)?, params, read)
}

/// All rows.
pub(super) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    conn.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// Runs a statement and counts what it changed.
pub(super) fn change(conn: &Connection, sql: &str, params: impl Params) -> Result<usize> {
    conn.prepare_cached(sql)?.execute(params)
}
