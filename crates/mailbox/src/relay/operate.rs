//! What a person does to an envelope.

use model::relay::{Age, Cancel, Ending, Outcome, Precondition, Retry, Status, age, cancel, retry};
use model::{Fingerprint, RowId, Timestamp, limits};
use rusqlite::{Connection, named_params};
use sqlite::StorageError;

use super::read::{self, Bodies};
use super::row::Envelope;
use super::settle::{End, end};
use super::store::{Insert, NewEnvelope, insert};
use super::{Envelopes, one, sql};
use crate::column::Sql;

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// There is no such envelope.
    #[error("there is no such envelope")]
    NotFound,
    /// It is on the wire.
    #[error("it is on the wire")]
    Inflight,
    /// It has ended.
    #[error("it has ended")]
    Over,
    /// Nobody said yet whether it was committed.
    #[error("nobody said yet whether it was committed")]
    Unknown,
    /// The file.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// What a cancel or a retry did.
#[derive(Clone, Debug)]
pub enum Withdrawn {
    /// It changed at once.
    Changed {
        /// Where it was.
        before: Status,
        /// As it stands now.
        envelope: Envelope,
    },
    /// It is to end so once its key was asked about.
    Asking(Envelope),
}

/// What takes an envelope's place.
#[derive(Clone, Debug)]
pub struct Successor {
    /// Its key.
    pub idempotency_key: String,
    /// Its condition; nothing keeps the old one.
    pub precondition: Option<Precondition>,
    /// Other words, proven free of secrets, with what they ask; nothing keeps the old ones.
    pub body: Option<(Vec<u8>, Fingerprint)>,
    /// The upstream's time.
    pub created_at: Timestamp,
    /// What the person decided.
    pub resolution: String,
    /// A possible double is accepted.
    pub forced: bool,
}

impl Envelopes {
    /// Withdraws an envelope; one that may have left is asked about first.
    pub async fn cancel(
        &self,
        id: RowId,
        resolution: String,
        now: Timestamp,
    ) -> Result<Withdrawn, OperateError> {
        self.db
            .write("relay.cancel", move |conn| {
                let row = by_id(conn, id)?;
                match cancel(row.status, row.outcome) {
                    Cancel::Now => {
                        let ended = End::new(row.local_seq, row.status, Status::Cancelled, row.outcome, now);
                        end(conn, &End { resolution: Some(resolution), ..ended })
                            .map_err(StorageError::from)?;
                        Ok(Withdrawn::Changed { before: row.status, envelope: by_id(conn, id)? })
                    }
                    Cancel::AskFirst => {
                        want(conn, &row, Ending::Cancelled, now)?;
                        Ok(Withdrawn::Asking(by_id(conn, id)?))
                    }
                    Cancel::Wait => Err(OperateError::Inflight),
                    Cancel::Over => Err(OperateError::Over),
                }
            })
            .await
    }

    /// Makes a waiting envelope due now, under its own key.
    pub async fn retry_now(&self, id: RowId, now: Timestamp) -> Result<Withdrawn, OperateError> {
        self.db
            .write("relay.retry_now", move |conn| {
                let row = by_id(conn, id)?;
                match verdict(&row, now) {
                    Retry::Now => {
                        let mut due = conn.prepare_cached(sql::DUE_NOW).map_err(StorageError::from)?;
                        let at = named_params! {":seq": row.local_seq, ":now": Sql(&now)};
                        due.execute(at).and_then(one).map_err(StorageError::from)?;
                        Ok(Withdrawn::Changed { before: row.status, envelope: by_id(conn, id)? })
                    }
                    Retry::AskFirst if row.status == Status::Queued => {
                        want(conn, &row, Ending::Expired, now)?;
                        Ok(Withdrawn::Asking(by_id(conn, id)?))
                    }
                    Retry::AskFirst | Retry::Successor => Err(OperateError::Unknown),
                    Retry::Wait => Err(OperateError::Inflight),
                    Retry::Over => Err(OperateError::Over),
                }
            })
            .await
    }

    /// Puts a successor under a new key into an envelope's place: when it surely was not committed, or when a person
    /// accepts a possible double. Answers with where the old one was, and with the new one.
    pub async fn succeed(
        &self,
        id: RowId,
        successor: Successor,
        now: Timestamp,
    ) -> Result<(Status, Envelope), OperateError> {
        let new_id = RowId::mint(now, &*self.entropy);
        self.db
            .write("relay.succeed", move |conn| {
                let old = by_id(conn, id)?;
                match verdict(&old, now) {
                    Retry::Successor => {}
                    Retry::AskFirst if successor.forced => {}
                    Retry::AskFirst | Retry::Now => return Err(OperateError::Unknown),
                    Retry::Wait => return Err(OperateError::Inflight),
                    Retry::Over => return Err(OperateError::Over),
                }
                Ok((old.status, replace(conn, &old, successor, new_id, now).map_err(StorageError::from)?))
            })
            .await
    }

