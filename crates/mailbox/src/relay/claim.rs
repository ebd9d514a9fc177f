//! The drainer takes what may leave: of each order key its oldest write, under a lease.

use model::relay::{Ending, Moment, Outcome, Precondition, Status, effective, may_be_forgotten};
use model::route_class::OrderKey;
use model::{Entropy, LeaseToken, RowId, Timestamp, limits};
use rusqlite::{Connection, OptionalExtension, named_params};
use sqlite::StorageError;

use super::read::{by_id, over_age};
use super::row::Envelope;
use super::settle::{End, end};
use super::{Envelopes, one, sort, sql};
use crate::ageing::aged;
use crate::column::{Sql, get};

/// Rows at the head of the queue among which enough are found when many keys wait.
const NEAR: usize = 8 * limits::RELAY_LANES_MAX;

/// `last_error` of an envelope that can never be sent: its file is damaged, and its order key goes on without it.
const BODY_MISSING: &str = "body_missing: the file holds the envelope without its body";

/// `last_error` of an envelope that is asked about in place of being sent again.
const TOO_OLD: &str = "older than 13 days, or from a date that was ahead: it is asked about, not sent again";

/// What the drainer got.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Oldest first, at most one of each order key that is to be sent.
    pub taken: Vec<Taken>,
    /// Envelopes that ended in the same transaction: by age, or because their body is missing.
    pub ended: Vec<Envelope>,
    /// When something that waits becomes due, if nothing was taken.
    pub next_due: Option<Timestamp>,
}

/// An envelope under a lease.
#[derive(Clone, Debug)]
pub struct Taken {
    /// It, as it stood before; with its ending, when it got one by this claim because of its age.
    pub envelope: Envelope,
    /// Under which its result may be recorded.
    pub lease: LeaseToken,
    /// What to do.
    pub task: Task,
}

/// What is to be done with a claimed envelope.
#[derive(Clone, Debug)]
pub enum Task {
    /// Send it.
    Send {
        /// Under this condition.
        precondition: Option<Precondition>,
        /// Its body.
        body: Vec<u8>,
    },
    /// Ask the upstream what became of its key.
    Ask(Ending),
}

impl Envelopes {
    /// Takes at most `rows_max` envelopes that are due. Those past their age end, or are to be asked about.
    pub async fn claim(&self, now: Moment, rows_max: usize) -> Result<Claims, StorageError> {
        let entropy = std::sync::Arc::clone(&self.entropy);
        self.db.write_checked("relay.claim", move |conn| Ok(take(conn, now, rows_max, &*entropy)?)).await
    }

    /// Puts a claim back of which nothing was sent: the envelope is as it stood before.
    pub async fn unclaim(&self, taken: Taken) -> Result<(), StorageError> {
        self.db
            .write("relay.unclaim", move |conn| {
                let Taken { envelope: row, lease, .. } = &taken;
                // A lease that ran out meanwhile has its own holder.
                conn.prepare_cached(sql::UNCLAIM)?.execute(named_params! {
                    ":seq": row.local_seq, ":lease": Sql(lease), ":attempts": row.attempts,
                    ":outcome": Sql(&row.outcome), ":first_attempt_at": Sql(&row.first_attempt_at),
                    ":sent_precondition": Sql(&row.sent_precondition),
                })?;
                Ok(())
            })
            .await
    }
}

fn take(
    conn: &Connection,
    moment: Moment,
    rows_max: usize,
    entropy: &dyn Entropy,
) -> rusqlite::Result<Claims> {
    let now = moment.here;
    conn.prepare_cached(sql::LEASES_OVER)?.execute(named_params! {":now": Sql(&now)})?;
    let is_sorted = sort::some(conn, now)?;
    let mut claims = Claims { ended: expire(conn, now)?, ..Claims::default() };
    if !is_sorted {
        // What is not sorted yet may belong before anything that is.
        claims.next_due = Some(now);
        return Ok(claims);
    }
    for envelope in candidates(conn, now, rows_max)? {
        let lease = LeaseToken::mint(now, entropy);
        match lease_out(conn, envelope, lease, moment)? {
            Leased::Taken(taken) => claims.taken.push(*taken),
            // Its order key is free: the envelope behind it is taken by the next claim, at once.
            Leased::Ended(envelope) => {
                claims.ended.push(*envelope);
                claims.next_due = Some(now);
            }
        }
    }
    if claims.taken.is_empty() && claims.next_due.is_none() && rows_max > 0 {
        claims.next_due = conn
            .prepare_cached(sql::CLAIM_NEXT_DUE)?
            .query_row([], |row| row.get::<_, Option<i64>>(0))?
            .map(Timestamp::from_micros);
    }
    Ok(claims)
}

/// Oldest first.
fn candidates(conn: &Connection, now: Timestamp, rows_max: usize) -> rusqlite::Result<Vec<Envelope>> {
    let mut statement = conn.prepare_cached(sql::CLAIM_CANDIDATES)?;
    let mut found = |every_key: bool| -> rusqlite::Result<Vec<Envelope>> {
        let asked = named_params! {
            ":every_key": every_key, ":near": NEAR, ":now": Sql(&now), ":limit": rows_max,
        };
        statement.query_map(asked, Envelope::read)?.collect()
    };
    let near = found(false)?;
    if near.len() < rows_max { found(true) } else { Ok(near) }
}

