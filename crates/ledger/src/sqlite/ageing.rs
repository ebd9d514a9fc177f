//! The durable record of what was seen of the clock.

use std::time::Duration;

use ::sqlite::rusqlite::{Connection, Row, params};
use model::Timestamp;
use model::ageing::{AgeingRecord, ClockDoubt, ForgottenRecord};

use super::row::{at, at_option, change, one};
use super::sql;
use super::store::World;
use crate::StorageError;
use crate::ageing::ClockLook;

/// Looks at the clock, and keeps what was seen.
pub(super) fn look(conn: &Connection, world: &World) -> Result<ClockLook, StorageError> {
    let (wall, running) = (world.now(), world.clock.monotonic());
    let (stored, forgotten) = match stored(conn)? {
        Some(records) => records,
        None => (AgeingRecord::new(begin(conn, wall)?), ForgottenRecord::EMPTY),
    };
    let record = world.watch.look(stored, wall, running);
    let since = record.doubt.map(|doubt| doubt.since.as_micros());
    let least = record.doubt.map(|doubt| i64::try_from(doubt.least.as_micros()).unwrap_or(i64::MAX));
    let params = params![record.borne_out.as_micros(), record.reached.as_micros(), since, least];
    change(conn, sql!("ageing_record_put"), params)?;
    Ok(world.watch.keep(record, forgotten, wall, running))
}

/// The records, if there are any.
pub(super) fn stored(conn: &Connection) -> Result<Option<(AgeingRecord, ForgottenRecord)>, StorageError> {
    Ok(one(conn, sql!("ageing_record"), [], |row| Ok((record(row)?, forgotten(row)?)))?)
}

/// Records what the transaction under way forgets. It was told by a look which of it is old.
pub(super) fn forget(conn: &Connection, world: &World, more: ForgottenRecord) -> Result<(), StorageError> {
    if more == ForgottenRecord::EMPTY {
        return Ok(());
    }
    let record = world.watch.forget(more);
    let params = params![
        record.ids_tried_upto.as_micros(),
        record.ids_deadline_upto.as_micros(),
        record.keys_made_upto.as_micros()
    ];
    match change(conn, sql!("forgotten_put"), params)? {
        1 => Ok(()),
        _ => Err(StorageError::Broken { what: "forgetting before a look at the clock".to_owned() }),
    }
}

/// Books without a record begin at their last sweep; those that were never swept hold nothing old.
fn begin(conn: &Connection, wall: Timestamp) -> Result<Timestamp, StorageError> {
    let swept = one(conn, sql!("mesh_swept"), [], |row| at(row, 0))?;
    Ok(swept.filter(|swept| *swept > Timestamp::default()).unwrap_or(wall))
}

/// From the fifth column on: ids_tried_upto, ids_deadline_upto, keys_made_upto
fn forgotten(row: &Row<'_>) -> ::sqlite::rusqlite::Result<ForgottenRecord> {
    let empty = ForgottenRecord::EMPTY;
    Ok(ForgottenRecord {
        ids_tried_upto: at_option(row, 4)?.unwrap_or(empty.ids_tried_upto),
        ids_deadline_upto: at_option(row, 5)?.unwrap_or(empty.ids_deadline_upto),
        keys_made_upto: at_option(row, 6)?.unwrap_or(empty.keys_made_upto),
    })
}

/// borne_out_at, reached_at, doubted_since, doubted_least
fn record(row: &Row<'_>) -> ::sqlite::rusqlite::Result<AgeingRecord> {
    let least = row.get::<_, Option<i64>>(3)?.map(|least| Duration::from_micros(least.unsigned_abs()));
    let doubt = at_option(row, 2)?.zip(least).map(|(since, least)| ClockDoubt { since, least });
    Ok(AgeingRecord { borne_out: at(row, 0)?, reached: at(row, 1)?, doubt })
}
