//! `postrider daemon outbox`: what was handed over, where it is, and what a person may do about it.

use model::Timestamp;
use wire::local::{
    AbortAnswer, AbortRequest, MeshList, OutboxInspection, OutboxItem, OutboxPage, PruneAnswer, PruneRequest,
    PrunedPayloads, RequeueAnswer, RequeueRequest,
};

use super::Context;
use crate::args;
use crate::clock::clock;
use crate::failure::{Exit, Failure};
use crate::local::LocalDoor;
use crate::output::{Form, Output, age, clock_time, harmless, headline, short_id};

/// Room for a body on an 80-column line behind its word.
const BODY_WIDTH: usize = 66;

pub async fn run(asked: args::Outbox, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.door()?, &context.output);
    match asked {
        args::Outbox::List { status, limit } => list(&door, status.as_deref(), limit, output).await?,
        args::Outbox::Inspect { id } => inspect(&door, &id, output).await?,
        args::Outbox::Requeue(asked) => requeue(&door, asked, output).await?,
        args::Outbox::Abort { id } => abort(&door, id, output).await?,
        args::Outbox::Prune { confirm, status } => prune(&door, confirm, status, output).await?,
    }
    Ok(Exit::Done)
}

async fn list(door: &LocalDoor, status: Option<&str>, limit: usize, output: &Output) -> Result<(), Failure> {
    let filter = status.map(|status| format!("&status={status}")).unwrap_or_default();
    let page: OutboxPage = door.get(&format!("/v1/outbox?limit={limit}{filter}")).await?;
    let shown = |item: &&OutboxItem| status.is_some() || item.status != "done";
    let rows: Vec<&OutboxItem> = page.items.iter().rev().filter(shown).collect();
    match output.form() {
        Form::Json => rows.iter().for_each(|item| output.json(item)),
        Form::Quiet => rows.iter().for_each(|item| output.text(&item.id.to_string())),
        Form::Text => {
            output.text(&summary(door, &page, clock().now()).await?);
            if !rows.is_empty() {
                output.text("");
                output.text("ROW     STATE     TO               ASKED    TRIES  NEXT        LAST ANSWER");
                let now = clock().now();
                rows.iter().for_each(|item| output.text(&line(item, now)));
            }
            if let Some(dead) = rows.iter().find(|item| item.status == "dead") {
                output.text("");
                output.fact(
                    "next",
                    &format!("postrider daemon outbox inspect {}", short_id(&dead.id.to_string())),
                );
            }
        }
    }
    Ok(())
}

/// The mesh and what needs a look in it.
async fn summary(door: &LocalDoor, page: &OutboxPage, now: Timestamp) -> Result<String, Failure> {
    let meshes: MeshList = door.get("/v1/meshes").await?;
    let named = door.mesh().or(meshes.default_mesh);
    let mesh = meshes.meshes.into_iter().find(|mesh| named.as_ref().is_none_or(|name| *name == mesh.mesh));
    let counts = &page.counts;
    let oldest = mesh.as_ref().and_then(|mesh| mesh.oldest_queued_at);
    let oldest = oldest.map(|at| format!(", oldest pending {}", age(at, now))).unwrap_or_default();
    Ok(format!(
        "mesh {}: {} dead, {} inflight, {} pending{oldest}",
        mesh.map_or_else(|| "unknown".to_owned(), |mesh| mesh.mesh),
        counts.dead,
        counts.inflight,
        counts.pending,
    ))
}

