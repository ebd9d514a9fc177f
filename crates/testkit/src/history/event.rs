//! One line of a history.

use serde::{Deserialize, Serialize};

/// One thing a client did or saw: a JSON object a line, with the field names of the history's format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Microseconds since the recorder of this `proc` started; monotonic.
    pub t_mono: u64,
    /// Who saw it: one client, or one reader across its restarts.
    pub proc: String,
    /// The message's client_message_id.
    pub id: String,
    /// Its fingerprint, where the client knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fp: Option<String>,
    /// The conversation; on a send, the destination as asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conv: Option<String>,
    /// Begin, or which end.
    #[serde(rename = "type")]
    pub outcome: Outcome,
    /// What was done, as `op` and `value`.
    #[serde(flatten)]
    pub act: Act,
}

/// Where in its life a call was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Before the first byte left.
    Invoke,
    /// It happened, says the answer.
    Ok,
    /// It did not happen, says the answer.
    Fail,
    /// Nobody knows: no answer came.
    Info,
}

/// What was done or seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", content = "value", rename_all = "snake_case")]
pub enum Act {
    /// A client hands a message in.
    Send {
        /// The member it sends as.
        sender: String,
        /// Readers that must see it, by their `proc`; empty when any reader will do.
        #[serde(default)]
        readers: Vec<String>,
    },
    /// A reader of the log shows a row: it sees every row, so a gap is a loss.
    Render {
        /// The member who sent it.
        sender: String,
        /// Its place in the conversation.
        seq: u64,
        /// The cursor that came with it.
        cursor: String,
    },
    /// A recipient's inbox hands a row out: the conversation's other rows are not its own, so gaps are legal.
    Receive {
        /// The member who sent it.
        sender: String,
        /// Its place in the conversation.
        seq: u64,
        /// The cursor that came with it.
        cursor: String,
    },
    /// After the run, the operator's list names how the message ended.
    Listed {
        /// The member who sent it.
        sender: String,
        /// The terminal word.
        state: String,
        /// Why.
        cause: String,
    },
}

/// A message's name: an id belongs to its sender, and two senders may use the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageKey {
    /// The sending member.
    pub sender: String,
    /// The client_message_id.
    pub id: String,
}

impl Event {
    /// Which message it is about.
    pub fn key(&self) -> MessageKey {
        let sender = match &self.act {
            Act::Send { sender, .. }
            | Act::Render { sender, .. }
            | Act::Receive { sender, .. }
            | Act::Listed { sender, .. } => sender,
        };
        MessageKey { sender: sender.clone(), id: self.id.clone() }
    }

    /// The conversation, or the empty name where none is given.
    pub fn conversation(&self) -> &str {
        self.conv.as_deref().unwrap_or_default()
    }
}

impl std::fmt::Display for MessageKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.sender, self.id)
    }
}
