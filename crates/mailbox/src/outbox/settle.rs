//! What came back for a frame, applied row by row; then the lane goes on, or waits.
//!
//! - An acceptance is truth for the row it names by place and fingerprint, whatever became of the row.
//! - Any other answer counts only under the lease the row was sent with.
//! - A frame is settled whole: a row of the lease that has no answer is lost, not forgotten.

use std::time::Duration;

use model::outbox::{Answer, Move, Patience, Status, settle};
use model::{ErrorCode, Fingerprint, LeaseToken, RowId, Timestamp, limits};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use sqlite::StorageError;

use super::lane::{self, Hearing, LaneKey, Left};
use super::{Standing, one};
use crate::column::{Sql, get};
use crate::{Mailbox, sql};

/// The answers for one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The frame's lane.
    pub lane: LaneKey,
    /// The frame's lease.
    pub lease: LeaseToken,
    /// Wall clock.
    pub now: Timestamp,
    /// Broker time, as well as it is known when the link is lost.
    pub broker_now: Timestamp,
    /// In the frame's order.
    pub answers: Vec<RowAnswer>,
    /// Any uniform number: spreads retries.
    pub random: u64,
}

/// The answer for one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowAnswer {
    /// Which row.
    pub seq: u64,
    /// What it was asked.
    pub fingerprint: Fingerprint,
    /// What came.
    pub answer: Answer,
    /// The refusal in words, for people.
    pub error_text: Option<String>,
    /// How long the broker wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// What the answers did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Rows now known to be accepted.
    pub done: Vec<RowId>,
    /// Rows that will be tried again.
    pub retried: Vec<RowId>,
    /// Rows given up; the broker should be asked about them.
    pub buried: Vec<RowId>,
    /// Until when the lane waits.
    pub next_attempt_at: Option<Timestamp>,
}

impl Mailbox {
    /// Applies a frame's answers and sets its lane's pace.
    pub async fn settle(&self, settlement: Settlement) -> Result<Settled, StorageError> {
        self.db.write_checked("mailbox.settle", move |conn| Ok(apply(conn, &settlement)?)).await
    }
}

fn apply(conn: &Connection, settlement: &Settlement) -> rusqlite::Result<Settled> {
    let Settlement { lane, now, broker_now, random, .. } = settlement;
    let hearing = Hearing::of(lane::get_wait(conn, lane)?, *now, *broker_now, *random);
    let mut frame = Frame { conn, settlement, hearing, settled: Settled::default() };
    for answer in &settlement.answers {
        frame.hear(answer)?;
    }
    for silent in frame.unanswered()? {
        frame.hear(&silent)?;
    }
    let left = frame.hearing.left();
    lane::leave(conn, lane, &left)?;
    let mut settled = frame.settled;
    settled.next_attempt_at = match left {
        Left::Waiting(wait) => Some(wait.next_attempt_at),
        Left::Free | Left::AsItWas => None,
    };
    Ok(settled)
}

struct Frame<'a> {
    conn: &'a Connection,
    settlement: &'a Settlement,
    hearing: Hearing,
    settled: Settled,
}

/// The row an answer names.
struct Answered {
    row: RowId,
    standing: Standing,
    lease: Option<LeaseToken>,
    attempts: u32,
    first_attempt_at: Option<Timestamp>,
}

impl Frame<'_> {
    fn hear(&mut self, heard: &RowAnswer) -> rusqlite::Result<()> {
        let Some(row) = self.find(heard)? else { return Ok(()) };
        let holds_lease = row.lease == Some(self.settlement.lease);
        let patience = Patience {
            attempts: row.attempts,
            tried_for: row.first_attempt_at.map_or(Duration::ZERO, |at| self.settlement.broker_now.since(at)),
            gone_for: self.hearing.gone_for(&heard.answer),
        };
        let did = settle(row.standing.status, holds_lease, heard.answer, patience);
        self.act(&row, heard, &did)?;
        self.hearing.hear(&heard.answer, &did, row.attempts, heard.retry_after);
        Ok(())
    }

    fn act(&mut self, row: &Answered, heard: &RowAnswer, did: &Move) -> rusqlite::Result<()> {
        let (conn, seq, lease, now) = (self.conn, heard.seq, &self.settlement.lease, self.settlement.now);
        match did {
            Move::Done(receipt) => {
                row.standing.done(conn, receipt, now)?;
                self.settled.done.push(row.row);
            }
            Move::LateAck(receipt) => row.standing.late_ack(conn, receipt, now)?,
            Move::Bury(reason, outcome) => {
                one(conn.prepare_cached(sql::SETTLE_BURY)?.execute(named_params! {
                    ":seq": seq, ":lease": Sql(lease), ":error": error_text(heard),
                    ":reason": Sql(reason), ":outcome": Sql(outcome),
                })?)?;
                self.settled.buried.push(row.row);
            }
            Move::Retry => {
                one(conn.prepare_cached(sql::SETTLE_RETRY)?.execute(named_params! {
                    ":seq": seq, ":lease": Sql(lease), ":error": error_text(heard),
                })?)?;
                self.settled.retried.push(row.row);
            }
            Move::Release => one(conn
                .prepare_cached(sql::SETTLE_RELEASE)?
                .execute(named_params! {":seq": seq, ":lease": Sql(lease)})?)?,
            Move::Nothing => {}
        }
        Ok(())
    }

    fn find(&self, heard: &RowAnswer) -> rusqlite::Result<Option<Answered>> {
        let lane = &self.settlement.lane;
        let asked = named_params! {
            ":seq": heard.seq, ":fingerprint": Sql(&heard.fingerprint),
            ":sender": Sql(&lane.sender), ":lane": lane.lane,
        };
        let answered = |row: &Row<'_>| {
            let standing = Standing {
                seq: heard.seq,
                status: get::<Status>(row, "status")?,
                fingerprint: heard.fingerprint,
                broker_message_id: get(row, "broker_message_id")?,
                successor: get(row, "superseded_by")?,
            };
            Ok(Answered {
                row: get(row, "id")?,
                standing,
                lease: get(row, "lease_token")?,
                attempts: row.get("attempts")?,
                first_attempt_at: get(row, "first_attempt_at")?,
            })
        };
        self.conn.prepare_cached(sql::SETTLE_ROW)?.query_row(asked, answered).optional()
    }

    fn unanswered(&self) -> rusqlite::Result<Vec<RowAnswer>> {
        let Settlement { lane, lease, .. } = self.settlement;
        let held = named_params! {":sender": Sql(&lane.sender), ":lane": lane.lane, ":lease": Sql(lease)};
        let lost = |row: &Row<'_>| {
            Ok(RowAnswer {
                seq: row.get("seq")?,
                fingerprint: get(row, "request_fingerprint")?,
                answer: Answer::Lost,
                error_text: None,
                retry_after: None,
            })
        };
        self.conn.prepare_cached(sql::SETTLE_UNANSWERED)?.query_map(held, lost)?.collect()
    }
}

/// The refusal in words: the broker's, else its code's; cut at a bound, between characters.
fn error_text(heard: &RowAnswer) -> String {
    let text = match (&heard.error_text, heard.answer) {
        (Some(text), _) if !text.is_empty() => text.as_str(),
        (_, Answer::Refused(code)) => ErrorCode::code(code),
        (_, Answer::Lost) => "no answer came",
        (_, Answer::NotTried | Answer::Accepted(_)) => "unknown",
    };
    text[..text.floor_char_boundary(limits::LAST_ERROR_BYTES_MAX)].to_owned()
}