/// What became of an envelope that was due.
enum Leased {
    Taken(Box<Taken>),
    /// Its body is missing and it never left.
    Ended(Box<Envelope>),
}

fn lease_out(
    conn: &Connection,
    mut envelope: Envelope,
    lease: LeaseToken,
    moment: Moment,
) -> rusqlite::Result<Leased> {
    let now = moment.here;
    let stored = Moment { here: envelope.queued_at, upstream: envelope.created_at };
    if envelope.ending.is_none() && may_be_forgotten(envelope.outcome, stored, moment) {
        want_end(conn, envelope.local_seq, Ending::Expired, now, Some(TOO_OLD))?;
        envelope.ending = Some(Ending::Expired);
    }
    let (task, outcome, sent) = match envelope.ending {
        Some(ending) => (Task::Ask(ending), envelope.outcome, envelope.sent_precondition.clone()),
        None => {
            let precondition = condition_of(conn, &envelope)?;
            let mut read = conn.prepare_cached(sql::BODY)?;
            let seq = named_params! {":seq": envelope.local_seq};
            match (read.query_row(seq, |row| row.get("body")).optional()?, envelope.outcome) {
                (Some(body), _) => {
                    (Task::Send { precondition: precondition.clone(), body }, Outcome::Unknown, precondition)
                }
                (None, Outcome::NotSent) => {
                    let rejected =
                        End::new(envelope.local_seq, Status::Queued, Status::Rejected, Outcome::NotSent, now);
                    end(conn, &End { error: Some(BODY_MISSING.to_owned()), ..rejected })?;
                    return Ok(Leased::Ended(Box::new(by_seq(conn, envelope.local_seq)?)));
                }
                (None, outcome) => {
                    want_end(conn, envelope.local_seq, Ending::Rejected, now, Some(BODY_MISSING))?;
                    (Task::Ask(Ending::Rejected), outcome, envelope.sent_precondition.clone())
                }
            }
        }
    };
    let sends = matches!(task, Task::Send { .. });
    one(conn.prepare_cached(sql::CLAIM_TAKE)?.execute(named_params! {
        ":seq": envelope.local_seq, ":lease": Sql(&lease), ":until": Sql(&(now + limits::RELAY_LEASE)),
        ":counted": u32::from(sends), ":outcome": Sql(&outcome), ":first": Sql(&sends.then_some(now)),
        ":sent_precondition": Sql(&sent),
    })?)?;
    Ok(Leased::Taken(Box::new(Taken { envelope, lease, task })))
}

fn by_seq(conn: &Connection, seq: u64) -> rusqlite::Result<Envelope> {
    conn.prepare_cached(sql::FIND_SEQ)?.query_row(named_params! {":seq": seq}, Envelope::read)
}

/// The envelope ends so once its key was asked about.
fn want_end(
    conn: &Connection,
    seq: u64,
    ending: Ending,
    now: Timestamp,
    error: Option<&str>,
) -> rusqlite::Result<()> {
    one(conn.prepare_cached(sql::WANT_END)?.execute(named_params! {
        ":seq": seq, ":ending": Sql(&ending), ":now": Sql(&now), ":error": error,
    })?)
}

/// Fixed at the first attempt; until then it depends on how the write before it ended.
fn condition_of(conn: &Connection, envelope: &Envelope) -> rusqlite::Result<Option<Precondition>> {
    let Some(own) = envelope.precondition.clone() else { return Ok(None) };
    // An attempt that surely did not leave fixed nothing.
    if let Some(sent) = envelope.sent_precondition.clone().filter(|_| envelope.outcome != Outcome::NotSent) {
        return Ok(Some(sent));
    }
    let before = match envelope.base_envelope {
        Some(base) => end_of(conn, base, &envelope.order_key)?,
        None => None,
    };
    Ok(Some(effective(own, before)))
}

/// How a write of the same resource ended. A tag is of one resource: that of a batch, or of one of many, says nothing of
/// another.
fn end_of(
    conn: &Connection,
    id: RowId,
    resource: &OrderKey,
) -> rusqlite::Result<Option<(Status, Outcome, Option<String>)>> {
    let same = by_id(conn, id)?.filter(|row| row.order_key == *resource && !resource.is_barrier());
    Ok(same.map(|row| (row.status, row.outcome, row.response.etag)))
}

fn expire(conn: &Connection, now: Timestamp) -> rusqlite::Result<Vec<Envelope>> {
    let before = over_age(aged(conn, now)?);
    let old: Vec<(u64, Outcome)> = conn
        .prepare_cached(sql::OVER_AGE)?
        .query_map(named_params! {":before": before, ":limit": limits::SWEEP_ROWS_MAX}, |row| {
            Ok((row.get("local_seq")?, get(row, "outcome")?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut expired = Vec::new();
    for (seq, outcome) in old {
        match outcome {
            Outcome::NotSent => {
                end(conn, &End::new(seq, Status::Queued, Status::Expired, outcome, now))?;
                expired.push(by_seq(conn, seq)?);
            }
            Outcome::Unknown | Outcome::Committed | Outcome::NotCommitted => {
                want_end(conn, seq, Ending::Expired, now, None)?;
            }
        }
    }
    Ok(expired)
}
