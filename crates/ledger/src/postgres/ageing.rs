//! The durable record of what was seen of the database's clock, shared by all brokers. Each counts running time by
//! itself, and the record takes what any of them bears out.

use std::time::Duration;

use model::Timestamp;
use model::ageing::{AgeingRecord, ClockDoubt, ForgottenRecord};
use tokio_postgres::Row;

use super::row::{at, at_option};
use super::session::Tx;
use super::sql;
use crate::StorageError;
use crate::ageing::ClockLook;

/// Looks at the clock, and keeps what was seen.
pub(super) async fn look(tx: &Tx) -> Result<ClockLook, StorageError> {
    let (stored, forgotten) = match tx.one(sql!("ageing_record"), &[]).await? {
        Some(row) => records(&row)?,
        None => (AgeingRecord::new(begin(tx).await?), ForgottenRecord::EMPTY),
    };
    let running = tx.running();
    let record = tx.watch().look(stored, tx.now, running);
    let since = record.doubt.map(|doubt| doubt.since.as_micros());
    let least = record.doubt.map(|doubt| i64::try_from(doubt.least.as_micros()).unwrap_or(i64::MAX));
    let (borne_out, reached) = (record.borne_out.as_micros(), record.reached.as_micros());
    tx.change(sql!("ageing_record_put"), &[&borne_out, &reached, &since, &least]).await?;
    Ok(tx.watch().keep(record, forgotten, tx.now, running))
}

/// Records what the transaction under way forgets. It was told by a look which of it is old.
pub(super) async fn forget(tx: &Tx, more: ForgottenRecord) -> Result<(), StorageError> {
    if more == ForgottenRecord::EMPTY {
        return Ok(());
    }
    let record = tx.watch().forget(more);
    let (ids, deadline) = (record.ids_tried_upto.as_micros(), record.ids_deadline_upto.as_micros());
    match tx.change(sql!("forgotten_put"), &[&ids, &deadline, &record.keys_made_upto.as_micros()]).await? {
        1 => Ok(()),
        _ => Err(StorageError::Broken { what: "forgetting before a look at the clock".to_owned() }),
    }
}

/// Books without a record begin at their last sweep; those that were never swept hold nothing old.
async fn begin(tx: &Tx) -> Result<Timestamp, StorageError> {
    let swept = tx.one(sql!("mesh_swept"), &[]).await?.map(|row| at(&row, 0)).transpose()?;
    Ok(swept.filter(|swept| *swept > Timestamp::default()).unwrap_or(tx.now))
}

/// borne_out_at, reached_at, doubted_since, doubted_least, ids_tried_upto, ids_deadline_upto, keys_made_upto
pub(super) fn records(row: &Row) -> Result<(AgeingRecord, ForgottenRecord), StorageError> {
    let empty = ForgottenRecord::EMPTY;
    let forgotten = ForgottenRecord {
        ids_tried_upto: at_option(row, 4)?.unwrap_or(empty.ids_tried_upto),
        ids_deadline_upto: at_option(row, 5)?.unwrap_or(empty.ids_deadline_upto),
        keys_made_upto: at_option(row, 6)?.unwrap_or(empty.keys_made_upto),
    };
    let least = row.try_get::<_, Option<i64>>(3)?.map(|least| Duration::from_micros(least.unsigned_abs()));
    let doubt = at_option(row, 2)?.zip(least).map(|(since, least)| ClockDoubt { since, least });
    Ok((AgeingRecord { borne_out: at(row, 0)?, reached: at(row, 1)?, doubt }, forgotten))
}
