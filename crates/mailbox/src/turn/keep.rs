//! Between its begin and its end: a turn is kept, given back, or looked at.

use model::turn::{TurnMark, TurnState};
use model::{MemberId, Timestamp, TurnId, limits};
use rusqlite::named_params;
use sqlite::StorageError;

use super::{Turn, by_id, of_message, one, open_of};
use crate::column::Sql;
use crate::{Mailbox, sql};

/// Why a turn could not be kept or given back.
#[derive(Debug, thiserror::Error)]
pub enum TurnLostError {
    /// It was interrupted.
    #[error("the turn was lost")]
    Lost,
    /// It ended.
    #[error("the turn is over")]
    Over,
    /// The agent has no such turn.
    #[error("no such turn")]
    Unknown,
    /// The file.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<rusqlite::Error> for TurnLostError {
    fn from(source: rusqlite::Error) -> Self {
        TurnLostError::Storage(source.into())
    }
}

impl Mailbox {
    /// Keeps an open turn its holder's until `lease_until`. One past its lease is its holder's too, as long as
    /// nobody took it.
    pub async fn extend_turn(
        &self,
        turn: TurnId,
        agent: MemberId,
        lease_until: Timestamp,
    ) -> Result<(), TurnLostError> {
        self.db
            .write("mailbox.turn_extend", move |conn| {
                let turn = by_id(conn, turn, agent)?.ok_or(TurnLostError::Unknown)?;
                match turn.state {
                    TurnState::Open { .. } => {
                        let lease = named_params! {":seq": turn.seq, ":lease_until": Sql(&lease_until)};
                        Ok(one(conn.prepare_cached(sql::TURN_EXTEND)?.execute(lease)?)?)
                    }
                    TurnState::Interrupted { .. } => Err(TurnLostError::Lost),
                    TurnState::Ended { .. } => Err(TurnLostError::Over),
                }
            })
            .await
    }

    /// Gives an open turn back unended, as a holder does that comes back without memory of it. Answers what the
    /// message waits for; an interrupted turn stays so.
    pub async fn interrupt_turn(
        &self,
        turn: TurnId,
        agent: MemberId,
        now: Timestamp,
    ) -> Result<TurnMark, TurnLostError> {
        self.db
            .write("mailbox.turn_interrupt", move |conn| {
                let turn = by_id(conn, turn, agent)?.ok_or(TurnLostError::Unknown)?;
                match turn.state {
                    TurnState::Open { .. } => Ok(turn.interrupt(conn, now)?),
                    TurnState::Interrupted { .. } => Ok(turn.message.turn),
                    TurnState::Ended { .. } => Err(TurnLostError::Over),
                }
            })
            .await
    }

    /// A turn of the agent.
    pub async fn turn(&self, turn: TurnId, agent: MemberId) -> Result<Option<Turn>, StorageError> {
        self.db.read("mailbox.turn", move |conn| Ok(by_id(conn, turn, agent)?)).await
    }

    /// The agent's open turn.
    pub async fn open_turn(&self, agent: MemberId) -> Result<Option<Turn>, StorageError> {
        self.db.read("mailbox.turn_open", move |conn| Ok(open_of(conn, agent)?)).await
    }

    /// Every attempt at the message at this place of the inbox, in order.
    pub async fn turns_of(&self, inbox_seq: u64) -> Result<Vec<Turn>, StorageError> {
        self.db.read("mailbox.turns_of", move |conn| Ok(of_message(conn, inbox_seq)?)).await
    }

    /// The last turns of the agent's messages that were interrupted once too often, oldest message first.
    pub async fn given_up(&self, agent: MemberId, limit: usize) -> Result<Vec<Turn>, StorageError> {
        self.db
            .read("mailbox.turns_given_up", move |conn| {
                let page = named_params! {":agent": Sql(&agent), ":limit": limit.min(limits::PAGE_ROWS_MAX)};
                let mut statement = conn.prepare_cached(sql::TURN_GIVEN_UP)?;
                let seqs = statement.query_map(page, |row| row.get(0))?;
                let last = seqs.map(|seq| Ok(of_message(conn, seq?)?.pop()));
                Ok(last.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
            })
            .await
    }
}
