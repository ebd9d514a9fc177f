//! A turn ends, its message is `processed`, its reply is a row of the outbox: one transaction.

use std::sync::Arc;

use model::outbox::Verdict;
use model::turn::{EndVerdict, TurnOutcome, TurnState, end as rule};
use model::{ClientMessageId, Fingerprint, MemberId, RowId, Timestamp, TurnId};
use rusqlite::{Connection, named_params};
use sqlite::{StorageError, fault};

use super::{Turn, by_id, one};
use crate::column::{Sql, get};
use crate::outbox::{Accepted, Names, NewRow, accept, seq_of_row};
use crate::planted::{TURN_REPLY_APART, planted};
use crate::{Mailbox, sql};

/// An end asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndTurn {
    /// Which turn.
    pub turn: TurnId,
    /// Whose it is.
    pub agent: MemberId,
    /// How it ended.
    pub outcome: TurnOutcome,
    /// Why it failed.
    pub error: Option<String>,
    /// What its agent answers.
    pub reply: Option<NewRow>,
    /// Now.
    pub now: Timestamp,
}

/// How it ended, true after the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedTurn {
    /// The outbox row of its reply, and the id in force.
    pub reply: Option<(RowId, ClientMessageId)>,
    /// Whether this very end had been taken before.
    pub replayed: bool,
}

/// Why a turn did not end so.
#[derive(Debug, thiserror::Error)]
pub enum EndTurnError {
    /// Another attempt has begun.
    #[error("the turn was lost")]
    Lost,
    /// It ended otherwise.
    #[error("the turn is over")]
    Over,
    /// The agent has no such turn.
    #[error("no such turn")]
    Unknown,
    /// The reply's id is taken; the turn stays as it was.
    #[error("the id of the reply is taken")]
    ReplyRefused(Box<Accepted>),
    /// The file.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<rusqlite::Error> for EndTurnError {
    fn from(source: rusqlite::Error) -> Self {
        EndTurnError::Storage(source.into())
    }
}

impl Mailbox {
    /// Ends a turn as its holder asks, once; the same end again is answered from the first.
    pub async fn end_turn(&self, mut asked: EndTurn) -> Result<EndedTurn, EndTurnError> {
        let apart = if planted(TURN_REPLY_APART) { asked.reply.take() } else { None };
        let names = Arc::clone(&self.names);
        let mut ended = self.db.write("mailbox.turn_end", move |conn| end(conn, &names, &asked)).await?;
        self.file_names_if_due().await;
        if let Some(reply) = apart {
            fault::linger();
            ended.reply = Some((reply.row, reply.client_message_id.clone()));
            self.accept(reply).await?;
        }
        Ok(ended)
    }
}

fn end(conn: &Connection, names: &Names, asked: &EndTurn) -> Result<EndedTurn, EndTurnError> {
    let turn = by_id(conn, asked.turn, asked.agent)?.ok_or(EndTurnError::Unknown)?;
    let before = turn.reply.map(|row| reply_of(conn, row)).transpose()?;
    let same = is_same(&turn, asked, before.as_ref().map(|(fingerprint, _)| fingerprint));
    match rule(&turn.state, same, turn.newest) {
        EndVerdict::Lost => Err(EndTurnError::Lost),
        EndVerdict::Over => Err(EndTurnError::Over),
        EndVerdict::Replay => {
            let reply = turn.reply.zip(before).map(|(row, (_, id))| (row, id));
            Ok(EndedTurn { reply, replayed: true })
        }
        EndVerdict::End => {
            let reply = asked.reply.as_ref().map(|reply| keep_reply(conn, names, reply)).transpose()?;
            conn.prepare_cached(sql::TURN_END).and_then(|mut end| {
                one(end.execute(named_params! {
                    ":seq": turn.seq, ":state": Sql(&asked.outcome), ":now": Sql(&asked.now),
                    ":error": asked.error, ":reply": Sql(&reply),
                })?)
            })?;
            let message = named_params! {":seq": turn.message.seq, ":now": Sql(&asked.now)};
            one(conn.prepare_cached(sql::TURN_OVER)?.execute(message)?)?;
            let id = asked.reply.as_ref().map(|reply| reply.client_message_id.clone());
            Ok(EndedTurn { reply: reply.zip(id), replayed: false })
        }
    }
}

/// The reply's row: new, or the very same message stored before under its id.
fn keep_reply(conn: &Connection, names: &Names, reply: &NewRow) -> Result<RowId, EndTurnError> {
    let accepted = accept(conn, names, reply)?;
    match accepted.verdict {
        Verdict::Insert | Verdict::Queued | Verdict::Inflight | Verdict::Duplicate(_) => Ok(accepted.row),
        Verdict::Conflict(_) => Err(EndTurnError::ReplyRefused(Box::new(accepted))),
    }
}

/// Whether a turn that ended was ended just so.
fn is_same(turn: &Turn, asked: &EndTurn, kept: Option<&Fingerprint>) -> bool {
    let outcome = match turn.state {
        TurnState::Ended { outcome, .. } => Some(outcome),
        TurnState::Open { .. } | TurnState::Interrupted { .. } => None,
    };
    outcome == Some(asked.outcome) && kept == asked.reply.as_ref().map(|reply| &reply.fingerprint)
}

fn reply_of(conn: &Connection, row: RowId) -> rusqlite::Result<(Fingerprint, ClientMessageId)> {
    let read =
        |row: &rusqlite::Row<'_>| Ok((get(row, "request_fingerprint")?, get(row, "client_message_id")?));
    let seq = seq_of_row(conn, &row)?;
    conn.prepare_cached(sql::TURN_REPLY)?.query_row(named_params! {":seq": seq}, read)
}
