//! Those who write.

use super::Stage;
use crate::fleet::FleetError;
use crate::fleet::caller::{Caller, TRIES_MAX};
use crate::kills::door::Answer;
use crate::refusals::{Attempt, Refusals};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// Of so many messages of a writer, one is followed by requests that no broker takes.
const REFUSED_EVERY: u64 = 100;

/// Makes every conversation with its first message; answers with their ids.
pub(super) fn begin(stage: &Stage, conversations: u64) -> Result<Vec<String>, FleetError> {
    let mut caller = Caller::new(stage.addresses.clone(), 0, &stage.token);
    let mut made = Vec::new();
    for conversation in 0..conversations {
        let message = json!({"to": format!("#c{conversation}"), "body": format!("first of {conversation}"),
            "client_message_id": format!("c{conversation}-first")});
        let answered = caller.post(&message)?;
        let id = answered["conversation"].as_str().map(str::to_owned);
        made.push(id.ok_or_else(|| unreadable(&answered))?);
    }
    Ok(made)
}

/// What a writer did.
#[derive(Default)]
pub(super) struct Written {
    pub accepted: u64,
    pub refusals: Refusals,
    /// Requests that were taken and should not have been.
    pub wrong: Vec<String>,
}

/// Writes this writer's share, round the conversations.
pub(super) fn write(stage: &Stage, number: u64, writers: u64) -> Result<Written, FleetError> {
    let at = usize::try_from(number).unwrap_or(0);
    let mut caller = Caller::new(stage.addresses.clone(), at, &stage.token);
    let conversations = stage.conversations.len() as u64;
    let mut written = Written::default();
    // The first row of each conversation is written already.
    let rest = conversations * (stage.rows_each - 1);
    for n in (number..rest).step_by(usize::try_from(writers).unwrap_or(1)) {
        let conversation = n % conversations;
        bring(&mut caller, conversation, &format!("m{n}"), &mut written.refusals)?;
        written.accepted += 1;
        stage.written.fetch_add(1, Ordering::Relaxed);
        if written.accepted % REFUSED_EVERY == 1 {
            let ask = |request: &Value| caller.call(request);
            let (name, to) = (format!("r{n}"), format!("#c{conversation}"));
            written.wrong.extend(written.refusals.ask_refused(&name, &to, ask));
        }
    }
    Ok(written)
}

/// Asks until the message is accepted, under this id or, after a refusal, under another.
fn bring(
    caller: &mut Caller,
    conversation: u64,
    name: &str,
    refusals: &mut Refusals,
) -> Result<(), FleetError> {
    let mut attempt = Attempt::new(&format!("c{conversation}-{name}"));
    let mut last = String::new();
    for _ in 0..TRIES_MAX {
        let message = json!({"to": format!("#c{conversation}"), "body": format!("{name} of {conversation}"),
            "client_message_id": attempt.id()});
        match caller.call(&message) {
            Ok(Answer { status: 201, .. }) => return Ok(()),
            Ok(Answer { status: 200, .. }) => {
                refusals.note_known(&attempt);
                return Ok(());
            }
            Ok(answer @ Answer { status: 429 | 503 | 507, .. }) => {
                last = answer.refusal();
                refusals.note(&mut attempt, &answer);
            }
            Ok(answer) => return Err(unreadable(&answer.body)),
            Err(error) => {
                last = error.to_string();
                attempt.note_unanswered();
            }
        }
    }
    Err(FleetError::Unreadable { asked: attempt.id().to_owned(), answered: last })
}

fn unreadable(answered: &Value) -> FleetError {
    FleetError::Unreadable { asked: "a message".to_owned(), answered: answered.to_string() }
}
