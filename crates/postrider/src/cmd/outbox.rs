//! `postrider daemon outbox`: what was handed over, where it is, and what a person may do about it.

use model::Timestamp;
use wire::local::{AbortAnswer, AbortRequest, OutboxItem, OutboxPage, RequeueAnswer, RequeueRequest};

use super::Context;
use crate::args;
use crate::clock::clock;
use crate::failure::{Exit, Failure};
use crate::local::LocalDoor;
use crate::output::{Form, Output, age, clock_time, short_id};

/// A chain longer than this was not made by a person.
const CHAIN_MAX: usize = 64;

pub async fn run(asked: args::Outbox, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.door()?, &context.output);
    match asked {
        args::Outbox::List { status, limit } => list(&door, status.as_deref(), limit, output).await?,
        args::Outbox::Inspect { id } => inspect(&door, &id, output).await?,
        args::Outbox::Requeue(asked) => requeue(&door, asked, output).await?,
        args::Outbox::Abort { id } => abort(&door, id, output).await?,
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
            let counts = page.counts;
            output.text(&format!(
                "{} dead, {} inflight, {} pending, {} aborted, {} done",
                counts.dead, counts.inflight, counts.pending, counts.aborted, counts.done
            ));
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

fn line(item: &OutboxItem, now: Timestamp) -> String {
    let next = match item.status.as_str() {
        "dead" => "needs you".to_owned(),
        "inflight" => "answer due".to_owned(),
        "pending" => item.next_attempt_at.map_or_else(|| "now".to_owned(), clock_time),
        _ => String::new(),
    };
    let last: String = item.last_error.as_deref().unwrap_or("none yet").chars().take(16).collect();
    format!(
        "{:<6}  {:<8}  {:<15}  {:<7}  {:>5}  {next:<10}  {last}",
        short_id(&item.id.to_string()),
        item.status,
        item.to,
        age(item.enqueued_at, now),
        item.attempts,
    )
    .trim_end()
    .to_owned()
}

async fn inspect(door: &LocalDoor, id: &str, output: &Output) -> Result<(), Failure> {
    let mut chain = vec![row(door, id).await?];
    while let Some(next) = chain.last().and_then(|item| item.superseded_by.clone()) {
        if chain.len() == CHAIN_MAX {
            break;
        }
        chain.push(row(door, &next).await?);
    }
    match output.form() {
        Form::Json => chain.iter().for_each(|item| output.json(item)),
        Form::Quiet => chain.iter().for_each(|item| output.text(&item.id.to_string())),
        Form::Text => print_inspected(&chain, output),
    }
    Ok(())
}

fn print_inspected(chain: &[OutboxItem], output: &Output) {
    let item = &chain[0];
    let why = item.dead_reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    output.fact_with_id(&item.status, why.trim_start_matches(": "), &format!("row {}", item.id));
    output.fact("id", item.client_message_id.as_str());
    output.fact("route", &format!("{} to {}", item.sender, item.to));
    let last = item.last_error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
    output.fact("asked", &format!("{}, {} tries{last}", clock_time(item.enqueued_at), item.attempts));
    if let Some(outcome) = &item.outcome {
        output.fact("broker", outcome_sentence(outcome));
    }
    if let (Some(id), Some(place)) = (&item.broker_message_id, item.history_id) {
        output.fact("broker", &format!("has it as {id}, place {place}"));
    }
    let successors: Vec<String> = chain[1..].iter().map(|item| item.id.to_string()).collect();
    let shown = if successors.is_empty() { "none".to_owned() } else { successors.join(" -> ") };
    output.fact("chain", &shown);
    if item.status == "dead" {
        output
            .fact("fix", &format!("postrider daemon outbox requeue --id {}", short_id(&item.id.to_string())));
    }
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
        id: asked.id,
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

async fn row(door: &LocalDoor, id: &str) -> Result<OutboxItem, Failure> {
    door.get(&format!("/v1/messages/{id}")).await
}
