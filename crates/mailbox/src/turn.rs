//! The turns of agents at home here: begun, kept, ended, interrupted.
//!
//! - A turn is recorded, and its message `engaged`, before anybody is told of it.
//! - The end, its rung and its reply's outbox row are one transaction.
//! - Attempts are counted by their rows, which are never deleted.
//! - The agent's home is this file, so the lease needs no other authority: whoever begins a turn here while one is
//!   open past its lease interrupts that one in the same transaction.

mod begin;
mod end;
mod keep;
mod retry;

use model::turn::{TurnMark, TurnState};
use model::{MemberId, RowId, Timestamp, TurnId};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OptionalExtension, Row, named_params};

pub use begin::{BeginTurn, BeginTurnError, Begun, TurnAsked};
pub use end::{EndTurn, EndTurnError, EndedTurn};
pub use keep::TurnLostError;
pub use retry::RetryTurnError;

use crate::column::{Sql, get};
use crate::inbox::{InboxRow, by_seq};
use crate::sql;

/// A turn with its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Whose it is.
    pub agent: MemberId,
    /// From 1.
    pub attempt: u32,
    /// Whether an earlier attempt, or an earlier life of this inbox, may have had effects.
    pub redelivered: bool,
    /// Who holds it, in its own words.
    pub holder: Option<String>,
    /// When it began.
    pub began_at: Timestamp,
    /// Where it stands.
    pub state: TurnState,
    /// Why it failed.
    pub error: Option<String>,
    /// The outbox row of its reply.
    pub reply: Option<RowId>,
    /// Whether no later attempt has begun.
    pub newest: bool,
    /// What it is about.
    pub message: InboxRow,
    seq: u64,
}

impl Turn {
    /// Ends an open turn without its holder; answers what its message waits for now.
    fn interrupt(&self, conn: &Connection, now: Timestamp) -> rusqlite::Result<TurnMark> {
        let mark = model::turn::interrupted(self.attempt);
        let at = named_params! {":seq": self.seq, ":now": Sql(&now)};
        one(conn.prepare_cached(sql::TURN_INTERRUPT)?.execute(at)?)?;
        let waits = named_params! {":seq": self.message.seq, ":turn": Sql(&mark)};
        one(conn.prepare_cached(sql::TURN_MARK)?.execute(waits)?)?;
        Ok(mark)
    }
}

fn open_of(conn: &Connection, agent: MemberId) -> rusqlite::Result<Option<Turn>> {
    let key = named_params! {":agent": Sql(&agent)};
    conn.prepare_cached(sql::TURN_OPEN)?.query_row(key, |row| read(conn, row)).optional()
}

fn by_id(conn: &Connection, id: TurnId, agent: MemberId) -> rusqlite::Result<Option<Turn>> {
    let key = named_params! {":id": Sql(&id), ":agent": Sql(&agent)};
    conn.prepare_cached(sql::TURN_BY_ID)?.query_row(key, |row| read(conn, row)).optional()
}

fn of_message(conn: &Connection, inbox_seq: u64) -> rusqlite::Result<Vec<Turn>> {
    let mut statement = conn.prepare_cached(sql::TURN_OF_MESSAGE)?;
    let turns = statement.query_map(named_params! {":inbox_seq": inbox_seq}, |row| read(conn, row))?;
    turns.collect()
}

fn read(conn: &Connection, row: &Row<'_>) -> rusqlite::Result<Turn> {
    Ok(Turn {
        id: get(row, "id")?,
        agent: get(row, "agent_member_id")?,
        attempt: row.get("attempt")?,
        redelivered: row.get("redelivered")?,
        holder: row.get("holder")?,
        began_at: get(row, "began_at")?,
        state: state(row)?,
        error: row.get("error")?,
        reply: get(row, "reply")?,
        newest: row.get("newest")?,
        message: by_seq(conn, row.get("inbox_seq")?)?,
        seq: row.get("seq")?,
    })
}

/// The state with what belongs to it; the table's checks keep the columns of each state present.
fn state(row: &Row<'_>) -> rusqlite::Result<TurnState> {
    Ok(match row.get("state")? {
        0 => TurnState::Open { lease_until: get(row, "lease_until")? },
        1 | 2 => TurnState::Ended { outcome: get(row, "state")?, at: get(row, "ended_at")? },
        3 => TurnState::Interrupted { at: get(row, "ended_at")? },
        unknown => return Err(FromSqlError::OutOfRange(unknown).into()),
    })
}

/// The one writer read the row in this very transaction, so the state a statement names is the state it finds;
/// anything else undoes the job.
fn one(changed: usize) -> rusqlite::Result<()> {
    if changed == 1 { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(changed)) }
}
