//! `postrider topic`: logs that every member may read.

use model::{TopicName, limits};
use wire::ask::{Done, Question, TopicRow};
use wire::log::Page;

use super::Context;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::local::LocalDoor;
use crate::output::{Form, Output, clock_time, harmless};

pub async fn run(asked: args::Topic, context: &Context) -> Result<Exit, Failure> {
    let door = context.door()?;
    let output = &context.output;
    match asked {
        args::Topic::History { name, limit, all } => {
            let name = parse(&name)?;
            let pages =
                if all { whole_log(&door, &name).await? } else { vec![page(&door, &name, limit, "").await?] };
            pages.iter().rev().for_each(|page| print(page, output));
        }
        args::Topic::List => {
            let topics: Vec<TopicRow> = door.ask_broker(&Question::Topics).await?;
            topics.iter().for_each(|topic| print_topic(topic, output));
        }
        args::Topic::Create { name } => {
            let topic: TopicRow = door.ask_broker(&Question::TopicCreate { topic: parse(&name)? }).await?;
            print_topic(&topic, output);
        }
        args::Topic::Subscribe { name } => {
            let topic = parse(&name)?;
            let _: Done = door.ask_broker(&Question::TopicSubscribe { topic: topic.clone() }).await?;
            said(output, &topic, "subscribed", "from now on its messages come to your inbox");
        }
        args::Topic::Unsubscribe { name } => {
            let topic = parse(&name)?;
            let _: Done = door.ask_broker(&Question::TopicUnsubscribe { topic: topic.clone() }).await?;
            said(output, &topic, "unsubscribed", "its log stays readable");
        }
    }
    Ok(Exit::Done)
}

fn parse(name: &str) -> Result<TopicName, Failure> {
    name.trim_start_matches('#')
        .parse()
        .map_err(|error: model::error::Malformed| Failure::usage(error.to_string()))
}

fn print_topic(topic: &TopicRow, output: &Output) {
    match output.form() {
        Form::Json => output.json(topic),
        Form::Quiet => output.text(topic.topic.as_str()),
        Form::Text => {
            let mine = if topic.subscribed { "subscribed" } else { "" };
            output.text(format!("#{:<24} {:>6}  {mine}", topic.topic.as_str(), topic.head).trim_end());
        }
    }
}

fn said(output: &Output, topic: &TopicName, word: &str, means: &str) {
    match output.form() {
        Form::Json => {
            output.json(&serde_json::json!({"topic": topic.as_str(), "subscribed": word == "subscribed"}))
        }
        Form::Quiet => output.text(topic.as_str()),
        Form::Text => output.text(&format!("{word} #{topic}; {means}")),
    }
}

/// Newest page first, back to the start of the log.
async fn whole_log(door: &LocalDoor, name: &TopicName) -> Result<Vec<Page>, Failure> {
    let mut pages = vec![page(door, name, limits::PAGE_ROWS_MAX, "").await?];
    while let Some(last) = pages.last().filter(|page| page.has_more) {
        let before = last.before.clone();
        pages.push(page(door, name, limits::PAGE_ROWS_MAX, &before).await?);
    }
    Ok(pages)
}

async fn page(door: &LocalDoor, name: &TopicName, limit: usize, before: &str) -> Result<Page, Failure> {
    let limit = limit.clamp(1, limits::PAGE_ROWS_MAX);
    door.get(&format!("/v1/topic/history?topic={name}&limit={limit}&before={before}")).await
}

fn print(page: &Page, output: &Output) {
    for message in &page.messages {
        match output.form() {
            Form::Json => output.json(message),
            Form::Quiet => output.text(&message.id.to_string()),
            Form::Text => {
                let mut lines = message.fields.body.lines();
                let first = harmless(lines.next().unwrap_or_default());
                output.text(&format!(
                    "{:>4}  {}  {:<10} {first}",
                    message.history_id,
                    clock_time(message.created_at),
                    message.sender.as_str()
                ));
                lines.for_each(|line| output.text(&format!("{:27}{}", "", harmless(line))));
            }
        }
    }
}
