//! What the broker holds, read as members read it.

use crate::fleet::FleetError;
use crate::fleet::servers::Node;
use crate::kills::audience::Row;
use crate::kills::closing::whole_log;
use serde_json::{Value, json};

/// The log of a topic, oldest first; empty while nobody posted to it.
pub(in crate::fleet) fn of_topic(node: &Node, topic: &str) -> Result<Vec<Row>, FleetError> {
    let question = json!({"what": "topic_history", "topic": topic});
    // A topic that nobody posted to does not exist, which is a refusal without messages.
    let answer = node.door().post("/v1/ask", &question)?;
    if answer.status == 404 {
        return Ok(Vec::new());
    }
    Ok(whole_log(&mut node.door(), &question)?)
}

/// The log that `row` says its message stands in; empty when it stands in none.
pub(super) fn of_row(node: &Node, row: &Value) -> Result<Vec<Row>, FleetError> {
    let Some(conversation) = row["conversation"].as_str() else { return Ok(Vec::new()) };
    Ok(whole_log(&mut node.door(), &json!({"what": "conversation", "conversation": conversation}))?)
}

/// The places of `id` in a log.
pub(super) fn places_of(log: &[Row], sender: &str, id: &str) -> Vec<u64> {
    let own = log.iter().filter(|row| row.sender == sender && row.client_message_id == id);
    own.map(|row| row.place.seq).collect()
}
