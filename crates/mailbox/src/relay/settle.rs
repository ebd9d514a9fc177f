//! What came back for an attempt, or for a question about a key.

use std::sync::Arc;
use std::time::Duration;

use model::relay::{Answer, Ending, Fenced, Move, Outcome, Precondition, Status, conclude, delay, settle};
use model::route_class::OrderKey;
use model::{LeaseToken, Timestamp, limits, secrets};
use rusqlite::{Connection, OptionalExtension, named_params};
use sqlite::StorageError;

use super::row::{Envelope, Response};
use super::{Envelopes, one, sql};
use crate::column::Sql;

/// An answer to one attempt.
#[derive(Clone, Debug)]
pub struct Heard {
    /// Whose.
    pub local_seq: u64,
    /// The attempt.
    pub lease: LeaseToken,
    /// What was known before the attempt: what surely did not leave changes nothing.
    pub outcome_before: Outcome,
    /// What came.
    pub answer: Answer,
    /// What is kept of it.
    pub response: Response,
    /// The versions that the write left behind, where the answer named them.
    pub left: Vec<LeftVersion>,
    /// The same in words.
    pub error: Option<String>,
    /// How long the upstream wants to be left alone.
    pub retry_after: Option<Duration>,
    /// Any uniform number.
    pub random: u64,
    /// Now.
    pub now: Timestamp,
}

/// A resource as a committed write left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftVersion {
    /// The resource.
    pub order_key: OrderKey,
    /// Its entity tag.
    pub tag: String,
}

/// What an envelope became.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Where it was.
    pub before: Status,
    /// As it stands now.
    pub envelope: Envelope,
    /// What the rules said.
    pub did: Move,
}

/// What became of a live write that was to be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgetting {
    /// Nothing is left of it.
    Forgotten,
    /// It is kept, and its attempt is still to be settled: a copy came meanwhile, and its caller holds a receipt.
    Promised,
    /// It is kept: its attempt had lost its lease.
    LeaseLost,
}

/// How an envelope ends.
pub(super) struct End {
    pub(super) seq: u64,
    pub(super) expected: Status,
    pub(super) status: Status,
    pub(super) outcome: Outcome,
    pub(super) now: Timestamp,
    pub(super) response: Response,
    pub(super) error: Option<String>,
    pub(super) resolution: Option<String>,
}

impl End {
    pub(super) fn new(seq: u64, expected: Status, status: Status, outcome: Outcome, now: Timestamp) -> Self {
        let (response, error, resolution) = (Response::default(), None, None);
        Self { seq, expected, status, outcome, now, response, error, resolution }
    }
}

impl Envelopes {
    /// Applies an answer. Nothing when the envelope is not there any more.
    pub async fn settle(&self, heard: Heard) -> Result<Option<Settled>, StorageError> {
        let lease = heard.lease;
        let settled = self.db.write_checked("relay.settle", move |conn| Ok(apply(conn, &heard)?)).await;
        self.live.end(lease);
        settled
    }

    /// Applies the upstream's word on the key of an envelope that waits to end.
    pub async fn conclude(
        &self,
        local_seq: u64,
        lease: LeaseToken,
        fenced: Fenced,
        response: Response,
        now: Timestamp,
    ) -> Result<Option<Envelope>, StorageError> {
        self.db
            .write("relay.conclude", move |conn| {
                let Some(row) = find(conn, local_seq)?.filter(|row| row.lease == Some(lease)) else {
                    return Ok(None);
                };
                let Some(ending) = row.ending else { return Ok(None) };
                let (status, outcome) = conclude(ending, fenced);
                end(conn, &End { response, ..End::new(local_seq, Status::Inflight, status, outcome, now) })?;
                Ok(find(conn, local_seq)?)
            })
            .await
    }

    /// Forgets a live write whose caller waited and heard the upstream's own refusal, unless somebody else rests on it.
    pub async fn forget_live(&self, local_seq: u64, lease: LeaseToken) -> Result<Forgetting, StorageError> {
        let live = Arc::clone(&self.live);
        let forgetting = self
            .db
            .write("relay.forget_live", move |conn| {
                if !live.may_be_forgotten(lease) {
                    return Ok(Forgetting::Promised);
                }
                let asked = named_params! {":seq": local_seq, ":lease": Sql(&lease)};
                if conn.prepare_cached(sql::FORGET_LIVE)?.execute(asked)? == 0 {
                    return Ok(Forgetting::LeaseLost);
                }
                conn.prepare_cached(sql::FORGET_BODY)?.execute(named_params! {":seq": local_seq})?;
                Ok(Forgetting::Forgotten)
            })
            .await;
        match forgetting {
            Ok(Forgetting::Promised) => {}
            Ok(Forgetting::Forgotten | Forgetting::LeaseLost) | Err(_) => self.live.end(lease),
        }
        forgetting
    }

    /// Gives a claim back as it was, to be tried again after `pause`.
    pub async fn give_back(
        &self,
        taken: &Envelope,
        lease: LeaseToken,
        pause: Duration,
        now: Timestamp,
    ) -> Result<(), StorageError> {
        let row = taken.clone();
        self.db
            .write("relay.give_back", move |conn| {
                again(conn, &row, lease, row.outcome, row.ending, now + pause, &Response::default(), None)?;
                Ok(())
            })
            .await
    }

