//! How a door's work is run: as a job of the engine's writer, or on one of its readers.

use ::sqlite::rusqlite::Connection;
use model::Timestamp;

use super::super::janitor::{self, AuditAt};
use super::super::{hub, planted};
use super::{SqliteLedger, World};
use crate::{HubOutcome, HubWrite, LaneSubmission, LinkError, Orphan, Outcome, StorageError};

impl SqliteLedger {
    pub(super) async fn write<T, E>(
        &self,
        name: &'static str,
        job: impl FnOnce(&Connection, &World) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<::sqlite::StorageError> + Send + 'static,
    {
        let world = self.world.clone();
        let written = self.db.write(name, move |conn| job(conn, &world)).await?;
        self.committed.send_replace(());
        Ok(written)
    }

    /// A read for each part of the books, so that none of them takes long.
    pub(super) async fn audit(&self, before: Timestamp, limit: usize) -> Result<Vec<Orphan>, StorageError> {
        let now = self.world.now();
        let (mut orphans, mut from) = (Vec::new(), AuditAt::START);
        while from != AuditAt::End && orphans.len() < limit {
            let (found, next) =
                self.read("ledger.orphans", move |conn| janitor::audit(conn, now, before, &from)).await?;
            orphans.extend(found);
            from = next;
        }
        orphans.truncate(limit);
        Ok(orphans)
    }

    pub(super) async fn accept_in_two_transactions(
        &self,
        lane: LaneSubmission,
    ) -> Result<Vec<Outcome>, LinkError> {
        let accept = move |conn: &Connection, world: &World| planted::accept_without_ids(conn, world, &lane);
        let (outcomes, lifted) = self.write("ledger.accept", accept).await?;
        self.write("ledger.accept_ids", move |conn, _| planted::write_ids(conn, lifted)).await?;
        Ok(outcomes)
    }

    pub(super) async fn hub_write_in_two_transactions(
        &self,
        write: HubWrite,
    ) -> Result<HubOutcome, StorageError> {
        let effect = move |conn: &Connection, world: &World| hub::write(conn, world, &write);
        let (outcome, row) = self.write("ledger.hub_write", effect).await?;
        if let Some(row) = row {
            self.write("ledger.hub_key", move |conn, _| hub::store_key(conn, &row)).await?;
        }
        Ok(outcome)
    }

    pub(super) async fn read<T, E>(
        &self,
        name: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<::sqlite::StorageError> + Send + 'static,
    {
        self.db.read(name, read).await
    }
}
