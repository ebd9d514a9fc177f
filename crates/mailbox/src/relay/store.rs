//! A write is stored: before it leaves, or because it cannot.

use std::sync::Arc;

use model::relay::{Outcome, Precondition, Status};
use model::route_class::{OrderKey, RouteClass};
use model::{Fingerprint, LeaseToken, RowId, Timestamp, limits};
use rusqlite::{CachedStatement, Connection, OptionalExtension, named_params, params};
use sqlite::{Gathering, StorageError};

use super::attempts::LiveAttempts;
use super::row::{Envelope, Response, Source};
use super::{Envelopes, sort, sql};
use crate::column::{Sql, get};

/// A write to be stored.
#[derive(Clone, Debug)]
pub struct NewEnvelope {
    /// The caller's key, which every attempt will carry; without one it is the id of its row.
    pub idempotency_key: Option<String>,
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

/// Callers that come together are one job.
pub(super) type Stores = Gathering<Arc<Insert>, Put, StorageError>;

pub(super) fn stores(live: Arc<LiveAttempts>) -> Stores {
    Gathering::new("relay.store", move |conn, asked: &[Arc<Insert>]| {
        let mut door = Door::open(conn)?;
        let put = |row: &Arc<Insert>| {
            let put = door.store(row)?;
            // Its caller gets a receipt: in this very job, so that the write is not forgotten in between.
            if let Put::Known(known) = &put
                && row.asks_for(known)
                && let Some(lease) = known.lease
            {
                live.promise(lease);
            }
            Ok(put)
        };
        Ok(asked.iter().map(put).collect::<rusqlite::Result<_>>()?)
    })
}

impl Envelopes {
    /// Stores a write. The answer comes after its commit was synced. A live one ends with [`Envelopes::settle`] or
    /// [`Envelopes::forget_live`].
    pub async fn store(
        &self,
        new: NewEnvelope,
        start: Start,
        now: Timestamp,
    ) -> Result<Stored, StorageError> {
        let id = RowId::mint(now, &*self.entropy);
        let lease = (start == Start::Live).then(|| LeaseToken::mint(now, &*self.entropy));
        let row = Arc::new(Insert::of(new, id, lease, now));
        if let Some(lease) = lease {
            self.live.begin(lease);
        }
        let put = self.db.write_gathered(&self.stores, Arc::clone(&row)).await;
        if let (Some(lease), Ok(Put::Known(_)) | Err(_)) = (lease, &put) {
            self.live.end(lease);
        }
        match put? {
            Put::New(placed) => Ok(Stored::New(Box::new(Arc::unwrap_or_clone(row).placed(placed)))),
            Put::Known(envelope) => {
                let matches = row.asks_for(&envelope);
                Ok(Stored::Known { envelope, matches })
            }
        }
    }
}

/// A row about to be written.
#[derive(Clone)]
pub(super) struct Insert {
    /// What every column will hold, but for what only the file knows.
    envelope: Envelope,
    chains: bool,
    /// Whether its caller gave it a key.
    named: bool,
    /// Whose place it takes.
    succeeds: Option<u64>,
    body: Vec<u8>,
    base: Option<Vec<u8>>,
}

/// What only the file knows of a new row.
pub(super) struct Placed {
    local_seq: u64,
    base_envelope: Option<RowId>,
}

/// What became of a row.
pub(super) enum Put {
    /// It was written.
    New(Placed),
    /// Its key was there before.
    Known(Box<Envelope>),
}

impl Insert {
    /// In the place of `old`, under a key of its own.
    pub(super) fn instead_of(old: &Envelope, new: NewEnvelope, id: RowId, now: Timestamp) -> Self {
        let mut row = Self::of(new, id, None, now);
        row.succeeds = Some(old.local_seq);
        row.envelope.supersedes = Some(old.envelope_id);
        row
    }

