//! Reading the relay's file.

use model::relay::{Moment, Outcome, Status};
use model::route_class::OrderKey;
use model::{RowId, Timestamp, limits};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use sqlite::StorageError;

use super::row::Envelope;
use super::settle::LeftVersion;
use super::{Envelopes, sql};
use crate::column::{Sql, get};

/// Envelopes of one state and outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Where they are.
    pub status: Status,
    /// What is known of them.
    pub outcome: Outcome,
    /// How many.
    pub rows: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// When the oldest was stored.
    pub oldest: Timestamp,
}

/// An order key with unfinished envelopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenKey {
    /// The key.
    pub key: OrderKey,
    /// How many.
    pub rows: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// What stands before an envelope in its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Older writes that are not finished.
    pub older: u64,
    /// Older writes that clashed, which a replace waits for.
    pub conflicts: u64,
}

/// The contents that belong to an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bodies {
    /// What was asked for.
    pub mine: Vec<u8>,
    /// What the upstream has, in a conflict.
    pub theirs: Option<Vec<u8>>,
    /// What stood there when it was asked, where that is known.
    pub base: Option<Vec<u8>>,
}

impl Bodies {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { mine: row.get("body")?, theirs: row.get("theirs")?, base: row.get("base")? })
    }
}

impl Envelopes {
    /// How many envelopes there are of each state and outcome.
    pub async fn counts(&self) -> Result<Vec<Count>, StorageError> {
        let read = |row: &Row<'_>| {
            Ok(Count {
                status: get(row, "status")?,
                outcome: get(row, "outcome")?,
                rows: row.get("rows")?,
                bytes: row.get("bytes")?,
                oldest: get(row, "oldest")?,
            })
        };
        self.db
            .read("relay.counts", move |conn| {
                Ok(conn.prepare_cached(sql::COUNTS)?.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Writes that may have been sent and are too old to be sent again, the first `rows_max` of them.
    pub async fn too_old(&self, now: Moment, rows_max: usize) -> Result<Vec<Envelope>, StorageError> {
        self.db
            .read("relay.too_old", move |conn| {
                let asked = named_params! {
                    ":before_here": over_age(now.here), ":ahead_here": Sql(&(now.here + limits::CLOCK_STEP_MAX)),
                    ":before_upstream": over_age(now.upstream), ":limit": rows_max,
                };
                let mut statement = conn.prepare_cached(sql::TOO_OLD)?;
                Ok(statement.query_map(asked, Envelope::read)?.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Replaces that wait for a person's word on a conflict before them.
    pub async fn blocked(&self) -> Result<u64, StorageError> {
        self.db
            .read("relay.blocked", |conn| {
                Ok(conn.prepare_cached(sql::BLOCKED)?.query_row([], |row| row.get(0))?)
            })
            .await
    }

    /// The keys that unfinished envelopes hold.
    pub async fn open_keys(&self) -> Result<Vec<OpenKey>, StorageError> {
        let read = |row: &Row<'_>| {
            Ok(OpenKey { key: get(row, "order_key")?, rows: row.get("rows")?, bytes: row.get("bytes")? })
        };
        self.db
            .read("relay.open_keys", move |conn| {
                Ok(conn
                    .prepare_cached(sql::OPEN_KEYS)?
                    .query_map([], read)?
                    .collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// A page of envelopes behind `after`, oldest first, of one state or of all.
    pub async fn list(
        &self,
        status: Option<Status>,
        after: u64,
        rows_max: usize,
    ) -> Result<Vec<Envelope>, StorageError> {
        let limit = rows_max.min(limits::PAGE_ROWS_MAX);
        self.db
            .read("relay.list", move |conn| {
                let rows = match status {
                    Some(status) => conn
                        .prepare_cached(sql::LIST_STATUS)?
                        .query_map(
                            named_params! {":after": after, ":status": Sql(&status), ":limit": limit},
                            Envelope::read,
                        )?
                        .collect::<rusqlite::Result<_>>()?,
                    None => conn
                        .prepare_cached(sql::LIST)?
                        .query_map(named_params! {":after": after, ":limit": limit}, Envelope::read)?
                        .collect::<rusqlite::Result<_>>()?,
                };
                Ok(rows)
            })
            .await
    }

    /// The envelope of that id.
    pub async fn find(&self, id: RowId) -> Result<Option<Envelope>, StorageError> {
        self.db.read("relay.find", move |conn| Ok(by_id(conn, id)?)).await
    }

    /// The envelope of that key.
    pub async fn find_key(&self, key: String) -> Result<Option<Envelope>, StorageError> {
        self.db
            .read("relay.find_key", move |conn| {
                let mut statement = conn.prepare_cached(sql::FIND_KEY)?;
                Ok(statement.query_row(named_params! {":key": key}, Envelope::read).optional()?)
            })
            .await
    }

    /// What stands before an envelope.
    pub async fn ahead(&self, local_seq: u64) -> Result<Ahead, StorageError> {
        let read = |row: &Row<'_>| Ok(Ahead { older: row.get("older")?, conflicts: row.get("conflicts")? });
        self.db
            .read("relay.ahead", move |conn| {
                let mut statement = conn.prepare_cached(sql::AHEAD)?;
                let ahead = statement.query_row(named_params! {":seq": local_seq}, read).optional()?;
                Ok(ahead.unwrap_or_default())
            })
            .await
    }

    /// The versions that this relay's own writes left of resources over which a batch waits.
    pub async fn left(&self, scope: String) -> Result<Vec<LeftVersion>, StorageError> {
        let read =
            |row: &Row<'_>| Ok(LeftVersion { order_key: get(row, "order_key")?, tag: row.get("tag")? });
        self.db
            .read("relay.left", move |conn| {
                let mut statement = conn.prepare_cached(sql::LEFT_OF_SCOPE)?;
                let rows = statement.query_map(named_params! {":scope": scope}, read)?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// The envelope's contents, while they are kept.
    pub async fn bodies(&self, local_seq: u64) -> Result<Option<Bodies>, StorageError> {
        self.db
            .read("relay.bodies", move |conn| {
                let mut statement = conn.prepare_cached(sql::BODY)?;
                Ok(statement.query_row(named_params! {":seq": local_seq}, Bodies::read).optional()?)
            })
            .await
    }
}

/// What was stored up to here is past its age at `now`.
pub(super) fn over_age(now: Timestamp) -> i64 {
    let age_micros = i64::try_from(limits::RELAY_AGE_MAX.as_micros()).expect("days fit 64 bits");
    now.as_micros().saturating_sub(age_micros)
}

pub(super) fn by_id(conn: &Connection, id: RowId) -> rusqlite::Result<Option<Envelope>> {
    let key = named_params! {":id": Sql(&id), ":key": id.to_string()};
    conn.prepare_cached(sql::FIND_ID)?.query_row(key, Envelope::read).optional()
}
