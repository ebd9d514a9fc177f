//! `postrider topic`: logs that every member may read.

use model::{TopicName, limits};
use wire::link::TopicRow;
use wire::log::Page;

use crate::args;
use crate::failure::{Exit, Failure};
use crate::local::LocalDoor;
use crate::output::{Form, Output, clock_time, harmless};
use daemon::home::Home;

pub async fn run(asked: args::Topic, home: &Home, output: &Output) -> Result<Exit, Failure> {
    let door = LocalDoor::of(home, None)?;
    match asked {
        args::Topic::History { name, limit, all } => {
            let name = name
                .trim_start_matches('#')
                .parse::<TopicName>()
                .map_err(|error| Failure::usage(error.to_string()))?;
            let pages =
                if all { whole_log(&door, &name).await? } else { vec![page(&door, &name, limit, "").await?] };
            pages.iter().rev().for_each(|page| print(page, output));
        }
        args::Topic::List => {
            let topics: Vec<TopicRow> = door.get("/v1/topic/list").await?;
            for topic in &topics {
                match output.form() {
                    Form::Json => output.json(topic),
                    Form::Quiet => output.text(topic.topic.as_str()),
                    Form::Text => {
                        let mine = if topic.subscribed { "subscribed" } else { "" };
                        output.text(format!("#{:<24} {:>6}  {mine}", topic.topic, topic.head).trim_end());
                    }
                }
            }
        }
    }
    Ok(Exit::Done)
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
                    message.sender
                ));
                lines.for_each(|line| output.text(&format!("{:27}{}", "", harmless(line))));
            }
        }
    }
}
