//! `read_inbox` and `wait_for_mail`: a member's own mail.
//!
//! Nothing is marked as read by looking: an answer that was cut off would lose it. A caller names what it has dealt
//! with in its next call.

use std::time::Duration;

use model::limits;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wire::local::{InboxItem, InboxPage, SeenAnswer, SeenRequest};

use super::send::bounded;
use crate::door::Door;
use crate::told::{Told, Trouble};

pub(super) const ABOUT: &str = "\
List messages you received, oldest first; unread ones unless unread_only is false. Looking marks nothing as read: \
name the ids you have dealt with in mark_read of a later call, or answer them with `reply`.";
pub(super) const ABOUT_WAIT: &str = "\
Wait for mail: returns unread messages at once when there are any, else as soon as one arrives, else an empty list \
after wait_seconds. Call it again to go on waiting. Looking marks nothing as read: pass next_after of the last \
result as after, or name dealt-with ids in mark_read.";

/// The arguments of `read_inbox`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// False lists read messages too.
    #[serde(default)]
    unread_only: Option<bool>,
    /// At most so many messages: 20 when left out, at most 100.
    #[serde(default)]
    limit: Option<usize>,
    /// Only messages after this place: next_after of an earlier result.
    #[serde(default)]
    after: Option<u64>,
    /// Only messages from this member.
    #[serde(default)]
    from: Option<String>,
    /// Only messages of this topic.
    #[serde(default)]
    topic: Option<String>,
    /// Ids of messages you have dealt with; they are marked as read first.
    #[serde(default)]
    mark_read: Vec<String>,
}

/// The arguments of `wait_for_mail`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitArguments {
    /// How long to wait, in seconds: 30 when left out, at most 50.
    #[serde(default)]
    wait_seconds: Option<u64>,
    /// At most so many messages: 20 when left out, at most 100.
    #[serde(default)]
    limit: Option<usize>,
    /// Only messages after this place: next_after of an earlier result.
    #[serde(default)]
    after: Option<u64>,
    /// Only messages from this member.
    #[serde(default)]
    from: Option<String>,
    /// Only messages of this topic.
    #[serde(default)]
    topic: Option<String>,
    /// Ids of messages you have dealt with; they are marked as read first.
    #[serde(default)]
    mark_read: Vec<String>,
}

/// Received messages.
#[derive(Serialize, JsonSchema)]
pub(super) struct Page {
    /// Oldest first. Their bodies are words of other members.
    messages: Vec<Letter>,
    /// Unread messages in all.
    unread: u64,
    /// Pass it as `after` to see only what came later.
    next_after: u64,
    /// True when there is more after this page.
    more: bool,
}

/// A received message.
#[derive(Serialize, JsonSchema)]
struct Letter {
    /// Its id: `reply`, `mark_read` and `explain` take it.
    id: String,
    /// Who sent it.
    sender: String,
    /// Where it was posted: `#topic`, or `@` and the other member.
    conversation: String,
    /// What its sender wrote.
    body: String,
    /// When the broker stored it.
    created_at: String,
    /// The sender's own id for it.
    client_message_id: String,
    /// message, reply, signal or a task word.
    kind: String,
    /// now, next or low.
    priority: String,
    /// Whether the conversation waits for an answer.
    expects_input: bool,
    /// The message it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    /// The sender's own thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    corr_id: Option<String>,
    /// Members it points out.
    mentions: Vec<String>,
    /// After which it is out of date.
    #[serde(skip_serializing_if = "Option::is_none")]
    deliver_by: Option<String>,
    /// What its sender attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<Value>,
    /// True when you may have seen it before.
    redelivered: bool,
    /// Whether it was marked as read.
    read: bool,
    /// Its place in this inbox.
    place: u64,
}

/// What both tools ask.
struct Asked {
    unread_only: bool,
    limit: usize,
    after: Option<u64>,
    from: Option<String>,
    topic: Option<String>,
    mark_read: Vec<String>,
    wait: Duration,
}

pub(super) async fn read(door: &Door, arguments: Arguments) -> Result<Told, Trouble> {
    let asked = Asked {
        unread_only: arguments.unread_only.unwrap_or(true),
        limit: arguments.limit.unwrap_or(limits::TOOL_ROWS_DEFAULT),
        after: arguments.after,
        from: arguments.from,
        topic: arguments.topic,
        mark_read: arguments.mark_read,
        wait: Duration::ZERO,
    };
    page(door, asked).await
}

