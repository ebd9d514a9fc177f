//! `explain`: where a message is and why, from everyone who may know. It changes nothing.

use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use wire::local::{Explanation, Receipt};

use crate::door::Door;
use crate::told::{Told, Trouble};

pub(super) const ABOUT: &str = "\
Say where a message is, why, and what happens next, by any id of it: your own client_message_id, or the id it was \
received under. It changes nothing, and it also says so when nobody has ever seen the id.";

/// The arguments of `explain`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A client_message_id or a message's id, or its last six or more characters.
    id: String,
}

/// Where a message is.
#[derive(Serialize, JsonSchema)]
pub(super) struct Explained {
    /// As it was asked.
    id: String,
    /// A rung, how it ended, `never_seen`, or `unknown` when the broker could not be asked.
    verdict: String,
    /// The same in a sentence.
    sentence: String,
    /// Whether nothing more happens by itself.
    needs_person: bool,
    /// Who sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<String>,
    /// Where to.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// Every rung it reached, in order.
    rungs: Vec<Reached>,
    /// Each recipient's copy that is known.
    recipients: Vec<Copy>,
    /// The last thing that went wrong on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// Who could not be asked, and why.
    unasked: Vec<String>,
    /// What happens now.
    next: String,
    /// Commands a person can run.
    fix: Vec<String>,
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
    /// How far it came, or how it ended.
    rung: String,
}

pub(super) async fn call(door: &Door, arguments: Arguments) -> Result<Told, Trouble> {
    let id: String = form_urlencoded::byte_serialize(arguments.id.as_bytes()).collect();
    let explanation: Explanation = door.get(&format!("/v1/explain/{id}"), &[]).await?;
    let explained = Explained::of(explanation);
    Ok(Told::new(explained.text(), &explained))
}

impl Explained {
    fn of(known: Explanation) -> Self {
        let copy = |copy: wire::local::ExplainedCopy| Copy { recipient: copy.name, rung: copy.rung };
        Self {
            id: known.id,
            verdict: known.verdict,
            sentence: known.sentence,
            needs_person: known.needs_person,
            sender: known.sender,
            to: known.to,
            rungs: known.rungs.into_iter().map(Reached::of).collect(),
            recipients: known.recipients.into_iter().map(copy).collect(),
            last_error: known.last_error,
            unasked: known.unasked,
            next: known.next,
            fix: known.fix,
        }
    }

    fn text(&self) -> String {
        let mut lines = vec![self.sentence.clone()];
        lines.extend(
            self.rungs
                .iter()
                .map(|reached| format!("{} at {}, seen by {}", reached.rung, reached.at, reached.by)),
        );
        lines.extend(self.recipients.iter().map(|copy| format!("{}: {}", copy.recipient, copy.rung)));
        lines.extend(self.last_error.iter().map(|error| format!("last answer on its way: {error}")));
        lines.extend(self.unasked.iter().map(|who| format!("could not be asked: {who}")));
        lines.push(format!("next: {}", self.next));
        lines.extend(self.fix.iter().map(|fix| format!("fix: {fix}")));
        lines.join("\n")
    }
}

impl Reached {
    fn of(receipt: Receipt) -> Self {
        Self { rung: receipt.rung, by: receipt.by, at: receipt.at.to_string() }
    }
}
