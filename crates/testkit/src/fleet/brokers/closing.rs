//! The end of a run: everything read from the start, then the audit.

use super::stage::{LAST, LOG, NODES, Servers, Stage, TOPIC, inbox_of, lasts_for};
use crate::fleet::FleetError;
use crate::fleet::servers::Node;
use crate::history::{Act, MessageKey, Outcome};
use crate::kills::audience::{Place, Row, text_of};
use crate::kills::closing::whole_log;
use crate::kills::door::Answer;
use crate::wait::wait_for;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Everything that waits is carried within this, on a busy machine.
const CARRY_BOUND: Duration = Duration::from_secs(180);
/// Within this, every connection left its transaction.
const QUIET_BOUND: Duration = Duration::from_secs(20);

/// Waits for every writer's last message in both inboxes, reads inboxes and log, and says where each message stands.
pub(super) fn close(stage: &Stage) -> Result<BTreeMap<MessageKey, Place>, FleetError> {
    for (name, node) in NODES.iter().zip(&stage.nodes) {
        read_inbox(stage, name, node)?;
    }
    let question = json!({ "what": "topic_history", "topic": TOPIC });
    let pen = stage.pen(LOG)?;
    let mut log = BTreeMap::new();
    for row in whole_log(&mut stage.nodes[0].door(), &question)? {
        look_at(stage, LOG, &row);
        let act = Act::Render { sender: row.sender.clone(), seq: row.place.seq, cursor: row.cursor.clone() };
        pen.note(Outcome::Ok, &row.client_message_id, None, Some(&row.place.conversation), act)?;
        log.insert(MessageKey { sender: row.sender, id: row.client_message_id }, row.place);
    }
    Ok(log)
}

/// No connection stays inside a transaction, and the books agree.
pub(super) fn audit(stage: &Stage, servers: &mut Servers) -> Result<(), FleetError> {
    let idle = "DO $$ BEGIN IF EXISTS (SELECT FROM pg_stat_activity WHERE state LIKE 'idle in transaction%') \
                THEN RAISE EXCEPTION 'idle in transaction'; END IF; END $$";
    let quiet = || servers.postgres.execute("postgres", idle).ok();
    if wait_for("no connection idle in a transaction", QUIET_BOUND, quiet).is_err() {
        stage.note_amiss("a connection stays idle in a transaction".to_owned());
    }
    servers.brokers.iter_mut().for_each(|broker| broker.kill9());
    // Ten minutes older than they are: the audit leaves out what may still be under way.
    let older = "UPDATE dedupe SET first_seen_at = first_seen_at - 600000000; \
                 UPDATE message SET ts_us = ts_us - 600000000";
    servers.postgres.execute("postgres", older)?;
    let (code, said) = servers.brokers[0].check(&servers.postgres.url())?;
    if code != Some(0) {
        stage.note_amiss(format!("broker check ended with {code:?}: {}", said.trim()));
    }
    Ok(())
}

fn read_inbox(stage: &Stage, name: &str, node: &Node) -> Result<(), FleetError> {
    let (mut door, reader) = (node.door(), inbox_of(name));
    let pen = stage.pen(&reader)?;
    let (mut after, mut missing) = (0, lasts_for(name));
    wait_for("every writer's last message in every inbox", CARRY_BOUND, || {
        let Ok(Answer { status: 200, body }) = door.get(&format!("/v1/inbox?after={after}&limit=500&wait=1"))
        else {
            return None;
        };
        for item in body["items"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let (row, seq) = match of_inbox(item) {
                Ok(found) => found,
                Err(error) => return Some(Err(error)),
            };
            after = seq;
            missing -= usize::from(row.client_message_id.starts_with(LAST));
            look_at(stage, &reader, &row);
            let act = Act::Receive { sender: row.sender, seq: row.place.seq, cursor: row.cursor };
            let (id, conv) = (&row.client_message_id, &row.place.conversation);
            if let Err(error) = pen.note(Outcome::Ok, id, None, Some(conv), act) {
                return Some(Err(error.into()));
            }
        }
        (missing == 0).then_some(Ok(()))
    })?
}

fn of_inbox(item: &Value) -> Result<(Row, u64), FleetError> {
    Row::of(item).zip(item["inbox_seq"].as_u64()).ok_or_else(|| FleetError::Unreadable {
        asked: "a row of an inbox".to_owned(),
        answered: item.to_string(),
    })
}

fn look_at(stage: &Stage, reader: &str, row: &Row) {
    if row.body != text_of(&row.client_message_id) {
        stage.note_amiss(format!("changed: {reader} read {:?} as {:?}", row.client_message_id, row.body));
    }
}
