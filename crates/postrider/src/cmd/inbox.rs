//! `postrider inbox`: what arrived, newest last.

use model::{Clock, SystemClock, Timestamp, limits};
use wire::local::{InboxItem, InboxPage};

use super::Context;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output, age, headline, short_id};

/// Room for a body on an 80-column line beside id, sender, place and age.
const BODY_WIDTH: usize = 44;

pub async fn run(asked: args::Inbox, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.door()?, &context.output);
    let wait = asked.wait.unwrap_or_default().min(limits::LONG_POLL_MAX);
    let mut path = format!("/v1/inbox?limit={}&wait={}", asked.limit, wait.as_secs());
    if asked.unread {
        path.push_str("&unread_only=true");
    }
    if asked.seen {
        path.push_str("&mark_seen=true");
    }
    let page: InboxPage = door.get_within(&path, wait + limits::ASK_TIMEOUT).await?;
    match output.form() {
        Form::Json => page.items.iter().for_each(|item| output.json(item)),
        Form::Quiet => page.items.iter().for_each(|item| output.text(&item.message.id.to_string())),
        Form::Text => print(&page, SystemClock::start().now(), output),
    }
    Ok(Exit::Done)
}

fn print(page: &InboxPage, now: Timestamp, output: &Output) {
    if page.items.is_empty() {
        output.text("Nothing has arrived yet.");
        output.text("");
        output.fact("try", "postrider send me \"hello\"");
        return;
    }
    output.text(&format!("{} unread of {}, newest last", page.unread, page.total));
    output.text("");
    let width = output.on_terminal().then_some(BODY_WIDTH);
    for item in &page.items {
        output.text(&line(item, now, width));
    }
    if let Some(newest) = page.items.last() {
        output.text("");
        let id = short_id(newest.message.fields.client_message_id.as_str());
        output.fact("answer", &format!("postrider reply {id} \"...\"       listing marks nothing as read"));
    }
}

fn line(item: &InboxItem, now: Timestamp, width: Option<usize>) -> String {
    let place = match &item.message.conversation_name {
        Some(name) if name.starts_with('#') => name.clone(),
        Some(_) | None => "to you".to_owned(),
    };
    format!(
        "{:<6}  {:<8}  {:<8}  {:<6}  {}",
        short_id(item.message.fields.client_message_id.as_str()),
        item.message.sender.as_str(),
        place,
        age(item.message.created_at, now),
        headline(&item.message.fields.body, width),
    )
    .trim_end()
    .to_owned()
}