    /// The upstream says that an ended envelope of unknown outcome was committed, or that its key is retired now.
    pub async fn learn(&self, id: RowId, outcome: Outcome, now: Timestamp) -> Result<Envelope, OperateError> {
        self.db
            .write("relay.learn", move |conn| {
                let row = by_id(conn, id)?;
                if row.status.is_unfinished() || row.outcome != Outcome::Unknown {
                    return Ok(row);
                }
                let status = match (outcome, row.status) {
                    (Outcome::Committed, Status::Cancelled | Status::Superseded) => {
                        let mut late = conn.prepare_cached(sql::LATE_ACK).map_err(StorageError::from)?;
                        let at = named_params! {":seq": row.local_seq, ":now": Sql(&now)};
                        late.execute(at).and_then(one).map_err(StorageError::from)?;
                        return by_id(conn, id);
                    }
                    (Outcome::Committed, _) => Status::Done,
                    (_, status) => status,
                };
                end(conn, &End::new(row.local_seq, row.status, status, outcome, now))
                    .map_err(StorageError::from)?;
                by_id(conn, id)
            })
            .await
    }

    /// Keeps the upstream's own state beside a conflict.
    pub async fn keep_theirs(
        &self,
        local_seq: u64,
        theirs: Option<Vec<u8>>,
        etag: Option<String>,
    ) -> Result<(), StorageError> {
        self.db
            .write("relay.keep_theirs", move |conn| {
                let theirs = theirs.filter(|theirs| theirs.len() <= limits::RELAY_THEIRS_BYTES_MAX);
                conn.prepare_cached(sql::BODY_PUT_THEIRS)?
                    .execute(named_params! {":seq": local_seq, ":theirs": theirs})?;
                conn.prepare_cached(sql::THEIRS_ETAG)?
                    .execute(named_params! {":seq": local_seq, ":etag": etag})?;
                Ok(())
            })
            .await
    }

    /// Makes everything that waits due: the upstream is back, or a person says so.
    pub async fn all_due(&self, now: Timestamp) -> Result<usize, StorageError> {
        self.db
            .write("relay.all_due", move |conn| {
                Ok(conn.prepare_cached(sql::ALL_DUE)?.execute(named_params! {":now": Sql(&now)})?)
            })
            .await
    }
}

fn verdict(row: &Envelope, now: Timestamp) -> Retry {
    retry(row.status, row.outcome, age(row.queued_at, now) == Age::Over)
}

fn by_id(conn: &Connection, id: RowId) -> Result<Envelope, OperateError> {
    read::by_id(conn, id).map_err(StorageError::from)?.ok_or(OperateError::NotFound)
}

fn want(conn: &Connection, row: &Envelope, ending: Ending, now: Timestamp) -> Result<(), StorageError> {
    one(conn.prepare_cached(sql::WANT_END)?.execute(named_params! {
        ":seq": row.local_seq, ":ending": Sql(&ending), ":now": Sql(&now), ":error": rusqlite::types::Null,
    })?)?;
    Ok(())
}

fn replace(
    conn: &Connection,
    old: &Envelope,
    successor: Successor,
    id: RowId,
    now: Timestamp,
) -> rusqlite::Result<Envelope> {
    let mut statement = conn.prepare_cached(sql::BODY)?;
    let held = statement.query_row(named_params! {":seq": old.local_seq}, Bodies::read)?;
    let (body, fingerprint) = successor.body.unwrap_or((held.mine, old.fingerprint));
    // It stands on what its condition names: what the upstream has, or still what the old one stood on.
    let base = match (&successor.precondition, &old.theirs_etag) {
        (Some(Precondition::Match(seen)), Some(theirs)) if seen == theirs => held.theirs,
        (Some(_), _) => None,
        (None, _) => held.base,
    };
    one(conn.prepare_cached(sql::SUPERSEDE)?.execute(named_params! {
        ":seq": old.local_seq, ":expected": Sql(&old.status), ":successor": Sql(&id), ":now": Sql(&now),
        ":resolution": successor.resolution,
    })?)?;
    let new = NewEnvelope {
        idempotency_key: Some(successor.idempotency_key),
        fingerprint,
        method: old.method.clone(),
        path: old.path.clone(),
        query: old.query.clone(),
        route_class: old.route_class,
        order_key: old.order_key.clone(),
        precondition: successor.precondition.or_else(|| old.precondition.clone()),
        chains: false,
        source: old.source.clone(),
        upstream_id: old.upstream_id.clone(),
        created_at: successor.created_at,
        possible_duplicate_of: None,
        body,
        base,
    };
    let row = Insert::instead_of(old, new, id, now);
    // Its key was minted a moment ago: a taken one is no key of ours.
    let placed = insert(conn, &row)?.ok_or(rusqlite::Error::StatementChangedRows(0))?;
    Ok(row.placed(placed))
}
