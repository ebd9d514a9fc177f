//! `send`: returns when the message is durable on this host, or waits for more.

use std::time::Duration;

use model::{ErrorCode, Rung, limits};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use wire::local::{OutboxItem, Receipt, SendAnswer, SendRequest, destination};

use super::meaning;
use crate::door::Door;
use crate::told::{Told, Trouble};

pub(super) const ABOUT: &str = "\
Hand a message to a member or a topic. Returns as soon as it is durable on this host (rung `queued`), also while the \
network is away; it is then carried on by itself. With wait_for it waits until every recipient reached that rung. \
Calling again with the same client_message_id and the same words never doubles the message: the first result comes \
back with repeated = true. The result's rung is all that is known; do not report more.";

/// The arguments of `send`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Who gets it: a member's name (`reviewer`), `me`, `#topic` or `topic:NAME`.
    to: String,
    /// The text, at most 64 KiB.
    body: String,
    /// Your own id for this message, such as `review-214-done`: at most 128 letters, digits and . _ - : characters.
    /// Choose a new one for every new message and keep it when you call again.
    client_message_id: String,
    /// Names of members to point it out to.
    #[serde(default)]
    mentions: Vec<String>,
    /// The id of the message this one belongs to. To answer a message you received, use `reply`.
    #[serde(default)]
    reply_to: Option<String>,
    /// `now`, `next` or `low`; `next` when left out.
    #[serde(default)]
    priority: Option<String>,
    /// True when the conversation waits for an answer.
    #[serde(default)]
    expects_input: Option<bool>,
    /// An instant (RFC 3339) after which it must not be delivered any more.
    #[serde(default)]
    deliver_by: Option<String>,
    /// An id of your own that ties messages together.
    #[serde(default)]
    corr_id: Option<String>,
    /// Anything structured to carry beside the text, at most 8 KiB.
    #[serde(default)]
    meta: Option<Map<String, Value>>,
    /// Wait until every recipient reached this rung: accepted, delivered, notified, engaged or processed.
    #[serde(default)]
    wait_for: Option<String>,
    /// How long wait_for waits, in seconds: 30 when left out, at most 50.
    #[serde(default)]
    wait_seconds: Option<u64>,
}

/// What is known of a message just handed over.
#[derive(Serialize, JsonSchema)]
pub(super) struct Posted {
    /// Your id for it; `explain` takes it.
    pub client_message_id: String,
    /// How far it came, or how it ended.
    pub rung: String,
    /// What that word promises.
    pub means: String,
    /// Who saw that: a node's name or `broker`.
    pub by: String,
    /// When.
    pub at: String,
    /// True when an earlier call's copy of this very message was accepted before.
    pub repeated: bool,
    /// The broker's id of it, once accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Its conversation, once accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Its place in the conversation, once accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
    /// Whether the rung you waited for was reached; left out when you did not wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<bool>,
    /// The last thing that went wrong on its way; it is tried again by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

pub(super) async fn call(door: &Door, arguments: Arguments) -> Result<Told, Trouble> {
    let awaited = arguments.wait_for.as_deref().map(rung).transpose()?;
    let wait = bounded(arguments.wait_seconds);
    let answer: SendAnswer = door.post("/v1/send", &request(arguments, door.mesh())?).await?;
    let posted = match awaited {
        Some(rung) => followed(door, answer, rung, wait).await,
        None if answer.duplicate => looked_at(door, answer).await,
        None => Posted::of(answer),
    };
    Ok(Told::new(posted.text(), &posted))
}

/// How long a caller may wait.
pub(super) fn bounded(seconds: Option<u64>) -> Duration {
    seconds.map_or(limits::TOOL_WAIT_DEFAULT, Duration::from_secs).min(limits::TOOL_WAIT_MAX)
}

fn rung(word: &str) -> Result<Rung, Trouble> {
    word.parse().map_err(|error: model::error::Malformed| {
        Trouble::new(ErrorCode::InvalidRequest, format!("wait_for: {error}.")).still("Nothing was stored.")
    })
}

fn request(arguments: Arguments, mesh: Option<String>) -> Result<SendRequest, Trouble> {
    Ok(SendRequest {
        to: destination(&arguments.to),
        body: Some(arguments.body),
        client_message_id: Some(arguments.client_message_id),
        meta: arguments.meta.as_ref().map(raw),
        mentions: arguments.mentions,
        reply_to: arguments.reply_to,
        corr_id: arguments.corr_id,
        priority: arguments.priority,
        expects_input: arguments.expects_input,
        deliver_by: arguments.deliver_by,
        mesh,
        ..SendRequest::default()
    })
}

pub(super) fn raw(meta: &Map<String, Value>) -> Box<RawValue> {
    to_raw_value(meta).expect("a map with text keys is JSON")
}

/// Waits for `rung`. What was stored stays stored, so a look that does not come to an end takes nothing back.
async fn followed(door: &Door, answer: SendAnswer, rung: Rung, wait: Duration) -> Posted {
    let query = [("rung", rung.to_string()), ("wait", wait.as_secs().to_string())];
    let path = format!("/v1/messages/{}", answer.row);
    let mut posted = Posted::of(answer);
    match door.get_waiting::<OutboxItem>(&path, &query, wait).await {
        Ok(item) => {
            posted.reached = Some(item.receipt.rung.parse::<Rung>().is_ok_and(|held| held >= rung));
            posted.raise(item);
        }
        Err(trouble) => {
            posted.reached = Some(false);
            posted.last_error = Some(trouble.code().to_owned());
        }
    }
    posted
}

/// A message of an earlier call, as far as it has come meanwhile.
async fn looked_at(door: &Door, answer: SendAnswer) -> Posted {
    let path = format!("/v1/messages/{}", answer.row);
    let mut posted = Posted::of(answer);
    if let Ok(item) = door.get::<OutboxItem>(&path, &[]).await {
        posted.raise(item);
    }
    posted
}

impl Posted {
    pub(super) fn of(answer: SendAnswer) -> Self {
        let Receipt { rung, by, at } = answer.receipt;
        Self {
            client_message_id: answer.client_message_id.to_string(),
            means: meaning(&rung).to_owned(),
            rung,
            by,
            at: at.to_string(),
            repeated: answer.duplicate,
            message_id: answer.broker_message_id,
            conversation: answer.conversation,
            place: answer.history_id,
            reached: None,
            last_error: None,
        }
    }

    /// What its row says now.
    fn raise(&mut self, item: OutboxItem) {
        self.means = meaning(&item.receipt.rung).to_owned();
        (self.rung, self.by, self.at) = (item.receipt.rung, item.receipt.by, item.receipt.at.to_string());
        (self.message_id, self.conversation) = (item.broker_message_id, item.conversation);
        (self.place, self.last_error) = (item.history_id, item.last_error);
    }

    pub(super) fn text(&self) -> String {
        let mut lines = vec![format!("{}: {}", self.rung, self.means)];
        if self.repeated {
            lines.push("An earlier call stored this very message; nothing was doubled.".to_owned());
        }
        if self.reached == Some(false) {
            lines.push("The wait ended before the rung you asked for. It goes on by itself.".to_owned());
        }
        if let Some(error) = &self.last_error {
            lines.push(format!("last answer on its way: {error}"));
        }
        lines.push(format!("client_message_id: {}", self.client_message_id));
        lines.join("\n")
    }
}
