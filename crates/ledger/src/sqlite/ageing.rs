//! The durable record of what was seen of the clock.

use std::time::Duration;

use ::sqlite::rusqlite::{Connection, Row, params};
use model::Timestamp;
use model::ageing::{AgeingRecord, ClockDoubt};

use super::row::{at, at_option, change, one};
use super::sql;
use super::store::World;
use crate::StorageError;
use crate::ageing::ClockLook;

/// Looks at the clock, and keeps what was seen.
pub(super) fn look(conn: &Connection, world: &World) -> Result<ClockLook, StorageError> {
    let (wall, running) = (world.now(), world.clock.monotonic());
    let stored = match one(conn, sql!("ageing_record"), [], record)? {
        Some(record) => record,
        None => AgeingRecord::new(begin(conn, wall)?),
    };
    let record = world.watch.look(stored, wall, running);
    let since = record.doubt.map(|doubt| doubt.since.as_micros());
    let least = record.doubt.map(|doubt| i64::try_from(doubt.least.as_micros()).unwrap_or(i64::MAX));
    let params = params![record.borne_out.as_micros(), record.reached.as_micros(), since, least];
    change(conn, sql!("ageing_record_put"), params)?;
    Ok(world.watch.keep(record, wall, running))
}

/// Books without a record begin at their last sweep; those that were never swept hold nothing old.
fn begin(conn: &Connection, wall: Timestamp) -> Result<Timestamp, StorageError> {
    let swept = one(conn, sql!("mesh_swept"), [], |row| at(row, 0))?;
    Ok(swept.filter(|swept| *swept > Timestamp::default()).unwrap_or(wall))
}

/// borne_out_at, reached_at, doubted_since, doubted_least
fn record(row: &Row<'_>) -> ::sqlite::rusqlite::Result<AgeingRecord> {
    let least = row.get::<_, Option<i64>>(3)?.map(|least| Duration::from_micros(least.unsigned_abs()));
    let doubt = at_option(row, 2)?.zip(least).map(|(since, least)| ClockDoubt { since, least });
    Ok(AgeingRecord { borne_out: at(row, 0)?, reached: at(row, 1)?, doubt })
}
