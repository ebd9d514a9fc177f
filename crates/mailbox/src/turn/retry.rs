//! A message whose turns were given up is wanted once more.

use model::turn::{self, TurnMark};
use model::{MemberId, MessageId};
use rusqlite::{Connection, named_params};
use sqlite::StorageError;

use super::begin::{named, standing};
use super::{Turn, of_message, one};
use crate::column::Sql;
use crate::{Mailbox, sql};

/// Why a message is not put back.
#[derive(Debug, thiserror::Error)]
pub enum RetryTurnError {
    /// Its turns were not given up; how they stand.
    #[error("the message is {0}, not given up")]
    NotGivenUp(TurnMark),
    /// The agent holds no such message, or its words are not kept any more.
    #[error("no such message")]
    Unknown,
    /// The file.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<rusqlite::Error> for RetryTurnError {
    fn from(source: rusqlite::Error) -> Self {
        RetryTurnError::Storage(source.into())
    }
}

impl Mailbox {
    /// Puts a message whose turns were given up back in its agent's line, for one more attempt, marked. Answers its
    /// last turn.
    pub async fn retry_turn(&self, agent: MemberId, message: MessageId) -> Result<Turn, RetryTurnError> {
        self.db.write("mailbox.turn_retry", move |conn| retry(conn, agent, message)).await
    }
}

fn retry(conn: &Connection, agent: MemberId, message: MessageId) -> Result<Turn, RetryTurnError> {
    let inbox_seq = named(conn, agent, message)?.ok_or(RetryTurnError::Unknown)?;
    let (mark, _) = standing(conn, inbox_seq)?;
    let next = turn::retry(mark).map_err(RetryTurnError::NotGivenUp)?;
    let waits = named_params! {":seq": inbox_seq, ":turn": Sql(&next)};
    one(conn.prepare_cached(sql::TURN_RETRY)?.execute(waits)?)?;
    of_message(conn, inbox_seq)?.pop().ok_or(RetryTurnError::Unknown)
}
