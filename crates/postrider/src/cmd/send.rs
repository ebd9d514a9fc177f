//! `postrider send`: returns when the message is durable on this host, and says no more than that.

use std::io::Read;
use std::time::Duration;

use model::{ErrorCode, Rung, limits};
use serde_json::value::RawValue;
use wire::local::{MeshHealth, MeshList, OutboxItem, SendAnswer, SendRequest, destination};

use super::Context;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::local::LocalDoor;
use crate::output::{Form, Output, clock_time, harmless, short_id};

/// How long a person at a terminal is kept to see `accepted` too.
const LOOK_ON: Duration = Duration::from_secs(1);

pub async fn run(asked: args::Send, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.door()?, &context.output);
    let request = request(&asked, door.mesh())?;
    let answer: SendAnswer = match door.post("/v1/send", &request).await {
        Ok(answer) => answer,
        Err(failure) => return Err(reused(&door, &asked, failure).await),
    };
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
        print_refused(door, &item, error, output).await?;
    } else {
        print_away(door, &item, output).await?;
    }
    Ok(Exit::Done)
}

/// The broker refused it in a way that may pass.
async fn print_refused(
    door: &LocalDoor,
    item: &OutboxItem,
    error: &str,
    output: &Output,
) -> Result<(), Failure> {
    let error = harmless(error);
    if error.contains(ErrorCode::MemberNotFound.code()) {
        let (mesh, name) = (mesh_of(door).await?.mesh, item.to.trim_start_matches('@'));
        output.fact("waiting", &format!("nobody in mesh {mesh} is called {name}: tried for 1 h, then dead"));
        output.fact("", &format!("404 {}. Nothing was delivered.", ErrorCode::MemberNotFound.code()));
    } else {
        output.fact("waiting", &format!("{error}; it is tried again by itself."));
        output.fact("", "Nothing was delivered.");
    }
    output.fact("fix", &format!("postrider daemon outbox abort {}", short_id(&item.id.to_string())));
    Ok(())
}

/// Nobody answered within the moment.
async fn print_away(door: &LocalDoor, item: &OutboxItem, output: &Output) -> Result<(), Failure> {
    let (mesh, id) = (mesh_of(door).await?, item.client_message_id.as_str());
    if mesh.link == "live" {
        output.fact("", "The broker has not answered yet. This goes on by itself when it does.");
    } else {
        let since = clock_time(mesh.link_since);
        output.fact("", &format!("The broker is away since {since}. This goes on by itself when it"));
        output.fact("", &format!("answers. Follow it: postrider explain {}", short_id(id)));
    }
    Ok(())
}

/// The mesh that is meant.
async fn mesh_of(door: &LocalDoor) -> Result<MeshHealth, Failure> {
    let list: MeshList = door.get("/v1/meshes").await?;
    let named = door.mesh().or(list.default_mesh);
    let mut meshes = list.meshes.into_iter();
    meshes.find(|mesh| named.as_ref().is_none_or(|name| *name == mesh.mesh)).ok_or_else(|| {
        Failure::refused(ErrorCode::MeshNotAttached, "this home is in no mesh").fix("postrider join URL")
    })
}

/// An id that names another message, or one that was given up: what it was first used for.
async fn reused(door: &LocalDoor, asked: &args::Send, failure: Failure) -> Failure {
    let id = asked.id.as_deref().unwrap_or_default();
    let conflict = failure.more.get("conflict").and_then(|text| text.as_str()).unwrap_or_default();
    let Some(row) = failure.more.get("row").and_then(|row| row.as_str()) else { return failure };
    let first = door.get::<OutboxItem>(&format!("/v1/messages/{row}")).await.ok();
    let used = first.map(|item| {
        let at = clock_time(item.enqueued_at);
        format!("First used {at} to {}, {}.", item.to.trim_start_matches('@'), item.receipt.rung)
    });
    let (line, fix) = if conflict.ends_with("_match") {
        let requeue = format!("postrider daemon outbox requeue --id {}", short_id(row));
        (format!("id {id} was used for this very message, which was given up"), requeue)
    } else {
        (format!("id {id} carries another message"), "leave --id out, or choose a new one".to_owned())
    };
    let kept = failure.lines.last().cloned().unwrap_or_default();
    let first = format!("{} Nothing was stored or changed.", used.unwrap_or_default());
    Failure { lines: vec![line, first.trim_start().to_owned(), kept], fix: vec![fix], ..failure }
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
