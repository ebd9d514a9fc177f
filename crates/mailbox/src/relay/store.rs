//! A write is stored: before it leaves, or because it cannot.

use model::relay::{Outcome, Precondition, Status};
use model::route_class::{OrderKey, RouteClass};
use model::{Fingerprint, LeaseToken, RowId, Timestamp, limits};
use rusqlite::{Connection, OptionalExtension, named_params, params};
use sqlite::StorageError;

use super::row::{Envelope, Response, Source};
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
    /// What stood there under its own condition, proven the same way, if that is known.
    pub base: Option<Vec<u8>>,
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
        let row = Insert { new, id, lease, now, succeeds: None };
        self.db.write_checked("relay.store", move |conn| Ok(store(conn, row)?)).await
    }
}

fn store(conn: &Connection, row: Insert<'_>) -> rusqlite::Result<Stored> {
    let (key, fingerprint) = (row.new.idempotency_key.clone(), row.new.fingerprint);
    if let Some(envelope) = insert(conn, row)? {
        return Ok(Stored::New(Box::new(envelope)));
    }
    let mut find = conn.prepare_cached(sql::FIND_KEY)?;
    let envelope = find.query_row(named_params! {":key": key}, Envelope::read)?;
    let matches = envelope.fingerprint == fingerprint;
    Ok(Stored::Known { envelope: Box::new(envelope), matches })
}

/// A row about to be written.
pub(super) struct Insert<'a> {
    pub(super) new: NewEnvelope,
    pub(super) id: RowId,
    pub(super) lease: Option<LeaseToken>,
    pub(super) now: Timestamp,
    /// Whose place it takes.
    pub(super) succeeds: Option<&'a Envelope>,
}

/// The envelope as it stands now; nothing when its key is taken.
pub(super) fn insert(conn: &Connection, row: Insert<'_>) -> rusqlite::Result<Option<Envelope>> {
    let chains = row.new.chains && row.succeeds.is_none();
    let base = if chains { last_of(conn, &row.new.order_key)? } else { None };
    let succeeds = row.succeeds.map(|old| old.local_seq);
    let (mut envelope, body, asked_on) = row.envelope(base);
    if put(conn, &envelope, succeeds)? == 0 {
        return Ok(None);
    }
    envelope.local_seq = conn.last_insert_rowid().unsigned_abs();
    conn.prepare_cached(sql::INSERT_BODY)?
        .execute(named_params! {":seq": envelope.local_seq, ":body": body, ":base": asked_on})?;
    Ok(Some(envelope))
}

impl Insert<'_> {
    /// What every column will hold, the body, and what it was asked on. Its place in the file is only known there.
    fn envelope(self, base_envelope: Option<RowId>) -> (Envelope, Vec<u8>, Option<Vec<u8>>) {
        let Self { new, id, lease, now, succeeds } = self;
        let live = lease.is_some();
        // Once it may leave at any moment, only an answer can say that it did not.
        let (status, outcome) =
            if live { (Status::Inflight, Outcome::Unknown) } else { (Status::Queued, Outcome::NotSent) };
        let envelope = Envelope {
            local_seq: 0,
            envelope_id: id,
            idempotency_key: new.idempotency_key,
            fingerprint: new.fingerprint,
            method: new.method,
            path: new.path,
            query: new.query,
            route_class: new.route_class,
            order_key: new.order_key,
            sent_precondition: new.precondition.clone().filter(|_| live),
            precondition: new.precondition,
            base_envelope,
            source: new.source,
            upstream_id: new.upstream_id,
            status,
            outcome,
            ending: None,
            told: false,
            attempts: u32::from(live),
            next_attempt_at: now,
            lease,
            queued_at: now,
            created_at: new.created_at,
            first_attempt_at: live.then_some(now),
            ended_at: None,
            late_ack_at: None,
            last_error: None,
            response: Response::default(),
            theirs_etag: None,
            superseded_by: None,
            supersedes: succeeds.map(|old| old.envelope_id),
            resolution: None,
            possible_duplicate_of: new.possible_duplicate_of,
            body_bytes: new.body.len() as u64,
        };
        (envelope, new.body, new.base)
    }
}

/// Rows written: none when the key is taken.
fn put(conn: &Connection, row: &Envelope, succeeds: Option<u64>) -> rusqlite::Result<usize> {
    let lease_until = row.lease.map(|_| row.queued_at + limits::RELAY_LEASE);
    // By place: looking thirty names up costs more than what is done with them.
    conn.prepare_cached(sql::INSERT)?.execute(params![
        succeeds,
        Sql(&row.envelope_id),
        row.idempotency_key,
        Sql(&row.fingerprint),
        row.method,
        row.path,
        row.query,
        Sql(&row.route_class),
        row.order_key.scope(),
        Sql(&row.order_key),
        row.order_key.is_barrier(),
        Sql(&row.precondition),
        Sql(&row.base_envelope),
        row.source.agent,
        row.source.session,
        row.source.principal,
        row.upstream_id,
        Sql(&row.status),
        Sql(&row.outcome),
        row.attempts,
        Sql(&row.queued_at),
        Sql(&row.lease),
        Sql(&lease_until),
        Sql(&row.created_at),
        Sql(&row.first_attempt_at),
        Sql(&row.sent_precondition),
        Sql(&row.possible_duplicate_of),
        Sql(&row.supersedes),
        row.body_bytes,
    ])
}

fn last_of(conn: &Connection, key: &OrderKey) -> rusqlite::Result<Option<RowId>> {
    conn.prepare_cached(sql::LAST_OF_KEY)?
        .query_row(named_params! {":order_key": Sql(key)}, |row| get(row, "envelope_id"))
        .optional()
}
