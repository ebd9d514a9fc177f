//! A reader of one inbox while the product dies around it: resumes from the row it saw last, and from nothing else.

use super::KillsError;
use super::audience::{Member, Row, follower_of};
use super::door::{Answer, Door};
use super::stage::{Phase, Stage};
use crate::history::{Act, Outcome, Recorder};
use serde_json::Value;

/// How long one look waits for mail; also how late it notices the end of the run.
const WAIT_S: u64 = 1;
/// Rows of one look.
const ROWS: usize = 500;

pub(super) struct Follower<'stage> {
    stage: &'stage Stage<'stage>,
    inbox: InboxReader<'stage>,
}

/// Reads one inbox from its start on, oldest first, and records what it sees.
pub(super) struct InboxReader<'stage> {
    stage: &'stage Stage<'stage>,
    proc: String,
    door: Door,
    pen: Recorder,
    after: u64,
}

impl<'stage> Follower<'stage> {
    pub(super) fn new(stage: &'stage Stage<'stage>, member: &Member) -> Result<Self, KillsError> {
        Ok(Self { stage, inbox: InboxReader::new(stage, member, follower_of(&member.name))? })
    }

    /// Follows until the run is over and nothing more is there.
    pub(super) fn follow(mut self) -> Result<(), KillsError> {
        loop {
            let over = self.stage.phase() == Phase::Over;
            match self.inbox.look(if over { 0 } else { WAIT_S })? {
                Some(rows) if over && rows.is_empty() => return Ok(()),
                None if over => return Ok(()),
                Some(_) | None => {}
            }
        }
    }
}

impl<'stage> InboxReader<'stage> {
    pub(super) fn new(
        stage: &'stage Stage<'stage>,
        member: &Member,
        proc: String,
    ) -> Result<Self, KillsError> {
        let (door, pen) = (stage.door(member), stage.pen(&proc)?);
        Ok(Self { stage, proc, door, pen, after: 0 })
    }

    /// The next rows; none when the product gave no answer.
    pub(super) fn look(&mut self, wait_s: u64) -> Result<Option<Vec<Row>>, KillsError> {
        if !self.stage.await_listening(&mut self.door)? {
            return Ok(None);
        }
        let path = format!("/v1/inbox?after={}&limit={ROWS}&wait={wait_s}", self.after);
        let Ok(Answer { status: 200, body }) = self.door.get(&path) else { return Ok(None) };
        let items = body["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().map(|item| self.see(item)).collect::<Result<_, _>>().map(Some)
    }

    fn see(&mut self, item: &Value) -> Result<Row, KillsError> {
        let (Some(row), Some(seq)) = (Row::of(item), item["inbox_seq"].as_u64()) else {
            return Err(KillsError::Unreadable {
                asked: format!("a row of {}", self.proc),
                answered: item.to_string(),
            });
        };
        self.after = seq;
        self.stage.look_at(&self.proc, &row);
        let act = Act::Receive { sender: row.sender.clone(), seq: row.place.seq, cursor: row.cursor.clone() };
        self.pen.note(Outcome::Ok, &row.client_message_id, None, Some(&row.place.conversation), act)?;
        Ok(row)
    }
}
