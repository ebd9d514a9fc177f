//! A message becomes `engaged`: the turn is a row before anybody works on it.

use model::turn::{self, Asking, Beginning, NoTurn, TurnMark};
use model::{DeliveryRung, MemberId, MessageId, Timestamp, TurnId};
use rusqlite::{Connection, OptionalExtension, named_params};
use sqlite::StorageError;

use super::{Turn, by_id, one, open_of};
use crate::column::{Sql, get};
use crate::planted::{TURN_UNMARKED, planted};
use crate::{Mailbox, sql};

/// A turn asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeginTurn {
    /// The turn's id, minted by the caller: asking again with it gives the same turn.
    pub turn: TurnId,
    /// Whose turn.
    pub agent: MemberId,
    /// On what.
    pub asked: TurnAsked,
    /// Who holds it, in its own words.
    pub holder: Option<String>,
    /// Until when it is its holder's without another word.
    pub lease_until: Timestamp,
    /// Now, on this host.
    pub now: Timestamp,
    /// Now, at the broker: deadlines are its.
    pub broker_now: Timestamp,
}

/// See [`BeginTurn::asked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnAsked {
    /// Whatever comes next.
    Next,
    /// This message.
    Message(MessageId),
}

/// What became of it, true after the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// This turn, now or by an earlier call with the same id.
    Turn(Box<Turn>),
    /// Nothing waits.
    Nothing,
}

/// Why no turn began.
#[derive(Debug, thiserror::Error)]
pub enum BeginTurnError {
    /// The agent has one.
    #[error("turn {} is open", .0.id)]
    Open(Box<Turn>),
    /// The message, or the turn of that id, is over.
    #[error("the message has had its turn")]
    Over,
    /// The agent holds no such message.
    #[error("no such message")]
    Unknown,
    /// The file.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<rusqlite::Error> for BeginTurnError {
    fn from(source: rusqlite::Error) -> Self {
        BeginTurnError::Storage(source.into())
    }
}

impl Mailbox {
    /// Begins a turn, and with it interrupts an open one of the same agent whose lease ran out.
    pub async fn begin_turn(&self, asked: BeginTurn) -> Result<Begun, BeginTurnError> {
        self.db.write("mailbox.turn_begin", move |conn| begin(conn, &asked)).await
    }

    /// Whether [`Mailbox::begin_turn`] has anything to do for the agent: a look before a write.
    pub async fn has_turn(
        &self,
        agent: MemberId,
        now: Timestamp,
        broker_now: Timestamp,
    ) -> Result<bool, StorageError> {
        self.db
            .read("mailbox.turn_next", move |conn| {
                let lost = open_of(conn, agent)?.is_some_and(|open| turn::is_lost(&open.state, now));
                Ok(lost || next(conn, agent, broker_now)?.is_some())
            })
            .await
    }
}

fn begin(conn: &Connection, asked: &BeginTurn) -> Result<Begun, BeginTurnError> {
    if let Some(open) = open_of(conn, asked.agent)? {
        if open.id == asked.turn {
            return Ok(Begun::Turn(Box::new(open)));
        }
        if !turn::is_lost(&open.state, asked.now) {
            return Err(BeginTurnError::Open(Box::new(open)));
        }
        open.interrupt(conn, asked.now)?;
    }
    let known = conn.prepare_cached(sql::TURN_EXISTS)?.exists(named_params! {":id": Sql(&asked.turn)})?;
    if known {
        return Err(BeginTurnError::Over);
    }
    let (found, asking) = match asked.asked {
        TurnAsked::Next => (next(conn, asked.agent, asked.broker_now)?, Asking::Next),
        TurnAsked::Message(message) => {
            let found = named(conn, asked.agent, message)?;
            (Some(found.ok_or(BeginTurnError::Unknown)?), Asking::ByName)
        }
    };
    let Some(inbox_seq) = found else { return Ok(Begun::Nothing) };
    let (mark, attempts) = standing(conn, inbox_seq)?;
    let beginning = turn::begin(mark, attempts, asking).map_err(|no| match no {
        // The open turn was the agent's own, and was looked for first.
        NoTurn::Open | NoTurn::Over | NoTurn::GivenUp => BeginTurnError::Over,
    })?;
    engage(conn, asked, inbox_seq, mark, beginning)?;
    let begun = by_id(conn, asked.turn, asked.agent)?.expect("the turn was inserted in this job");
    Ok(Begun::Turn(Box::new(shown(begun))))
}

fn next(conn: &Connection, agent: MemberId, broker_now: Timestamp) -> rusqlite::Result<Option<u64>> {
    let key = named_params! {":agent": Sql(&agent), ":broker_now": Sql(&broker_now)};
    conn.prepare_cached(sql::TURN_NEXT)?.query_row(key, |row| row.get(0)).optional()
}

pub(super) fn named(conn: &Connection, agent: MemberId, message: MessageId) -> rusqlite::Result<Option<u64>> {
    let key = named_params! {":agent": Sql(&agent), ":message": Sql(&message)};
    conn.prepare_cached(sql::TURN_NAMED)?.query_row(key, |row| row.get(0)).optional()
}

pub(super) fn standing(conn: &Connection, inbox_seq: u64) -> rusqlite::Result<(TurnMark, u32)> {
    let read = |row: &rusqlite::Row<'_>| Ok((get(row, "turn")?, row.get("attempts")?));
    conn.prepare_cached(sql::TURN_STANDING)?.query_row(named_params! {":seq": inbox_seq}, read)
}

fn engage(
    conn: &Connection,
    asked: &BeginTurn,
    inbox_seq: u64,
    mark: TurnMark,
    beginning: Beginning,
) -> rusqlite::Result<()> {
    let message = crate::inbox::by_seq(conn, inbox_seq)?;
    conn.prepare_cached(sql::TURN_INSERT)?.execute(named_params! {
        ":id": Sql(&asked.turn), ":agent": Sql(&asked.agent), ":inbox_seq": inbox_seq,
        ":attempt": beginning.attempt, ":redelivered": beginning.redelivered || message.redelivered,
        ":holder": asked.holder, ":now": Sql(&asked.now), ":lease_until": Sql(&asked.lease_until),
    })?;
    one(conn.prepare_cached(sql::TURN_ENGAGE)?.execute(named_params! {
        ":seq": inbox_seq, ":held": Sql(&mark), ":rung": Sql(&DeliveryRung::Engaged), ":now": Sql(&asked.now),
    })?)
}

fn shown(turn: Turn) -> Turn {
    if planted(TURN_UNMARKED) { Turn { attempt: 1, redelivered: false, ..turn } } else { turn }
}
