//! Those who write.

use super::Stage;
use crate::fleet::FleetError;
use crate::fleet::caller::{ANSWER_BOUND, Caller};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// A message that is put off this often in a row is not about to be accepted.
const TRIES_MAX: u32 = 200;

/// Makes every conversation with its first message; answers with their ids.
pub(super) fn begin(stage: &Stage, conversations: u64) -> Result<Vec<String>, FleetError> {
    let mut caller = Caller::new(stage.addresses.clone(), 0, &stage.token);
    let mut made = Vec::new();
    for conversation in 0..conversations {
        let answered = post(&mut caller, &message(conversation, "first"))?;
        let id = answered["conversation"].as_str().map(str::to_owned);
        made.push(id.ok_or_else(|| unreadable(&answered))?);
    }
    Ok(made)
}

/// Writes this writer's share, round the conversations; answers with how many were accepted.
pub(super) fn write(stage: &Stage, number: u64, writers: u64) -> Result<u64, FleetError> {
    let at = usize::try_from(number).unwrap_or(0);
    let mut caller = Caller::new(stage.addresses.clone(), at, &stage.token);
    let conversations = stage.conversations.len() as u64;
    let mut accepted = 0;
    // The first row of each conversation is written already.
    let rest = conversations * (stage.rows_each - 1);
    for n in (number..rest).step_by(usize::try_from(writers).unwrap_or(1)) {
        post(&mut caller, &message(n % conversations, &format!("m{n}")))?;
        accepted += 1;
        stage.written.fetch_add(1, Ordering::Relaxed);
    }
    Ok(accepted)
}

fn message(conversation: u64, id: &str) -> Value {
    json!({"to": format!("#c{conversation}"), "body": format!("{id} of {conversation}"),
        "client_message_id": format!("c{conversation}-{id}")})
}

pub(super) fn post(caller: &mut Caller, message: &Value) -> Result<Value, FleetError> {
    let mut last = String::new();
    for _ in 0..TRIES_MAX {
        let answered = caller.ask(message).and_then(|()| caller.answer(ANSWER_BOUND));
        match answered {
            Ok(answer) if matches!(answer.status, 200 | 201) => return Ok(answer.body),
            Ok(answer) if !matches!(answer.status, 429 | 503) => return Err(unreadable(&answer.body)),
            Ok(answer) => last = answer.body.to_string(),
            Err(error) => last = error.to_string(),
        }
    }
    Err(FleetError::Unreadable { asked: message.to_string(), answered: last })
}

fn unreadable(answered: &Value) -> FleetError {
    FleetError::Unreadable { asked: "a message".to_owned(), answered: answered.to_string() }
}
