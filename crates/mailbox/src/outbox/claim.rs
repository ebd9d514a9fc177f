//! The courier takes what may leave: for each free lane its next rows, in order, under a lease.
//!
//! - Rows stand in the order they came until a claim sorts them by lane, a bounded number at once.
//! - A lane with a row on the wire gives nothing; nor does one that waits.
//! - A row whose time is over is buried in the same transaction and does not stop its lane; so is a row whose payload
//!   is missing.
//! - A row an operator holds, and a successor whose predecessor may have been accepted, stop their lane:
//!   passing them by would change the order.

use std::sync::Arc;
use std::time::Duration;

use model::outbox::{Claim, DeadReason, Outcome, claim, outcome_of_dead};
use model::{ClientMessageId, Entropy, Fingerprint, LeaseToken, RowId, Timestamp, limits};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use sqlite::StorageError;

use super::lane::{self, LaneKey};
use super::one;
use crate::column::{Sql, get};
use crate::planted::{AGE_OF_UNATTEMPTED, planted};
use crate::sorting::Sorting;
use crate::{Mailbox, sql};

/// What the courier could take on now. A claim needs broker time: without a link there is none.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Wall clock, for lanes that wait.
    pub now: Timestamp,
    /// Broker time, for deadlines and ages.
    pub broker_now: Timestamp,
    /// The oldest an attempted row may get.
    pub max_age: Duration,
    /// Frames wanted.
    pub lanes_max: usize,
    /// Lanes whose answer the courier still awaits.
    pub busy: Vec<LaneKey>,
    /// The last lane served: the round goes on behind it, so that busy lanes starve nobody.
    pub after: Option<LaneKey>,
}

/// What the courier got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// One per lane.
    pub frames: Vec<LaneFrame>,
    /// Rows whose time was over.
    pub buried: usize,
    /// When a lane that waits becomes due; there may be earlier ones when `frames` is as long as asked.
    pub next_due: Option<Timestamp>,
    /// For the next [`ClaimRequest::after`].
    pub after: Option<LaneKey>,
}

/// A lane's next rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneFrame {
    /// Which lane.
    pub lane: LaneKey,
    /// Under which refusals may be recorded.
    pub lease: LeaseToken,
    /// In the order they must be accepted.
    pub rows: Vec<Leased>,
}

/// A row about to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// Its place.
    pub seq: u64,
    /// Its id.
    pub row: RowId,
    /// The caller's id for it.
    pub client_message_id: ClientMessageId,
    /// What was asked.
    pub fingerprint: Fingerprint,
    /// The bytes handed over.
    pub payload: Vec<u8>,
    /// When it first went on the wire, in broker time.
    pub first_attempt_at: Timestamp,
    /// After which the broker refuses a copy.
    pub send_deadline: Timestamp,
    /// Its own deadline, in broker time.
    pub deliver_by: Option<Timestamp>,
    /// Tries, this one included.
    pub attempts: u32,
}

/// What JSON adds to a row's payload in a frame: ids, fingerprint, deadlines and their names.
const FRAMING_BYTES: usize = 512;

/// `last_error` of a row that can never leave: its file is damaged, and its lane goes on without it.
const PAYLOAD_MISSING: &str = "payload_missing: the file holds the row without its payload";

impl Mailbox {
    /// Takes the next frame of each free lane, at most `lanes_max` of them.
    pub async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StorageError> {
        let entropy = Arc::clone(&self.entropy);
        self.db.write_checked("mailbox.claim", move |conn| Ok(take(conn, &request, &*entropy)?)).await
    }
}

fn take(conn: &Connection, request: &ClaimRequest, entropy: &dyn Entropy) -> rusqlite::Result<Claimed> {
    let latest = request.now + limits::RETRY_AFTER_MAX;
    conn.prepare_cached(sql::CLAIM_CLAMP)?.execute(named_params! {":latest": Sql(&latest)})?;
    let is_sorted = sort(conn)?;
    let mut claimed = Claimed { after: request.after.clone(), ..Claimed::default() };
    let mut round = Round::behind(request.after.as_ref());
    while claimed.frames.len() < request.lanes_max
        && let Some(lane) = round.next(conn)?
    {
        if request.busy.contains(&lane) {
            continue;
        }
        let lease = LeaseToken::mint(request.now, entropy);
        let mut taking = Taking { conn, request, lane: &lane, lease, rows: Vec::new(), bytes: 0, buried: 0 };
        let due = taking.fill(limits::SWEEP_ROWS_MAX - claimed.buried)?;
        claimed.buried += taking.buried;
        claimed.next_due = [claimed.next_due, due].into_iter().flatten().min();
        let rows = taking.rows;
        if !rows.is_empty() {
            claimed.after = Some(lane.clone());
            claimed.frames.push(LaneFrame { lane, lease, rows });
        }
    }
    if !is_sorted {
        // Behind what was looked at there may be lanes that are free.
        claimed.next_due = Some(request.now);
    }
    Ok(claimed)
}

