//! `postrider webhook`: a member's messages pushed to an HTTP address, at least once each.

use std::str::FromStr;

use model::error::Malformed;
use wire::ask::{Done, Question, Webhook, WebhookRow};

use super::Context;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output};

pub async fn run(asked: args::Webhook, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.own_door()?, &context.output);
    match asked {
        args::Webhook::Add { name, url, topic } => {
            let topics: Result<Vec<_>, _> =
                topic.iter().map(|name| parse(name.trim_start_matches('#'))).collect();
            let question = Question::WebhookCreate { name: parse(&name)?, url, topics: topics? };
            print_made(&door.ask_broker(&question).await?, output);
        }
        args::Webhook::Rotate { name } => {
            print_made(&door.ask_broker(&Question::WebhookRotate { name: parse(&name)? }).await?, output);
        }
        args::Webhook::List => {
            let rows: Vec<WebhookRow> = door.ask_broker(&Question::Webhooks).await?;
            rows.iter().for_each(|row| print_row(row, output));
        }
        args::Webhook::Enable { name } => {
            print_row(&door.ask_broker(&Question::WebhookEnable { name: parse(&name)? }).await?, output);
        }
        args::Webhook::Remove { name } => {
            let _: Done = door.ask_broker(&Question::WebhookRemove { name: parse(&name)? }).await?;
            match output.form() {
                Form::Json => output.json(&serde_json::json!({"name": name, "removed": true})),
                Form::Quiet => output.text(&name),
                Form::Text => output.text(&format!("webhook {name} is removed; the member stays")),
            }
        }
    }
    Ok(Exit::Done)
}

fn parse<T: FromStr<Err = Malformed>>(name: &str) -> Result<T, Failure> {
    name.parse().map_err(|error: Malformed| Failure::usage(error.to_string()))
}

fn print_made(made: &Webhook, output: &Output) {
    match output.form() {
        Form::Json => output.json(made),
        Form::Quiet => output.text(&made.secret),
        Form::Text => {
            output.fact("webhook", &format!("{} to {}", made.row.name, made.row.url));
            output.fact("secret", &made.secret);
            output.fact("", "Shown once. Every push is signed with it (Standard Webhooks).");
        }
    }
}

fn print_row(row: &WebhookRow, output: &Output) {
    match output.form() {
        Form::Json => output.json(row),
        Form::Quiet => output.text(row.name.as_str()),
        Form::Text => {
            let topics: Vec<String> = row.topics.iter().map(|topic| format!("#{topic}")).collect();
            let state =
                row.disabled_reason.as_deref().map(|why| format!("disabled: {why}")).unwrap_or_default();
            let waits = format!("{} waiting, {} parked", row.waiting, row.parked);
            output.text(
                format!("{:<16} {} {}  {waits}  {state}", row.name.as_str(), row.url, topics.join(" "))
                    .trim_end(),
            );
        }
    }
}