    fn of(new: NewEnvelope, id: RowId, lease: Option<LeaseToken>, now: Timestamp) -> Self {
        let (live, named) = (lease.is_some(), new.idempotency_key.is_some());
        // Once it may leave at any moment, only an answer can say that it did not.
        let (status, outcome) =
            if live { (Status::Inflight, Outcome::Unknown) } else { (Status::Queued, Outcome::NotSent) };
        let envelope = Envelope {
            local_seq: 0,
            envelope_id: id,
            idempotency_key: new.idempotency_key.unwrap_or_else(|| id.to_string()),
            fingerprint: new.fingerprint,
            method: new.method,
            path: new.path,
            query: new.query,
            route_class: new.route_class,
            order_key: new.order_key,
            sent_precondition: new.precondition.clone().filter(|_| live),
            precondition: new.precondition,
            base_envelope: None,
            source: new.source,
            upstream_id: new.upstream_id,
            status,
            outcome,
            ending: None,
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
            supersedes: None,
            resolution: None,
            possible_duplicate_of: new.possible_duplicate_of,
            body_bytes: new.body.len() as u64,
        };
        Self { envelope, chains: new.chains, named, succeeds: None, body: new.body, base: new.base }
    }

    /// Whether it asks for the same as one that is stored.
    fn asks_for(&self, known: &Envelope) -> bool {
        self.envelope.fingerprint == known.fingerprint
    }

    /// The body that stands in its row.
    fn short_body(&self) -> Option<&[u8]> {
        (self.body.len() <= limits::SHORT_BODY_BYTES).then_some(&self.body)
    }

    /// The envelope as it stands now.
    pub(super) fn placed(self, placed: Placed) -> Envelope {
        let Placed { local_seq, base_envelope } = placed;
        Envelope { local_seq, base_envelope, ..self.envelope }
    }
}

/// Writes a row inside a job of the caller's; nothing when its key is taken.
pub(super) fn insert(conn: &Connection, row: &Insert) -> rusqlite::Result<Option<Placed>> {
    Door::open(conn)?.insert(row)
}

/// The statements of a store, looked up once for all who come together.
struct Door<'conn> {
    conn: &'conn Connection,
    last_of_key: CachedStatement<'conn>,
    insert: CachedStatement<'conn>,
    insert_body: CachedStatement<'conn>,
    find_key: CachedStatement<'conn>,
}

impl<'conn> Door<'conn> {
    fn open(conn: &'conn Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            conn,
            last_of_key: conn.prepare_cached(sql::LAST_OF_KEY)?,
            insert: conn.prepare_cached(sql::INSERT)?,
            insert_body: conn.prepare_cached(sql::INSERT_BODY)?,
            find_key: conn.prepare_cached(sql::FIND_KEY)?,
        })
    }

    fn store(&mut self, row: &Insert) -> rusqlite::Result<Put> {
        if let Some(placed) = self.insert(row)? {
            return Ok(Put::New(placed));
        }
        let known = self.find_key.query_row(params![row.envelope.idempotency_key], Envelope::read)?;
        Ok(Put::Known(Box::new(known)))
    }

    fn insert(&mut self, row: &Insert) -> rusqlite::Result<Option<Placed>> {
        let base_envelope = if row.chains { self.last_of(row)? } else { None };
        if self.put(row, base_envelope)? == 0 {
            return Ok(None);
        }
        let local_seq = self.conn.last_insert_rowid().unsigned_abs();
        if row.short_body().is_none() || row.base.is_some() {
            self.insert_body.execute(params![local_seq, row.body, row.base])?;
        }
        Ok(Some(Placed { local_seq, base_envelope }))
    }

    /// The write that one under this key waits behind: nothing that overlaps comes later.
    fn last_of(&mut self, row: &Insert) -> rusqlite::Result<Option<RowId>> {
        let key = &row.envelope.order_key;
        if key.is_append() {
            sort::all(self.conn, row.envelope.queued_at)?;
        }
        let asked = named_params! {":order_key": Sql(key), ":scope": key.scope(), ":every": key.is_barrier()};
        self.last_of_key.query_row(asked, |row| get(row, "envelope_id")).optional()
    }

    /// Rows written: none when the key is taken.
    fn put(&mut self, row: &Insert, base_envelope: Option<RowId>) -> rusqlite::Result<usize> {
        let (body, named) = (row.short_body(), row.named);
        let sorted = !sort::may_wait(row.envelope.status, row.envelope.route_class, &row.envelope.order_key);
        let Insert { envelope: row, succeeds, .. } = row;
        let lease_until = row.lease.map(|_| row.queued_at + limits::RELAY_LEASE);
        // By place: looking thirty names up costs more than what is done with them.
        self.insert.execute(params![
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
            Sql(&base_envelope),
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
            body,
            named,
            sorted,
        ])
    }
}