/// Puts rows that came since into their lanes; whether that were all.
fn sort(conn: &Connection) -> rusqlite::Result<bool> {
    Sorting { state: sql::SORT_STATE, put: sql::SORT_PUT }.some(conn, |after, upto| {
        conn.prepare_cached(sql::SORT_ROWS)?.execute(named_params! {":after": after, ":upto": upto})
    })
}

/// Lanes with rows to go, in key order from behind `start` around to `start` itself.
struct Round<'a> {
    start: Option<&'a LaneKey>,
    last: Option<LaneKey>,
    wrapped: bool,
}

impl<'a> Round<'a> {
    fn behind(start: Option<&'a LaneKey>) -> Round<'a> {
        Round { start, last: start.cloned(), wrapped: start.is_none() }
    }

    fn next(&mut self, conn: &Connection) -> rusqlite::Result<Option<LaneKey>> {
        let mut found = lane_behind(conn, self.last.as_ref())?;
        if found.is_none() && !self.wrapped {
            self.wrapped = true;
            found = lane_behind(conn, None)?;
        }
        let round = self.wrapped && self.start.is_some_and(|start| found.as_ref() > Some(start));
        self.last = if round { None } else { found };
        Ok(self.last.clone())
    }
}

fn lane_behind(conn: &Connection, last: Option<&LaneKey>) -> rusqlite::Result<Option<LaneKey>> {
    let key = |row: &Row<'_>| Ok(LaneKey { sender: get(row, "sender_member_id")?, lane: row.get("lane")? });
    match last {
        None => conn.prepare_cached(sql::CLAIM_FIRST_LANE)?.query_row([], key).optional(),
        Some(last) => conn
            .prepare_cached(sql::CLAIM_NEXT_LANE)?
            .query_row(named_params! {":sender": Sql(&last.sender), ":lane": last.lane}, key)
            .optional(),
    }
}

/// One lane's frame while it is filled.
struct Taking<'a> {
    conn: &'a Connection,
    request: &'a ClaimRequest,
    lane: &'a LaneKey,
    lease: LeaseToken,
    rows: Vec<Leased>,
    bytes: usize,
    buried: usize,
}

/// A pending row, looked at.
struct Head {
    seq: u64,
    row: RowId,
    client_message_id: ClientMessageId,
    fingerprint: Fingerprint,
    deliver_by: Option<Timestamp>,
    attempts: u32,
    first_attempt_at: Option<Timestamp>,
    held_until: Option<Timestamp>,
    unasked: bool,
}

/// Whether the lane's next row may be looked at too.
enum Next {
    GoOn,
    /// No, and then the lane may be due.
    Stop(Option<Timestamp>),
}

