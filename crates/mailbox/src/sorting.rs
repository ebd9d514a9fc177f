//! Rows that came since somebody looked are put in order, in the order they came and a bounded number at once.

use model::limits;
use rusqlite::{Connection, Row, named_params};

/// The statements of one table: how far it is sorted and how far it goes, and how to keep the first.
pub(crate) struct Sorting {
    pub(crate) state: &'static str,
    pub(crate) put: &'static str,
}

impl Sorting {
    /// Has `rows` sort those behind the first place and up to the second; whether all are sorted now.
    pub(crate) fn some(
        &self,
        conn: &Connection,
        rows: impl FnOnce(u64, u64) -> rusqlite::Result<usize>,
    ) -> rusqlite::Result<bool> {
        let read = |row: &Row<'_>| Ok((row.get("upto")?, row.get::<_, Option<u64>>("last")?.unwrap_or(0)));
        let (after, last): (u64, u64) = conn.prepare_cached(self.state)?.query_row([], read)?;
        if last <= after {
            return Ok(true);
        }
        let upto = last.min(after + limits::SORT_ROWS_MAX as u64);
        rows(after, upto)?;
        conn.prepare_cached(self.put)?.execute(named_params! {":upto": upto})?;
        Ok(upto == last)
    }
}