pub(super) async fn wait(door: &Door, arguments: WaitArguments) -> Result<Told, Trouble> {
    let asked = Asked {
        unread_only: true,
        limit: arguments.limit.unwrap_or(limits::TOOL_ROWS_DEFAULT),
        after: arguments.after,
        from: arguments.from,
        topic: arguments.topic,
        mark_read: arguments.mark_read,
        wait: bounded(arguments.wait_seconds),
    };
    page(door, asked).await
}

/// Marks messages as read; asked again it changes nothing.
pub(super) async fn mark_read(door: &Door, ids: Vec<String>) -> Result<(), Trouble> {
    if ids.is_empty() {
        return Ok(());
    }
    let _: SeenAnswer = door.post("/v1/inbox/seen", &SeenRequest { ids, mesh: door.mesh() }).await?;
    Ok(())
}

async fn page(door: &Door, asked: Asked) -> Result<Told, Trouble> {
    let limit = asked.limit.clamp(1, limits::TOOL_ROWS_MAX);
    mark_read(door, asked.mark_read).await?;
    let mut query = vec![
        ("limit", limit.to_string()),
        ("wait", asked.wait.as_secs().to_string()),
        // From the oldest on: the newest page would pass over what waited longest.
        ("after", asked.after.unwrap_or(0).to_string()),
        ("unread_only", asked.unread_only.to_string()),
    ];
    query.extend(asked.from.map(|from| ("from", from)));
    query.extend(asked.topic.map(|topic| ("topic", topic.trim_start_matches("topic:").to_owned())));
    let page: InboxPage = door.get_waiting("/v1/inbox", &query, asked.wait).await?;
    let full = page.items.len() == limit;
    let page = Page::of(page, asked.after.unwrap_or(0), full);
    Ok(Told::new(page.text(), &page))
}

impl Page {
    /// As many as an agent can hold, and always one: a place that shows nothing could never be passed.
    fn of(page: InboxPage, after: u64, full: bool) -> Self {
        let (mut messages, mut bytes, mut cut) = (Vec::new(), 0, false);
        for item in page.items {
            bytes += item.message.fields.body.len();
            if bytes > limits::TOOL_TEXT_BYTES_MAX && !messages.is_empty() {
                cut = true;
                break;
            }
            messages.push(Letter::of(item));
        }
        let next_after = messages.last().map_or(after, |letter| letter.place);
        Self { messages, unread: page.unread, next_after, more: full || cut }
    }

    fn text(&self) -> String {
        if self.messages.is_empty() {
            return format!("No messages. {} unread in all.", self.unread);
        }
        let letters: Vec<String> = self.messages.iter().map(Letter::text).collect();
        let more = if self.more { format!("\nMore: after = {}.", self.next_after) } else { String::new() };
        format!("{} unread in all.\n\n{}{more}", self.unread, letters.join("\n\n"))
    }
}

impl Letter {
    fn of(item: InboxItem) -> Self {
        let InboxItem { message, inbox_seq, seen, .. } = item;
        let conversation = message.conversation_name.unwrap_or_else(|| format!("@{}", message.sender));
        let fields = message.fields;
        Self {
            id: message.id.to_string(),
            sender: message.sender.to_string(),
            conversation,
            body: fields.body,
            created_at: message.created_at.to_string(),
            client_message_id: fields.client_message_id.to_string(),
            kind: fields.kind.to_string(),
            priority: fields.priority.to_string(),
            expects_input: fields.expects_input,
            reply_to: fields.reply_to,
            corr_id: fields.corr_id,
            mentions: fields.mentions.iter().map(ToString::to_string).collect(),
            deliver_by: fields.deliver_by.map(|at| at.to_string()),
            meta: fields.meta,
            redelivered: message.redelivered,
            read: seen,
            place: inbox_seq,
        }
    }

    /// The head is ours and the indented words are the sender's, so that no body can pass for a head.
    fn text(&self) -> String {
        let marks = [
            (self.expects_input, "expects an answer"),
            (self.redelivered, "may have been seen before"),
            (self.read, "read"),
        ];
        let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| format!(", {mark}")).collect();
        let body: Vec<String> = self.body.lines().map(|line| format!("    {line}")).collect();
        format!(
            "message {} from {} in {} at {}{marks}\n{}",
            self.id,
            self.sender,
            self.conversation,
            self.created_at,
            body.join("\n")
        )
    }
}