    /// Forgets envelopes that were done a day ago.
    pub async fn trim(&self, now: Timestamp) -> Result<usize, StorageError> {
        let kept = i64::try_from(limits::RELAY_DONE_KEPT.as_micros()).expect("a day fits 64 bits");
        let before = now.as_micros().saturating_sub(kept);
        self.db
            .write("relay.trim", move |conn| {
                let old: Vec<u64> = conn
                    .prepare_cached(sql::TRIM)?
                    .query_map(named_params! {":before": before, ":limit": limits::SWEEP_ROWS_MAX}, |row| {
                        row.get(0)
                    })?
                    .collect::<rusqlite::Result<_>>()?;
                for seq in &old {
                    forget(conn, *seq)?;
                }
                conn.prepare_cached(sql::LEFT_FORGET)?.execute([])?;
                Ok(old.len())
            })
            .await
    }
}

fn apply(conn: &Connection, heard: &Heard) -> rusqlite::Result<Option<Settled>> {
    let Some(row) = find(conn, heard.local_seq)? else { return Ok(None) };
    let holds_lease = row.lease == Some(heard.lease);
    let did = settle(row.status, holds_lease, heard.outcome_before, heard.answer);
    let back = |outcome, ending: Option<Ending>, due| {
        again(conn, &row, heard.lease, outcome, ending, due, &heard.response, heard.error.as_deref())
    };
    match did {
        Move::Done => {
            let response = heard.response.clone();
            let ended = End::new(row.local_seq, row.status, Status::Done, Outcome::Committed, heard.now);
            end(conn, &End { response, ..ended })?;
            heard.left.iter().try_for_each(|left| pass_on(conn, row.local_seq, left))?;
        }
        Move::LateAck => {
            one(conn
                .prepare_cached(sql::LATE_ACK)?
                .execute(named_params! {":seq": row.local_seq, ":now": Sql(&heard.now)})?)?;
        }
        Move::Expire => {
            let (status, outcome) = (Status::Expired, Outcome::NotCommitted);
            let (response, error) = (heard.response.clone(), heard.error.clone());
            end(
                conn,
                &End { response, error, ..End::new(row.local_seq, row.status, status, outcome, heard.now) },
            )?;
        }
        Move::Again(outcome) => {
            let pause = delay(row.attempts, heard.retry_after, heard.random);
            back(outcome, None, heard.now + pause)?;
        }
        Move::Pause => back(heard.outcome_before, None, heard.now)?,
        Move::Ask(ending) => back(Outcome::Unknown, Some(ending), heard.now)?,
        Move::Nothing => {}
    }
    let before = row.status;
    let envelope = find(conn, heard.local_seq)?.unwrap_or(row);
    Ok(Some(Settled { before, envelope, did }))
}

/// What waits behind a committed write learns the version that it left.
fn pass_on(conn: &Connection, seq: u64, left: &LeftVersion) -> rusqlite::Result<()> {
    let Some(tag) = storable(Some(&left.tag)) else { return Ok(()) };
    let (key, condition) = (&left.order_key, Precondition::Match(tag.to_owned()));
    conn.prepare_cached(sql::CHAIN)?.execute(named_params! {
        ":seq": seq, ":order_key": Sql(key), ":precondition": Sql(&condition),
    })?;
    conn.prepare_cached(sql::LEFT_PUT)?.execute(named_params! {
        ":seq": seq, ":order_key": Sql(key), ":scope": key.scope(), ":tag": tag,
    })?;
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "one statement's parameters, used from three places beside it")]
fn again(
    conn: &Connection,
    row: &Envelope,
    lease: LeaseToken,
    outcome: Outcome,
    ending: Option<Ending>,
    due: Timestamp,
    response: &Response,
    error: Option<&str>,
) -> rusqlite::Result<()> {
    // A lease that was lost in between has its own holder; nothing of ours is written then.
    conn.prepare_cached(sql::AGAIN)?.execute(named_params! {
        ":seq": row.local_seq, ":lease": Sql(&lease), ":outcome": Sql(&outcome), ":ending": Sql(&ending),
        ":due": Sql(&due), ":error": error.map(secrets::storable_text),
        ":response_status": response.status, ":response_code": storable(response.code.as_deref()),
        ":response_etag": storable(response.etag.as_deref()),
    })?;
    Ok(())
}

pub(super) fn end(conn: &Connection, end: &End) -> rusqlite::Result<()> {
    // What was committed is the upstream's to keep.
    let forget = end.status == Status::Done;
    one(conn.prepare_cached(sql::END)?.execute(named_params! {
        ":seq": end.seq, ":expected": Sql(&end.expected), ":status": Sql(&end.status),
        ":outcome": Sql(&end.outcome), ":now": Sql(&end.now), ":response_status": end.response.status,
        ":response_etag": storable(end.response.etag.as_deref()),
        ":response_code": storable(end.response.code.as_deref()),
        ":response_resource": storable(end.response.resource.as_deref()),
        ":error": end.error.as_deref().map(secrets::storable_text), ":resolution": end.resolution,
        ":forget": forget,
    })?)?;
    if forget {
        conn.prepare_cached(sql::FORGET_BODY)?.execute(named_params! {":seq": end.seq})?;
    }
    Ok(())
}

/// A short text of the upstream's, or nothing when it is long or looks secret.
fn storable(text: Option<&str>) -> Option<&str> {
    text.filter(|text| text.len() <= limits::LAST_ERROR_BYTES_MAX && !secrets::looks_secret(text))
}

pub(super) fn find(conn: &Connection, seq: u64) -> rusqlite::Result<Option<Envelope>> {
    conn.prepare_cached(sql::FIND_SEQ)?.query_row(named_params! {":seq": seq}, Envelope::read).optional()
}

fn forget(conn: &Connection, seq: u64) -> rusqlite::Result<()> {
    conn.prepare_cached(sql::FORGET_BODY)?.execute(named_params! {":seq": seq})?;
    one(conn.prepare_cached(sql::FORGET)?.execute(named_params! {":seq": seq})?)
}