fn line(item: &OutboxItem, now: Timestamp) -> String {
    let next = match item.status.as_str() {
        "dead" => "needs you".to_owned(),
        "inflight" => "answer due".to_owned(),
        "pending" => item.next_attempt_at.map_or_else(|| "now".to_owned(), clock_time),
        "aborted" if item.broker_message_id.is_some() => "accepted".to_owned(),
        "aborted" => item.aborted_by.clone().unwrap_or_default(),
        _ => String::new(),
    };
    let last: String = item.last_error.as_deref().unwrap_or("none yet").chars().take(16).collect();
    format!(
        "{:<6}  {:<8}  {:<15}  {:<7}  {:>5}  {next:<10}  {last}",
        short_id(&item.id.to_string()),
        item.status,
        item.to.trim_start_matches('@'),
        age(item.enqueued_at, now),
        item.attempts,
    )
    .trim_end()
    .to_owned()
}

async fn inspect(door: &LocalDoor, id: &str, output: &Output) -> Result<(), Failure> {
    let row = row(door, id).await?.id;
    let found: OutboxInspection = door.get(&format!("/v1/outbox/{row}")).await?;
    match output.form() {
        Form::Json => output.json(&found),
        Form::Quiet => found.chain.iter().for_each(|item| output.text(&item.id.to_string())),
        Form::Text => print_inspected(&found, output),
    }
    Ok(())
}

fn print_inspected(found: &OutboxInspection, output: &Output) {
    let item = &found.item;
    let why = item.dead_reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    output.head(&format!("{}{why}", item.status), &format!("row {}", item.id));
    let fingerprint = found.request_fingerprint.get(..16).unwrap_or_default();
    output.fact_with_id("id", item.client_message_id.as_str(), &format!("fingerprint {fingerprint}"));
    output.fact("route", &route(found));
    let last = item.last_error.as_deref().map(|error| format!(": {}", harmless(error))).unwrap_or_default();
    let tries = if item.attempts == 1 { "1 try".to_owned() } else { format!("{} tries", item.attempts) };
    output.fact("asked", &format!("{}, {tries}{last}", clock_time(item.enqueued_at)));
    match &found.message {
        Some(message) => {
            output.fact("body", &format!("\"{}\"", headline(&message.body, Some(BODY_WIDTH))));
        }
        None => output.fact("body", "is not kept any more"),
    }
    if let Some(outcome) = &item.outcome {
        output.fact("broker", outcome_sentence(outcome));
    }
    if let (Some(id), Some(place)) = (&item.broker_message_id, item.history_id) {
        let late = item.late_ack_at.map(|at| format!(", known since {}", clock_time(at))).unwrap_or_default();
        output.fact("broker", &format!("has it as {id}, place {place}{late}"));
    }
    if let (Some(by), Some(at)) = (&item.aborted_by, item.aborted_at) {
        output.fact("retired", &format!("{} by {by}", clock_time(at)));
    }
    let others: Vec<String> =
        found.chain.iter().map(|link| short_id(&link.id.to_string()).to_owned()).collect();
    output.fact("chain", &if others.len() < 2 { "none yet".to_owned() } else { others.join(" -> ") });
    if item.status == "dead" {
        output
            .fact("fix", &format!("postrider daemon outbox requeue --id {}", short_id(&item.id.to_string())));
    }
}

fn route(found: &OutboxInspection) -> String {
    let item = &found.item;
    let priority = found.message.as_ref().map(|message| format!(", priority {}", message.priority));
    let deliver_by =
        found.deliver_by.map_or_else(|| "no deliver-by".to_owned(), |at| format!("deliver-by {at}"));
    let to = item.to.trim_start_matches('@');
    format!("{} to {to}{}, {deliver_by}", item.sender, priority.unwrap_or_default())
}

/// What is known of the broker's side of an ended row.
pub fn outcome_sentence(outcome: &str) -> &'static str {
    match outcome {
        "not_sent" => "never saw this row",
        "not_accepted" => "never committed this id, and never will",
        "accepted" => "has it",
        _ => "may have it: nobody could say yet",
    }
}

