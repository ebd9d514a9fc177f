//! `reply`: a turn on a received message, begun and ended in one call, with the answer in the same transaction as
//! the end.
//!
//! The turn's id is made from the message and the caller's own id, so a call that was cut off anywhere is simply
//! made again: the same turn is found, and ended once.

use model::turn::TurnOutcome;
use model::{ErrorCode, TurnId};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use wire::local::{OutboxItem, TurnAnswer, TurnEnd, TurnEnded, TurnReplied, TurnReply, TurnRequest};

use super::{inbox, meaning, send};
use crate::door::Door;
use crate::told::{Told, Trouble};

pub(super) const ABOUT: &str = "\
Answer a message you received, and record that you dealt with it: its sender sees `processed`. The answer goes where \
the message came from (its topic, or its sender). Leave body out to record the end without an answer, or set failed \
to say why it could not be done. Calling again with the same client_message_id and the same words changes nothing.";

/// The arguments of `reply`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The received message: its `id` in read_inbox or wait_for_mail.
    message_id: String,
    /// Your own id for this answer, such as `answer-214`; keep it when you call again.
    client_message_id: String,
    /// The text of the answer, at most 64 KiB; left out, the message is recorded as dealt with and nobody is written
    /// to.
    #[serde(default)]
    body: Option<String>,
    /// Why the message could not be dealt with; the end is then recorded as failed.
    #[serde(default)]
    failed: Option<String>,
    /// Names of members to point the answer out to.
    #[serde(default)]
    mentions: Vec<String>,
    /// True when you wait for an answer in turn.
    #[serde(default)]
    expects_input: Option<bool>,
    /// Anything structured to carry beside the text, at most 8 KiB.
    #[serde(default)]
    meta: Option<Map<String, Value>>,
}

/// What is known of an answer just given.
#[derive(Serialize, JsonSchema)]
pub(super) struct Replied {
    /// The message that was dealt with.
    message_id: String,
    /// How its turn ended: processed or failed.
    outcome: String,
    /// The turn.
    turn_id: String,
    /// True when an earlier call had ended it in this very way.
    repeated: bool,
    /// Your id for the answer; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_message_id: Option<String>,
    /// How far the answer came.
    #[serde(skip_serializing_if = "Option::is_none")]
    rung: Option<String>,
    /// What that word promises.
    #[serde(skip_serializing_if = "Option::is_none")]
    means: Option<String>,
}

pub(super) async fn call(door: &Door, arguments: Arguments) -> Result<Told, Trouble> {
    let turn_id = turn_id(&arguments.message_id, &arguments.client_message_id);
    let begin = TurnRequest {
        message_id: Some(arguments.message_id.clone()),
        turn_id: Some(turn_id.to_string()),
        holder: Some("mcp".to_owned()),
        mesh: door.mesh(),
        ..TurnRequest::default()
    };
    let message_id = arguments.message_id.clone();
    let begun: Result<TurnAnswer, Trouble> = door.post("/v1/turns", &begin).await;
    let path = format!("/v1/turns/{turn_id}/end");
    let ended: Result<TurnEnded, Trouble> = match &begun {
        Ok(_) => door.post(&path, &end(arguments, door.mesh())).await,
        // It may have been this very turn, in a call whose answer was cut off.
        Err(trouble) if trouble.is(ErrorCode::TurnOver) => {
            door.post(&path, &end(arguments, door.mesh())).await
        }
        Err(_) => return Err(begun.expect_err("the other arms took what went well")),
    };
    let ended = match (ended, begun) {
        // Some other turn ended it; that is the answer, not that ours is unknown.
        (Err(unknown), Err(over)) if unknown.is(ErrorCode::NotFound) => return Err(over),
        (ended, _) => ended?,
    };
    // Dealt with is read. The turn has ended whether or not this is heard.
    let _ = inbox::mark_read(door, vec![message_id.clone()]).await;
    let rung = match &ended.reply {
        Some(reply) => Some(standing(door, reply).await),
        None => None,
    };
    let replied = Replied {
        message_id,
        outcome: ended.outcome.to_string(),
        turn_id: ended.turn_id.to_string(),
        repeated: ended.duplicate,
        client_message_id: ended.reply.map(|reply| reply.client_message_id.to_string()),
        means: rung.as_deref().map(|rung| meaning(rung).to_owned()),
        rung,
    };
    Ok(Told::new(replied.text(), &replied))
}

/// One id for one intent.
fn turn_id(message_id: &str, client_message_id: &str) -> TurnId {
    let digest = Sha256::digest(format!("mcp reply|{message_id}|{client_message_id}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    TurnId::from_bytes(bytes)
}

fn end(arguments: Arguments, mesh: Option<String>) -> TurnEnd {
    let outcome = if arguments.failed.is_some() { TurnOutcome::Failed } else { TurnOutcome::Processed };
    let reply = arguments.body.map(|body| TurnReply {
        body,
        client_message_id: Some(arguments.client_message_id),
        meta: arguments.meta.as_ref().map(send::raw),
        mentions: arguments.mentions,
        expects_input: arguments.expects_input,
        ..TurnReply::default()
    });
    TurnEnd { outcome, error: arguments.failed, reply, mesh }
}

/// How far the answer is; what the end's transaction stored is at least queued.
async fn standing(door: &Door, reply: &TurnReplied) -> String {
    let item: Result<OutboxItem, Trouble> = door.get(&format!("/v1/messages/{}", reply.row), &[]).await;
    item.map_or_else(|_| model::Rung::Queued.to_string(), |item| item.receipt.rung)
}

impl Replied {
    fn text(&self) -> String {
        let mut lines = vec![match self.outcome.as_str() {
            "failed" => format!("Message {} is recorded as failed; its sender sees that.", self.message_id),
            _ => format!("Message {} is recorded as processed; its sender sees that.", self.message_id),
        }];
        if let (Some(rung), Some(means)) = (&self.rung, &self.means) {
            lines.push(format!("answer {rung}: {means}"));
        }
        if self.repeated {
            lines.push("An earlier call did this; nothing was doubled.".to_owned());
        }
        if let Some(id) = &self.client_message_id {
            lines.push(format!("client_message_id: {id}"));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_intent_has_one_turn() {
        let first = turn_id("m", "a");
        assert_eq!(first, turn_id("m", "a"));
        assert_ne!(first, turn_id("m", "b"));
        assert_ne!(first, turn_id("n", "a"));
        assert!(first.to_string().parse::<TurnId>().is_ok());
    }
}
