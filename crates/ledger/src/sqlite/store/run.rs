//! How a door's work is run: as a job of the engine's writer, or on one of its readers.

use ::sqlite::Gathering;
use ::sqlite::rusqlite::Connection;
use model::admission::Known;
use model::{ClientMessageId, MemberId, Timestamp};

use super::super::janitor::{self, AuditAt};
use super::super::write::Left;
use super::super::{accept, ageing, hub, planted, status, token};
use super::{SqliteLedger, World};
use crate::{
    ApiToken, ClockLook, Forgotten, HubOutcome, HubWrite, IdPlace, LaneSubmission, LinkError, LinkRefused,
    Orphan, Outcome, SecretHash, StorageError,
};

/// Accepts of many callers are one job: read once, judged together, written table by table.
pub(super) type Accepts = Gathering<LaneSubmission, Judged, StorageError>;
/// Look-ups of ids (B0) of many callers are one read.
pub(super) type LookUps = Gathering<LookUp, Vec<Option<Known>>, StorageError>;

/// The word on one lane, and what its batch left behind.
pub(super) type Judged = (Result<Vec<Outcome>, LinkRefused>, Left);

/// Some ids of one sender.
pub(super) struct LookUp {
    pub sender: MemberId,
    pub ids: Vec<ClientMessageId>,
}

pub(super) fn accepts(world: &World) -> Accepts {
    let world = world.clone();
    Gathering::new("ledger.accept", move |conn, lanes: &[LaneSubmission]| {
        let (verdicts, left) = accept::accept_all(conn, &world, lanes)?;
        Ok(verdicts.into_iter().map(|verdict| (verdict, left)).collect())
    })
}

pub(super) fn look_ups() -> LookUps {
    Gathering::new("ledger.known", |conn, asked: &[LookUp]| {
        asked.iter().map(|asked| known(conn, asked)).collect()
    })
}

fn known(conn: &Connection, asked: &LookUp) -> Result<Vec<Option<Known>>, StorageError> {
    let sender = accept::member_by_id(conn, asked.sender)?;
    let Some(sender) = sender else { return Ok(vec![None; asked.ids.len()]) };
    asked.ids.iter().map(|id| status::known(conn, sender.number, id)).collect()
}

impl SqliteLedger {
    /// Accepts, or does what a planted bug does instead.
    pub(super) async fn accept_lane(&self, lane: LaneSubmission) -> Result<Vec<Outcome>, LinkError> {
        if crate::planted::planted(crate::planted::DEDUPE_OWN_TRANSACTION) {
            return self.accept_in_two_transactions(lane).await;
        }
        if crate::planted::reads_by_time() {
            let world = planted::on_arrival(&self.world).await;
            return self.write("ledger.accept", move |conn, _| accept::accept(conn, &world, &lane)).await;
        }
        self.accept_gathered(lane).await
    }

    async fn accept_gathered(&self, lane: LaneSubmission) -> Result<Vec<Outcome>, LinkError> {
        let (verdict, left) = self.db.write_gathered(&self.accepts, lane).await?;
        self.tell(left);
        Ok(verdict?)
    }

    pub(super) async fn write<T, E>(
        &self,
        name: &'static str,
        job: impl FnOnce(&Connection, &World) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<::sqlite::StorageError> + Send + 'static,
    {
        let changes = self.tokens.changes();
        let job = move |conn: &Connection, world: &World| Ok::<_, E>((job(conn, world)?, changes.one_more()));
        let (written, change) = self.write_mail(name, job).await?;
        drop(change);
        Ok(written)
    }

    /// [`SqliteLedger::write`] for a job that changes what was sent and how far it got, but nobody who may ask.
    pub(super) async fn write_mail<T, E>(
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
        self.tell(Left::Work);
        Ok(written)
    }

    fn tell(&self, left: Left) {
        self.committed.send_replace(());
        match left {
            Left::Work => self.stirred.send_replace(()),
            Left::Nothing => {}
        }
    }

    /// The token that `hash` was made of, as it was looked up last or as it is now.
    pub(super) async fn token_of(&self, hash: SecretHash) -> Result<Option<ApiToken>, StorageError> {
        if let Some(token) = self.tokens.get(&hash) {
            return Ok(Some(token));
        }
        let after = self.tokens.count();
        let found = self.db.read_here("ledger.resolve_token", move |conn| token::resolve(conn, hash)).await?;
        if let Some(token) = &found {
            self.tokens.keep(hash, token, after);
        }
        Ok(found)
    }

    /// Looks at the clock.
    pub(super) async fn look(&self) -> Result<ClockLook, StorageError> {
        self.write_mail("ledger.look_at_clock", ageing::look).await
    }

    /// The instant by which ages are judged, from a look moments ago or from one of its own.
    async fn aged(&self) -> Result<Timestamp, StorageError> {
        let World { clock, watch, .. } = &self.world;
        match watch.recent(clock.now(), clock.monotonic()) {
            Some(aged) => Ok(aged),
            None => Ok(self.look().await?.borne_out),
        }
    }

    /// Ends what is too old.
    pub(super) async fn sweep(
        &self,
        name: &'static str,
        job: impl FnOnce(&Connection, &World, Timestamp) -> Result<u64, StorageError> + Send + 'static,
    ) -> Result<u64, StorageError> {
        let aged = self.aged().await?;
        self.write(name, move |conn, world| job(conn, world, aged)).await
    }

    pub(super) async fn forget_ids(&self, from: IdPlace, limit: usize) -> Result<Forgotten, StorageError> {
        let aged = self.aged().await?;
        let (due, next) = self
            .read("ledger.expired_ids", move |conn| janitor::expired_ids(conn, aged, &from, limit))
            .await?;
        if due.is_empty() {
            return Ok(Forgotten { ids: 0, next });
        }
        let forget = move |conn: &Connection, world: &World| janitor::forget_ids(conn, world, aged, &due);
        let ids = self.write("ledger.expire_dedupe", forget).await?;
        Ok(Forgotten { ids, next })
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

    async fn accept_in_two_transactions(&self, lane: LaneSubmission) -> Result<Vec<Outcome>, LinkError> {
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
            self.write("ledger.hub_key", move |conn, world| hub::store_key(conn, world, &row)).await?;
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
