//! `postrider reply`: an answer goes where the message came from.

use wire::local::{InboxItem, InboxPage, SendAnswer, SendRequest};

use super::Context;
use super::send::{look_on, print_queued, text};
use crate::args;
use crate::failure::{Exit, Failure};
use crate::local::LocalDoor;

/// How far back a tail of an id is looked for.
const ROWS_LOOKED_AT: usize = 1_000;
/// Shorter tails would too often name several.
const TAIL_MIN: usize = 6;

pub async fn run(asked: args::Reply, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.door()?, &context.output);
    let item = find(&door, &asked.id).await?;
    let request = SendRequest {
        to: destination(&item),
        body: Some(text(&asked.text)?),
        kind: Some("reply".to_owned()),
        reply_to: Some(item.message.id.to_string()),
        mesh: door.mesh(),
        ..SendRequest::default()
    };
    let answer: SendAnswer = door.post("/v1/send", &request).await?;
    print_queued(&answer, output);
    if output.on_terminal() { look_on(&door, &answer, output).await } else { Ok(Exit::Done) }
}

/// A topic's message is answered in the topic, a direct one to its sender.
fn destination(item: &InboxItem) -> String {
    match &item.message.conversation_name {
        Some(name) if name.starts_with('#') => name.clone(),
        Some(_) | None => format!("@{}", item.message.sender),
    }
}

async fn find(door: &LocalDoor, id: &str) -> Result<InboxItem, Failure> {
    let page: InboxPage = door.get(&format!("/v1/inbox?limit={ROWS_LOOKED_AT}")).await?;
    let names = |item: &InboxItem| {
        let (message, client) =
            (item.message.id.to_string(), item.message.fields.client_message_id.to_string());
        let tail = id.len() >= TAIL_MIN && (message.ends_with(id) || client.ends_with(id));
        message == id || client == id || tail
    };
    let mut found: Vec<InboxItem> = page.items.into_iter().filter(names).collect();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(last), false) => {
            let mut failure = Failure::refused(
                model::ErrorCode::IdAmbiguous,
                format!("{id} names several messages; nothing was stored"),
            );
            for item in found.iter().chain([&last]) {
                failure = failure.line(item.message.id.to_string());
            }
            Err(failure)
        }
        (None, _) => {
            Err(Failure::refused(model::ErrorCode::NotFound, format!("no received message is called {id}"))
                .line("Nothing was stored.")
                .fix("postrider inbox"))
        }
    }
}
