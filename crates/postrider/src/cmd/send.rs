//! `postrider send`: returns when the message is durable on this host, and says no more than that.

use std::io::Read;
use std::time::Duration;

use model::{ErrorCode, Rung, limits};
use serde_json::value::RawValue;
use wire::local::{OutboxItem, SendAnswer, SendRequest, destination};

use super::Context;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::local::LocalDoor;
use crate::output::{Form, Output, clock_time, short_id};

/// How long a person at a terminal is kept to see `accepted` too.
const LOOK_ON: Duration = Duration::from_secs(1);

pub async fn run(asked: args::Send, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.door()?, &context.output);
    let request = request(&asked, door.mesh())?;
    let answer: SendAnswer = door.post("/v1/send", &request).await?;
    print_queued(&answer, output);
    match asked.wait {
        Some(rung) => wait_for(&door, &answer, rung, asked.timeout, output).await,
        None if output.on_terminal() && !answer.duplicate => look_on(&door, &answer, output).await,
        None => Ok(Exit::Done),
    }
}

fn request(asked: &args::Send, mesh: Option<String>) -> Result<SendRequest, Failure> {
    let meta = asked
        .meta
        .as_deref()
        .map(|json| {
            RawValue::from_string(json.to_owned()).map_err(|_| Failure::usage("--meta must be a JSON object"))
        })
        .transpose()?;
    Ok(SendRequest {
        to: destination(&asked.to),
        body: Some(text(&asked.text)?),
        client_message_id: asked.id.clone(),
        meta,
        priority: asked.priority.clone(),
        reply_to: asked.reply_to.clone(),
        deliver_by: asked.deliver_by.clone(),
        mentions: asked.mention.clone(),
        mesh,
        ..SendRequest::default()
    })
}

/// The words themselves, or what stands on stdin.
pub fn text(typed: &str) -> Result<String, Failure> {
    if typed == "-" { read_stdin() } else { Ok(typed.to_owned()) }
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let bound = limits::BODY_BYTES_MAX as u64 + 1;
    std::io::stdin()
        .take(bound)
        .read_to_string(&mut text)
        .map_err(|_| Failure::usage("the text on stdin must be UTF-8"))?;
    Ok(text)
}

/// Says what is true of a message just handed over.
pub fn print_queued(answer: &SendAnswer, output: &Output) {
    let id = answer.client_message_id.as_str();
    match output.form() {
        Form::Json => output.json(answer),
        Form::Quiet => output.text(id),
        Form::Text if answer.duplicate => output.fact_with_id("accepted", "before; nothing was doubled", id),
        Form::Text => output.fact_with_id("queued", "on this host", id),
    }
}

/// Keeps a person for a moment, to say `accepted` too.
pub async fn look_on(door: &LocalDoor, answer: &SendAnswer, output: &Output) -> Result<Exit, Failure> {
    let item = follow(door, answer, Rung::Accepted, LOOK_ON).await?;
    if reached(&item, Rung::Accepted) {
        print_accepted(&item, output);
    } else if let Some(error) = item.last_error.as_deref() {
        output.fact("waiting", &format!("{error}; it is tried again by itself."));
        output.fact("", "Nothing was delivered.");
        output.fact("fix", &format!("postrider daemon outbox abort {}", short_id(&item.id.to_string())));
    } else {
        output.fact("", "The broker has not answered yet. This goes on by itself when it does.");
    }
    Ok(Exit::Done)
}

async fn wait_for(
    door: &LocalDoor,
    answer: &SendAnswer,
    rung: Rung,
    timeout: Duration,
    output: &Output,
) -> Result<Exit, Failure> {
    let item = follow(door, answer, rung, timeout).await?;
    match output.form() {
        Form::Json => item.rungs.iter().skip(1).for_each(|receipt| {
            output.json(&serde_json::json!({
                "client_message_id": item.client_message_id.as_str(),
                "status": receipt.rung,
                "receipt": receipt,
            }));
        }),
        Form::Quiet => {}
        Form::Text => {
            if reached(&item, Rung::Accepted) {
                print_accepted(&item, output);
            }
            for receipt in item.rungs.iter().skip(2) {
                output.fact(&receipt.rung, &format!("{}, {}", receipt.by, clock_time(receipt.at)));
            }
        }
    }
    if reached(&item, rung) {
        return Ok(Exit::Done);
    }
    Err(Failure::waited(
        if item.receipt.rung == ErrorCode::NoRecipients.code() { "no_recipients" } else { "not_reached" },
        format!("ended at {} after {} s", item.receipt.rung, timeout.as_secs()),
    )
    .line("It goes on by itself; nothing has to be asked again."))
}

/// Long-polls the daemon until the rung is reached, the message ended, or time is up.
async fn follow(
    door: &LocalDoor,
    answer: &SendAnswer,
    rung: Rung,
    timeout: Duration,
) -> Result<OutboxItem, Failure> {
    let wait = timeout.min(limits::LONG_POLL_MAX).as_secs();
    let path = format!("/v1/messages/{}?rung={rung}&wait={wait}", answer.row);
    door.get_within(&path, timeout + limits::ASK_TIMEOUT).await
}

fn reached(item: &OutboxItem, rung: Rung) -> bool {
    item.receipt.rung.parse::<Rung>().is_ok_and(|at| at >= rung)
}

fn print_accepted(item: &OutboxItem, output: &Output) {
    let took = item
        .rungs
        .iter()
        .find(|receipt| receipt.rung == Rung::Accepted.word())
        .map_or_else(String::new, |receipt| {
            format!(", {} ms", receipt.at.since(item.enqueued_at).as_millis())
        });
    let place = match item.history_id {
        Some(place) if item.to.starts_with('#') => format!("place {place} in {}", item.to),
        Some(place) => format!("place {place} with {}", item.to.trim_start_matches('@')),
        None => String::new(),
    };
    output.fact_with_id("accepted", &format!("by the broker{took}"), &place);
}
