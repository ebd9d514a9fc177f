//! A write is stored: before it leaves, or because it cannot.

use model::relay::{Outcome, Precondition, Status};
use model::route_class::{OrderKey, RouteClass};
use model::{Fingerprint, LeaseToken, RowId, Timestamp, limits};
use rusqlite::{Connection, OptionalExtension, named_params};
use sqlite::StorageError;

use super::row::{Envelope, Source};
use super::{Envelopes, sql};
use crate::column::{Sql, get};

/// A write to be stored.
#[derive(Clone, Debug)]
pub struct NewEnvelope {
    /// The key every attempt will carry.
    pub idempotency_key: String,
    /// What is asked.
    pub fingerprint: Fingerprint,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The query.
    pub query: Option<String>,
    /// Append or replace.
    pub route_class: RouteClass,
    /// What its order is kept over.
    pub order_key: OrderKey,
    /// Its own condition.
    pub precondition: Option<Precondition>,
    /// Whether its condition may come from the write it waits behind: the caller named none.
    pub chains: bool,
    /// Who asks.
    pub source: Source,
    /// The upstream it is for.
    pub upstream_id: Option<String>,
    /// The upstream's time.
    pub created_at: Timestamp,
    /// The same words a moment before.
    pub possible_duplicate_of: Option<RowId>,
    /// The body, proven free of secrets.
    pub body: Vec<u8>,
}

/// What is to happen to it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It goes on the wire as soon as it is stored.
    Live,
    /// It waits.
    Waiting,
}

/// What was stored.
#[derive(Clone, Debug)]
pub enum Stored {
    /// This write; the lease is that of its first attempt.
    New(Box<Envelope>),
    /// Its key was stored before.
    Known {
        /// What stands there.
        envelope: Box<Envelope>,
        /// Whether it asks for the same.
        matches: bool,
    },
}

impl Envelopes {
    /// Stores a write. The answer comes after its commit was synced.
    pub async fn store(
        &self,
        new: NewEnvelope,
        start: Start,
        now: Timestamp,
    ) -> Result<Stored, StorageError> {
        let id = RowId::mint(now, &*self.entropy);
        let lease = (start == Start::Live).then(|| LeaseToken::mint(now, &*self.entropy));
        self.db.write_checked("relay.store", move |conn| Ok(store(conn, &new, id, lease, now)?)).await
    }
}

fn store(
    conn: &Connection,
    new: &NewEnvelope,
    id: RowId,
    lease: Option<LeaseToken>,
    now: Timestamp,
) -> rusqlite::Result<Stored> {
    let known = conn
        .prepare_cached(sql::FIND_KEY)?
        .query_row(named_params! {":key": new.idempotency_key}, Envelope::read)
        .optional()?;
    if let Some(envelope) = known {
        let matches = envelope.fingerprint == new.fingerprint;
        return Ok(Stored::Known { envelope: Box::new(envelope), matches });
    }
    let row = insert(conn, &Insert { new, id, lease, now, succeeds: None })?;
    Ok(Stored::New(Box::new(row)))
}

/// A row about to be written.
pub(super) struct Insert<'a> {
    pub(super) new: &'a NewEnvelope,
    pub(super) id: RowId,
    pub(super) lease: Option<LeaseToken>,
    pub(super) now: Timestamp,
    /// Whose place it takes.
    pub(super) succeeds: Option<&'a Envelope>,
}

pub(super) fn insert(conn: &Connection, row: &Insert<'_>) -> rusqlite::Result<Envelope> {
    let Insert { new, id, lease, now, succeeds } = row;
    let base: Option<RowId> =
        if new.chains && succeeds.is_none() { last_of(conn, &new.order_key)? } else { None };
    let live = lease.is_some();
    // Once it may leave at any moment, only an answer can say that it did not.
    let (status, outcome) =
        if live { (Status::Inflight, Outcome::Unknown) } else { (Status::Queued, Outcome::NotSent) };
    let mut statement = conn.prepare_cached(sql::INSERT)?;
    let values = named_params! {
        ":succeeds": succeeds.map(|old| old.local_seq), ":id": Sql(id), ":key": new.idempotency_key,
        ":fingerprint": Sql(&new.fingerprint), ":method": new.method, ":path": new.path, ":query": new.query,
        ":class": Sql(&new.route_class), ":scope": new.order_key.scope(), ":order_key": Sql(&new.order_key),
        ":barrier": new.order_key.is_barrier(), ":precondition": Sql(&new.precondition), ":base": Sql(&base),
        ":agent": new.source.agent, ":session": new.source.session, ":principal": new.source.principal,
        ":upstream_id": new.upstream_id, ":status": Sql(&status), ":outcome": Sql(&outcome),
        ":attempts": u32::from(live), ":now": Sql(now), ":lease": Sql(lease),
        ":lease_until": Sql(&live.then(|| *now + limits::RELAY_LEASE)), ":created_at": Sql(&new.created_at),
        ":first_attempt_at": Sql(&live.then_some(*now)),
        ":sent_precondition": Sql(&new.precondition.clone().filter(|_| live)),
        ":twin": Sql(&new.possible_duplicate_of), ":supersedes": Sql(&succeeds.map(|old| old.envelope_id)),
        ":body_bytes": new.body.len(),
    };
    let row = statement.query_row(values, Envelope::read)?;
    conn.prepare_cached(sql::INSERT_BODY)?
        .execute(named_params! {":seq": row.local_seq, ":body": new.body})?;
    Ok(row)
}

fn last_of(conn: &Connection, key: &OrderKey) -> rusqlite::Result<Option<RowId>> {
    conn.prepare_cached(sql::LAST_OF_KEY)?
        .query_row(named_params! {":order_key": Sql(key)}, |row| get(row, "envelope_id"))
        .optional()
}