async fn requeue(door: &LocalDoor, asked: args::Requeue, output: &Output) -> Result<(), Failure> {
    let patch_body = asked
        .patch_payload
        .map(|path| {
            std::fs::read_to_string(&path).map_err(|error| {
                Failure::usage(format!("{} cannot be read: {error}", path.display()))
                    .line("Nothing was changed.")
            })
        })
        .transpose()?;
    let request = RequeueRequest {
        id: row(door, &asked.id).await?.id.to_string(),
        new_client_message_id: asked.new_client_id,
        patch_body,
        force_duplicate: asked.force_duplicate.then_some(true),
        mesh: door.mesh(),
    };
    let answer: RequeueAnswer = door.post("/v1/outbox/requeue", &request).await?;
    match output.form() {
        Form::Json => output.json(&answer),
        Form::Quiet => output.text(answer.new_client_message_id.as_str()),
        Form::Text => {
            output.fact("asked", &format!("the broker: it {}", outcome_sentence(&answer.outcome)));
            let old = answer.aborted_row_id.to_string();
            output.fact("aborted", &format!("{}, kept for the record; its id stays used", short_id(&old)));
            output.fact_with_id("queued", "on this host", answer.new_client_message_id.as_str());
        }
    }
    Ok(())
}

async fn abort(door: &LocalDoor, id: String, output: &Output) -> Result<(), Failure> {
    let id = row(door, &id).await?.id.to_string();
    let answer: AbortAnswer = door.post("/v1/outbox/abort", &AbortRequest { id, mesh: door.mesh() }).await?;
    match output.form() {
        Form::Json => output.json(&answer),
        Form::Quiet => output.text(&answer.aborted_row_id.to_string()),
        Form::Text => {
            let row = answer.aborted_row_id.to_string();
            output.fact("aborted", &format!("{}, kept for the record; its id stays used", short_id(&row)));
            output.fact("broker", outcome_sentence(&answer.outcome));
        }
    }
    Ok(())
}

async fn prune(
    door: &LocalDoor,
    confirm: bool,
    status: Option<String>,
    output: &Output,
) -> Result<(), Failure> {
    let request = PruneRequest { confirm, status, mesh: door.mesh() };
    let answer: PruneAnswer = door.post("/v1/outbox/prune", &request).await?;
    match output.form() {
        Form::Json => output.json(&answer),
        Form::Quiet => output.text(&answer.total.bytes.to_string()),
        Form::Text => print_pruned(&answer, output),
    }
    Ok(())
}

fn print_pruned(answer: &PruneAnswer, output: &Output) {
    let (word, nothing) =
        if answer.pruned { ("freed", "nothing was freed") } else { ("would", "nothing would be freed") };
    if answer.total.rows == 0 {
        output.fact("nothing", &format!("mesh {}: {nothing}; no ended row has words", answer.mesh));
    } else {
        let verb = if answer.pruned { "" } else { "free " };
        let counted = |payloads: PrunedPayloads| format!("{} rows, {} bytes", payloads.rows, payloads.bytes);
        output.fact(word, &format!("{verb}the words of {} in mesh {}", counted(answer.total), answer.mesh));
        for (status, payloads) in [("done", answer.done), ("dead", answer.dead), ("aborted", answer.aborted)]
        {
            output.fact(status, &counted(payloads));
        }
        output.fact("ids", "stay used, and answer as before");
        if answer.dead.rows > 0 {
            output.fact("note", "a dead row without its words cannot be requeued");
        }
        if answer.done.rows > 0 {
            output.fact("note", "a done row without its words is not sent again to a restored broker");
        }
    }
    let (percent, reusable) = (answer.disk_percent, answer.reusable_bytes);
    output.fact(
        "room",
        &format!("{percent} % of the outbox is used; {reusable} bytes of its file are reused first"),
    );
    if !answer.pruned && answer.total.rows > 0 {
        output.fact("next", "postrider daemon outbox prune --confirm");
    }
}

/// A row by any of its names, or by the tail of one.
async fn row(door: &LocalDoor, id: &str) -> Result<OutboxItem, Failure> {
    door.get(&format!("/v1/messages/{id}")).await
}
