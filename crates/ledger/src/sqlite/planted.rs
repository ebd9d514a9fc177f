//! Planted bugs that change how this store works: an id is written in a transaction of its own, so that proofs must
//! find a doubled message; messages are stamped before their log's lock, so that they must find a missed one.
//!
//! Only a build with the engine's `faults` can switch them on.

use std::sync::Arc;
use std::time::Duration;

use ::sqlite::rusqlite::types::Value;
use ::sqlite::rusqlite::{Connection, params, params_from_iter};
use model::{Clock, Timestamp};

use super::accept;
use super::row::{change, one};
use super::sql;
use super::store::World;
use crate::types::accept::{LaneSubmission, Outcome};
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
        if matches!(outcome, Outcome::Admitted { admission, .. } if admission.is_new()) {
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

/// A clock that stands where it stood when a message arrived.
struct Arrival {
    at: Timestamp,
    clock: Arc<dyn Clock>,
}

impl Clock for Arrival {
    fn now(&self) -> Timestamp {
        self.at
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
}

/// The world as it was when a message arrived, given back once the message waited a while for its lock: some wait
/// longer than those who came after them.
pub(super) async fn on_arrival(world: &World) -> World {
    let clock = Arc::new(Arrival { at: world.now(), clock: world.clock.clone() });
    let mut wait = [0; 1];
    world.entropy.fill(&mut wait);
    tokio::time::sleep(Duration::from_micros(u64::from(wait[0]) * 20)).await;
    World { clock, ..world.clone() }
}
