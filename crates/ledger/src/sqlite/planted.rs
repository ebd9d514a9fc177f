//! The planted bug of both stores, in this one: an id is written in a transaction of its own.
//!
//! Only a build with the engine's `faults` can switch it on; proofs must then find a doubled message.

use ::sqlite::rusqlite::types::Value;
use ::sqlite::rusqlite::{Connection, params, params_from_iter};

use super::accept;
use super::row::{change, one};
use super::sql;
use super::store::World;
use crate::types::accept::{Admission, LaneSubmission, Outcome};
use crate::{LinkError, StorageError};

/// Columns of `dedupe`.
const COLUMNS: usize = 13;

/// Dedupe rows on their way to the second transaction.
pub(super) type Lifted = Vec<Vec<Value>>;

/// Accepts, but leaves the ids out.
pub(super) fn accept_without_ids(
    conn: &Connection,
    world: &World,
    lane: &LaneSubmission,
) -> Result<(Vec<Outcome>, Lifted), LinkError> {
    let outcomes = accept::accept(conn, world, lane)?;
    let mut lifted = Vec::new();
    for (message, outcome) in lane.messages.iter().zip(&outcomes) {
        if matches!(outcome, Outcome::Admitted { admission: Admission::New, .. }) {
            let key = params![lane.sender.as_bytes(), message.client_message_id.as_str()];
            let row = one(conn, sql!("dedupe_lift"), key, |row| {
                (0..COLUMNS).map(|column| row.get(column)).collect()
            })?;
            lifted.extend(row);
        }
    }
    Ok((outcomes, lifted))
}

/// Writes the ids, too late.
pub(super) fn write_ids(conn: &Connection, lifted: Lifted) -> Result<(), StorageError> {
    for row in lifted {
        change(conn, sql!("dedupe_lay_down"), params_from_iter(row))?;
    }
    Ok(())
}
