//! `explain`: where a message is and why, from everyone who may know. It changes nothing.

use model::ErrorCode;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use wire::ask::{BrokerExplained, ExplainedRecord};
use wire::local::{MessageLife, Receipt};

use super::meaning;
use crate::door::Door;
use crate::told::{Told, Trouble};

pub(super) const ABOUT: &str = "\
Say where a message is and why, by any id of it: your own client_message_id, or the id it was received under. It \
changes nothing, and it also says so when nobody has ever seen the id.";

/// The arguments of `explain`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A client_message_id or a message's id.
    id: String,
}

/// Where a message is.
#[derive(Serialize, JsonSchema)]
pub(super) struct Explained {
    /// As it was asked.
    id: String,
    /// How far it came or how it ended; `never_seen` when nobody asked holds it.
    verdict: String,
    /// What that word means.
    means: String,
    /// Every rung this host knows it reached, in order.
    rungs: Vec<Reached>,
    /// Each recipient's copy, as the broker knows it.
    recipients: Vec<Copy>,
    /// The last thing that went wrong on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// Who could not be asked, and why.
    unasked: Vec<String>,
}

/// A rung and who saw it.
#[derive(Serialize, JsonSchema)]
struct Reached {
    /// The rung.
    rung: String,
    /// Who saw it.
    by: String,
    /// When.
    at: String,
}

/// One recipient's copy.
#[derive(Serialize, JsonSchema)]
struct Copy {
    /// Who.
    recipient: String,
    /// How far.
    rung: String,
}

pub(super) async fn call(door: &Door, arguments: Arguments) -> Result<Told, Trouble> {
    let id = arguments.id;
    let encoded: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    let here = match door.get::<MessageLife>(&format!("/v1/messages/{encoded}"), &[]).await {
        Ok(life) => Some(life),
        Err(trouble) if trouble.is(ErrorCode::NotFound) => None,
        Err(trouble) => return Err(trouble),
    };
    let asked = match &here {
        Some(MessageLife::Out(item)) => item.client_message_id.to_string(),
        Some(MessageLife::In(item)) => item.message.id.to_string(),
        None => id.clone(),
    };
    let mut question = json!({"what": "explain", "id": asked});
    if let Some(mesh) = door.mesh() {
        question["mesh"] = mesh.into();
    }
    let broker: Result<BrokerExplained, Trouble> = door.post("/v1/ask", &question).await;
    let explained = Explained::of(id, here, broker);
    Ok(Told::new(explained.text(), &explained))
}

impl Explained {
    fn of(id: String, here: Option<MessageLife>, broker: Result<BrokerExplained, Trouble>) -> Self {
        let (mut rungs, mut last_error, mut verdict) = (Vec::new(), None, None);
        match here {
            Some(MessageLife::Out(item)) => {
                rungs = item.rungs.into_iter().map(Reached::of).collect();
                (last_error, verdict) = (item.last_error, Some(item.receipt.rung));
            }
            Some(MessageLife::In(item)) => verdict = Some(item.rung),
            None => {}
        }
        let (records, unasked) = match broker {
            Ok(broker) => (broker.records, Vec::new()),
            Err(trouble) => (Vec::new(), vec![format!("broker: {}", trouble.code())]),
        };
        let standing = |record: &ExplainedRecord| record.standing.clone().unwrap_or(record.state.clone());
        let verdict = verdict.or_else(|| records.first().map(standing));
        let recipients = records
            .iter()
            .flat_map(|record| &record.recipients)
            .map(|copy| Copy { recipient: copy.name.to_string(), rung: copy.rung.standing().to_string() });
        let recipients: Vec<Copy> = recipients.collect();
        let verdict = verdict.unwrap_or_else(|| "never_seen".to_owned());
        let means = match verdict.as_str() {
            "never_seen" => "Nobody asked holds this id. Sending with it again cannot double anything.",
            word => meaning(word),
        };
        Self { id, means: means.to_owned(), verdict, rungs, recipients, last_error, unasked }
    }

    fn text(&self) -> String {
        let mut lines = vec![format!("{}: {}", self.verdict, self.means)];
        lines.extend(
            self.rungs
                .iter()
                .map(|reached| format!("{} at {}, seen by {}", reached.rung, reached.at, reached.by)),
        );
        lines.extend(self.recipients.iter().map(|copy| format!("{}: {}", copy.recipient, copy.rung)));
        lines.extend(self.last_error.iter().map(|error| format!("last answer on its way: {error}")));
        lines.extend(self.unasked.iter().map(|who| format!("could not be asked: {who}")));
        lines.join("\n")
    }
}

impl Reached {
    fn of(receipt: Receipt) -> Self {
        Self { rung: receipt.rung, by: receipt.by, at: receipt.at.to_string() }
    }
}