impl Taking<'_> {
    /// Fills the frame; answers when the lane may be due, when that is known and not now.
    fn fill(&mut self, buried_max: usize) -> rusqlite::Result<Option<Timestamp>> {
        let wait = lane::get_wait(self.conn, self.lane)?;
        if let Some(wait) = wait.filter(|wait| wait.next_attempt_at > self.request.now) {
            return Ok(Some(wait.next_attempt_at));
        }
        if self.is_on_the_wire()? {
            return Ok(None);
        }
        let rows_max = if wait.is_some() { 1 } else { limits::FRAME_MESSAGES_MAX };
        let mut after = 0;
        loop {
            let heads = self.heads(after)?;
            let Some(last) = heads.last() else { return Ok(None) };
            after = last.seq;
            for head in heads {
                if self.rows.len() == rows_max {
                    return Ok(None);
                }
                if self.buried == buried_max {
                    return Ok(Some(self.request.now));
                }
                if let Next::Stop(due) = self.look_at(head)? {
                    return Ok(due);
                }
            }
        }
    }

    fn is_on_the_wire(&self) -> rusqlite::Result<bool> {
        let mut statement = self.conn.prepare_cached(sql::CLAIM_IS_ON_THE_WIRE)?;
        let lane = named_params! {":sender": Sql(&self.lane.sender), ":lane": self.lane.lane};
        statement.query_row(lane, |row| row.get(0))
    }

    fn heads(&self, after: u64) -> rusqlite::Result<Vec<Head>> {
        let mut statement = self.conn.prepare_cached(sql::CLAIM_ROWS)?;
        let page = named_params! {
            ":sender": Sql(&self.lane.sender), ":lane": self.lane.lane, ":after": after,
            ":limit": limits::FRAME_MESSAGES_MAX,
        };
        statement.query_map(page, head)?.collect()
    }

    fn look_at(&mut self, head: Head) -> rusqlite::Result<Next> {
        let now = self.request.now;
        // A hold from a future the clock has left is over.
        let held = head.held_until.filter(|until| *until > now && *until <= now + limits::OPERATOR_HOLD_MAX);
        if held.is_some() {
            return Ok(Next::Stop(held));
        }
        // Whatever its first attempt says: a successor of a restored file has that of the backup.
        if head.unasked {
            return Ok(Next::Stop(None));
        }
        if head.first_attempt_at.is_none() && planted(AGE_OF_UNATTEMPTED) {
            return self.bury(&head, DeadReason::MaxAge, Outcome::NotSent, DeadReason::MaxAge.word());
        }
        match claim(head.first_attempt_at, head.deliver_by, self.request.broker_now, self.request.max_age) {
            Claim::Go { first_attempt_at, send_deadline } => {
                self.lease(head, first_attempt_at, send_deadline)
            }
            Claim::GiveUp(reason, outcome) => self.bury(&head, reason, outcome, reason.word()),
        }
    }

    fn lease(&mut self, head: Head, first: Timestamp, send_deadline: Timestamp) -> rusqlite::Result<Next> {
        let mut statement = self.conn.prepare_cached(sql::OUTBOX_PAYLOAD)?;
        let payload = statement.query_row(named_params! {":seq": head.seq}, |row| row.get(0)).optional()?;
        let Some(payload): Option<Vec<u8>> = payload else {
            let outcome = outcome_of_dead(head.first_attempt_at);
            return self.bury(&head, DeadReason::Poison, outcome, PAYLOAD_MISSING);
        };
        self.bytes += payload.len() + FRAMING_BYTES;
        // A row too large for any frame goes alone and is refused by name, not kept for ever.
        if self.bytes > limits::FRAME_BYTES_MAX && !self.rows.is_empty() {
            return Ok(Next::Stop(None));
        }
        one(self.conn.prepare_cached(sql::CLAIM_TAKE)?.execute(named_params! {
            ":seq": head.seq, ":lease": Sql(&self.lease), ":first_attempt_at": Sql(&first),
        })?)?;
        self.rows.push(Leased {
            seq: head.seq,
            row: head.row,
            client_message_id: head.client_message_id,
            fingerprint: head.fingerprint,
            payload,
            first_attempt_at: first,
            send_deadline,
            deliver_by: head.deliver_by,
            attempts: head.attempts + 1,
        });
        Ok(Next::GoOn)
    }

    fn bury(
        &mut self,
        head: &Head,
        reason: DeadReason,
        outcome: Outcome,
        why: &str,
    ) -> rusqlite::Result<Next> {
        one(self.conn.prepare_cached(sql::CLAIM_GIVE_UP)?.execute(named_params! {
            ":seq": head.seq, ":reason": Sql(&reason), ":outcome": Sql(&outcome), ":why": why,
        })?)?;
        self.buried += 1;
        Ok(Next::GoOn)
    }
}

fn head(row: &Row<'_>) -> rusqlite::Result<Head> {
    Ok(Head {
        seq: row.get("seq")?,
        row: get(row, "id")?,
        client_message_id: get(row, "client_message_id")?,
        fingerprint: get(row, "request_fingerprint")?,
        deliver_by: get(row, "deliver_by")?,
        attempts: row.get("attempts")?,
        first_attempt_at: get(row, "first_attempt_at")?,
        held_until: get(row, "lease_until")?,
        unasked: row.get("unasked")?,
    })
}
