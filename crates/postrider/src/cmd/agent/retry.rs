//! `postrider agent retry`: a message whose turns were given up is run once more.

use model::ErrorCode;
use serde::Serialize;
use wire::local::{TurnAnswer, TurnPage, TurnRetry};

use crate::cmd::Context;
use crate::failure::Failure;
use crate::local::LocalDoor;
use crate::output::Form;

/// Shorter tails would too often name several.
const TAIL_MIN: usize = 6;

/// What `--json` prints.
#[derive(Serialize)]
struct Retried<'a> {
    agent: &'a str,
    message_id: String,
    client_message_id: String,
    /// Attempts so far.
    attempts: u32,
    /// The next one is marked.
    redelivered: bool,
}

pub async fn run(name: &str, id: &str, context: &Context) -> Result<(), Failure> {
    let (agent, output) = (name.trim_start_matches('@'), &context.output);
    let door = LocalDoor::of(&context.home)?.with(Some(agent.to_owned()), context.mesh.clone());
    let message_id = message(&door, agent, id).await?;
    let request = TurnRetry { message_id, mesh: door.mesh() };
    let last: TurnAnswer = door.post("/v1/turns/retry", &request).await?;
    let fields = &last.message.message.fields;
    let retried = Retried {
        agent,
        message_id: last.message.message.id.to_string(),
        client_message_id: fields.client_message_id.to_string(),
        attempts: last.attempt,
        redelivered: true,
    };
    match output.form() {
        Form::Json => output.json(&retried),
        Form::Quiet => output.text(&retried.message_id),
        Form::Text => {
            output.fact_with_id("waiting", &format!("for {agent}'s next turn"), &retried.message_id);
            output.fact("", &format!("Attempt {}, marked redelivered.", last.attempt + 1));
            output.fact("warn", "The turns before it may have had effects; nobody knows which.");
        }
    }
    Ok(())
}

/// A whole id goes to the door as it is, which says what is wrong with it; a tail is looked for in what was given up.
async fn message(door: &LocalDoor, agent: &str, id: &str) -> Result<String, Failure> {
    if id.parse::<model::MessageId>().is_ok() {
        return Ok(id.to_owned());
    }
    let page: TurnPage = door.get("/v1/turns").await?;
    let names = |turn: &&TurnAnswer| {
        let (message, client) =
            (turn.message.message.id.to_string(), turn.message.message.fields.client_message_id.to_string());
        client == id || (id.len() >= TAIL_MIN && (message.ends_with(id) || client.ends_with(id)))
    };
    let found: Vec<String> =
        page.given_up.iter().filter(names).map(|turn| turn.message.message.id.to_string()).collect();
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Failure::refused(
            ErrorCode::NotGivenUp,
            format!("no message of {agent} that was given up is called {id}"),
        )
        .line("Nothing was changed.")
        .fix(format!("postrider explain {id}"))),
        several => {
            let ambiguous =
                Failure::refused(ErrorCode::IdAmbiguous, format!("{id} names several; nothing was changed"));
            Err(several.iter().fold(ambiguous, |failure, id| failure.line(id.clone())))
        }
    }
}
