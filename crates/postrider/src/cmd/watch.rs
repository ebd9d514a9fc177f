//! `postrider watch`: messages as they arrive, from now on, without gap or repeat while it runs.

use std::time::Duration;

use model::limits;
use wire::local::{InboxItem, InboxPage, destination};

use super::Context;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::local::LocalDoor;
use crate::output::{Form, Output, clock_time, harmless};

const WAIT: Duration = Duration::from_secs(30);
/// A daemon that was restarted is back within moments.
const AWAY_PAUSE: Duration = Duration::from_millis(500);

pub async fn run(asked: args::Watch, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.door()?, &context.output);
    let filter = asked.to.as_deref().map(filter).unwrap_or_default();
    // The newest row alone says where "now" is.
    let newest: InboxPage = door.get("/v1/inbox?limit=1").await?;
    let mut after = newest.items.last().map_or(0, |item| item.inbox_seq);
    if output.on_terminal() {
        output.text("following from now; Ctrl-C ends");
    }
    let mut away = false;
    loop {
        match page(&door, after, &filter).await {
            Ok(page) => {
                if std::mem::take(&mut away) {
                    note(output, "the daemon is back; nothing was missed or repeated");
                }
                for item in &page.items {
                    after = item.inbox_seq;
                    print(item, output);
                }
            }
            Err(failure) if failure.exit == Exit::Unreachable => {
                if !std::mem::replace(&mut away, true) {
                    note(output, "the daemon is away; your place is kept");
                }
                tokio::time::sleep(AWAY_PAUSE).await;
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn filter(to: &str) -> String {
    let to = destination(to);
    match to.strip_prefix('#') {
        Some(topic) => format!("&topic={topic}"),
        None => format!("&from={}", to.trim_start_matches('@')),
    }
}

async fn page(door: &LocalDoor, after: u64, filter: &str) -> Result<InboxPage, Failure> {
    let path = format!("/v1/inbox?after={after}&limit=200&wait={}{filter}", WAIT.as_secs());
    door.get_within(&path, WAIT + limits::ASK_TIMEOUT).await
}

fn note(output: &Output, text: &str) {
    match output.form() {
        Form::Text => output.text(&format!("          --        {text}")),
        Form::Json | Form::Quiet => {}
    }
}

fn print(item: &InboxItem, output: &Output) {
    match output.form() {
        Form::Json => output.json(item),
        Form::Quiet => output.text(&item.message.id.to_string()),
        Form::Text => {
            let place = match &item.message.conversation_name {
                Some(name) if name.starts_with('#') => name.clone(),
                Some(_) | None => "to you".to_owned(),
            };
            let mut lines = item.message.fields.body.lines();
            let first = harmless(lines.next().unwrap_or_default());
            let (time, sender) = (clock_time(item.message.created_at), item.message.sender.as_str());
            output.text(&format!("{time}  {sender:<8}  {place:<8}  {first}"));
            lines.for_each(|line| output.text(&format!("{:30}{}", "", harmless(line))));
        }
    }
}
