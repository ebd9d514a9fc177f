//! Appends that wait stand in the order they came until they are sorted by order key, a bounded number at once: each of
//! their indexes is a page more to write at every receipt, and nobody reads one before the upstream is back.

use model::Timestamp;
use model::relay::Status;
use model::route_class::{OrderKey, RouteClass};
use rusqlite::{Connection, named_params};

use super::sql;
use crate::column::Sql;
use crate::sorting::Sorting;

/// Whether a new write may stand where it came. Nothing is looked up by the key of such a write before all are sorted.
pub(super) fn may_wait(status: Status, class: RouteClass, key: &OrderKey) -> bool {
    status == Status::Queued && class == RouteClass::Append && key.is_append()
}

/// Sorts the next writes; whether all are sorted now.
pub(super) fn some(conn: &Connection, now: Timestamp) -> rusqlite::Result<bool> {
    Sorting { state: sql::SORT_STATE, put: sql::SORT_PUT }.some(conn, |after, upto| {
        let rows = named_params! {":after": after, ":upto": upto, ":now": Sql(&now)};
        conn.prepare_cached(sql::SORT_ROWS)?.execute(rows)
    })
}

/// Sorts them all.
pub(super) fn all(conn: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    while !some(conn, now)? {}
    Ok(())
}
