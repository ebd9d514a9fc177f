//! An agent of the demo: takes its mail turn by turn, and answers.

use model::turn::TurnOutcome;
use wire::local::{TurnAnswer, TurnEnd, TurnEnded, TurnReply, TurnRequest};

use crate::failure::Failure;
use crate::local::LocalDoor;

/// Seconds a turn is held without another word: short, so that the one the kill takes comes back soon.
const LEASE_S: u64 = 1;
/// Seconds to wait for the next message.
const WAIT_S: u64 = 1;

/// One piece of work as the agent itself saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worked {
    /// The sender's id of the message.
    pub client_message_id: String,
    /// From 1.
    pub attempt: u32,
    /// Whether it was told that it may have seen it before.
    pub redelivered: bool,
}

/// Takes the next message, if one comes in time.
pub async fn begin(door: &LocalDoor) -> Result<Option<TurnAnswer>, Failure> {
    let request = TurnRequest { wait: Some(WAIT_S), lease: Some(LEASE_S), ..TurnRequest::default() };
    door.post("/v1/turns", &request).await
}

/// Ends a turn with an answer.
pub async fn end(door: &LocalDoor, turn: &TurnAnswer) -> Result<Worked, Failure> {
    let message = &turn.message.message;
    let reply = TurnReply { body: format!("done: {}", message.fields.body), ..TurnReply::default() };
    let end = TurnEnd { outcome: TurnOutcome::Processed, error: None, reply: Some(reply), mesh: None };
    let _: TurnEnded = door.post(&format!("/v1/turns/{}/end", turn.turn_id), &end).await?;
    Ok(Worked {
        client_message_id: message.fields.client_message_id.to_string(),
        attempt: turn.attempt,
        redelivered: turn.redelivered,
    })
}
