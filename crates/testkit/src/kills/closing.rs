//! The end of a run: everything carried, then everything read from the start.

use super::KillsError;
use super::audience::{Destination, Member, Place, Row, TOPIC, inbox_of, log_of};
use super::door::Door;
use super::follower::InboxReader;
use super::stage::Stage;
use super::writer::{Way, Writer};
use crate::history::{Act, MessageKey, Outcome};
use crate::wait::wait_for;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Everything that waits is carried within this, on a busy machine.
const CARRY_BOUND: Duration = Duration::from_secs(120);
/// Rows of a page.
const ROWS: usize = 1_000;

/// What the stores say of themselves after the run.
#[derive(Debug)]
pub(super) struct Counts {
    /// Rows of the outbox per state, as the door names them.
    pub outbox: BTreeMap<String, u64>,
    /// Where each message stands in its log.
    pub logs: BTreeMap<MessageKey, Place>,
}

/// Sends a last message in every lane, waits for it in every inbox, and reads all inboxes and logs.
pub(super) fn close(stage: &Stage<'_>) -> Result<Counts, KillsError> {
    await_empty_outbox(stage)?;
    let lasts = send_lasts(stage)?;
    await_empty_outbox(stage)?;
    let mut own_logs = BTreeMap::new();
    for member in &stage.members {
        if let Some(conversation) = read_inbox(stage, member, &lasts)? {
            own_logs.insert(member.name.clone(), conversation);
        }
    }
    let mut logs = BTreeMap::new();
    for member in &stage.members {
        let question = json!({ "what": "conversation", "conversation": own_logs[&member.name] });
        read_log(stage, member, &log_of(&member.name), &question, &mut logs)?;
    }
    let question = json!({ "what": "topic_history", "topic": TOPIC });
    read_log(stage, &stage.members[0], &log_of(TOPIC), &question, &mut logs)?;
    Ok(Counts { outbox: outbox_counts(stage)?, logs })
}

/// Names the last message of each lane; what stands before it in an inbox is all there will be.
fn send_lasts(stage: &Stage<'_>) -> Result<BTreeSet<String>, KillsError> {
    let mut lasts = BTreeSet::new();
    for (n, member) in stage.members.iter().enumerate() {
        let number = stage.writers_max() + n;
        let mut writer = Writer::new(stage, number, member, Way::Socket, 0)?;
        for destination in Destination::ALL {
            let id = format!("last.{}{}", member.name, destination.to().replace(['@', '#'], "."));
            if !writer.bring(&id, destination)? {
                let answered = "nobody answered, and the product was healed".to_owned();
                return Err(KillsError::Unreadable { asked: format!("sending {id}"), answered });
            }
            lasts.insert(id);
        }
    }
    Ok(lasts)
}

fn await_empty_outbox(stage: &Stage<'_>) -> Result<(), KillsError> {
    let empty = || {
        let counts = outbox_counts(stage).ok()?;
        (counts.get("pending") == Some(&0) && counts.get("inflight") == Some(&0)).then_some(())
    };
    Ok(wait_for("an outbox without waiting rows", CARRY_BOUND, empty)?)
}

fn outbox_counts(stage: &Stage<'_>) -> Result<BTreeMap<String, u64>, KillsError> {
    let path = "/v1/outbox?limit=1";
    let answer = stage.door(&stage.members[0]).get(path)?;
    serde_json::from_value(answer.body["counts"].clone())
        .map_err(|_| KillsError::Unreadable { asked: path.to_owned(), answered: answer.body.to_string() })
}

/// Reads until every last message that is for `member` was seen; answers its conversation with itself.
fn read_inbox(
    stage: &Stage<'_>,
    member: &Member,
    lasts: &BTreeSet<String>,
) -> Result<Option<String>, KillsError> {
    let mut reader = InboxReader::new(stage, member, inbox_of(&member.name))?;
    // Its own one to itself, and the others' to the topic.
    let mut missing = stage.members.len();
    let mut with_itself = None;
    wait_for("the last message of every lane in every inbox", CARRY_BOUND, || {
        let rows = match reader.look(1) {
            Ok(Some(rows)) => rows,
            Ok(None) => return None,
            Err(error) => return Some(Err(error)),
        };
        for row in rows.iter().filter(|row| lasts.contains(&row.client_message_id)) {
            missing -= 1;
            if row.sender == member.name {
                with_itself = Some(row.place.conversation.clone());
            }
        }
        (missing == 0).then_some(Ok(()))
    })??;
    Ok(with_itself)
}

/// Pages back to the start, then records the rows from the oldest on.
fn read_log(
    stage: &Stage<'_>,
    member: &Member,
    reader: &str,
    question: &Value,
    logs: &mut BTreeMap<MessageKey, Place>,
) -> Result<(), KillsError> {
    let (mut door, pen) = (stage.door(member), stage.pen(reader)?);
    for row in whole_log(&mut door, question)? {
        stage.look_at(reader, &row);
        let (id, conv) = (&row.client_message_id, &row.place.conversation);
        let act = Act::Render { sender: row.sender.clone(), seq: row.place.seq, cursor: row.cursor.clone() };
        pen.note(Outcome::Ok, id, None, Some(conv), act)?;
        logs.insert(MessageKey { sender: row.sender.clone(), id: id.clone() }, row.place);
    }
    Ok(())
}

pub(crate) fn whole_log(door: &mut Door, question: &Value) -> Result<Vec<Row>, KillsError> {
    let mut pages: Vec<Vec<Row>> = Vec::new();
    let mut asked = question.clone();
    asked["limit"] = ROWS.into();
    loop {
        let page = door.post("/v1/ask", &asked)?.body;
        let rows = page["messages"].as_array().and_then(|rows| rows.iter().map(Row::of).collect());
        let rows: Option<Vec<Row>> = rows;
        let unreadable = || KillsError::Unreadable { asked: asked.to_string(), answered: page.to_string() };
        pages.push(rows.ok_or_else(unreadable)?);
        match page["has_more"].as_bool() {
            Some(true) => asked["before"] = page["before"].clone(),
            Some(false) | None => break,
        }
    }
    Ok(pages.into_iter().rev().flatten().collect())
}
