//! Who sends, where to, and who must see it.

use serde_json::Value;

/// The topic everybody is subscribed to.
pub(crate) const TOPIC: &str = "general";

/// A member of the home.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// Its name in the mesh.
    pub name: String,
    /// How the operator acts as it; none for the home's person.
    pub acting_as: Option<String>,
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The sender's own inbox.
    Me,
    /// The topic: everybody's inbox but the sender's.
    Topic,
}

impl Destination {
    pub(crate) const ALL: [Self; 2] = [Self::Me, Self::Topic];

    /// As it is asked for.
    pub(crate) fn to(self) -> String {
        match self {
            Self::Me => "@me".to_owned(),
            Self::Topic => format!("#{TOPIC}"),
        }
    }

    /// The rung at which the sender's own row says that all is done: a topic's deliveries are the ledger's to know.
    pub(crate) fn last_rung(self) -> &'static str {
        match self {
            Self::Me => "delivered",
            Self::Topic => "accepted",
        }
    }

    /// Every reader that must see a message of `sender` once.
    pub(crate) fn readers(self, sender: &Member, members: &[Member]) -> Vec<String> {
        let of = |member: &Member| [follower_of(&member.name), inbox_of(&member.name)];
        match self {
            Self::Me => of(sender).into_iter().chain([log_of(&sender.name)]).collect(),
            Self::Topic => {
                let others = members.iter().filter(|member| member.name != sender.name);
                others.flat_map(of).chain([log_of(TOPIC)]).collect()
            }
        }
    }
}

/// The reader that follows a member's inbox while the product dies around it.
pub(crate) fn follower_of(member: &str) -> String {
    format!("follower-{member}")
}

/// The reader of a member's inbox from the start, after the run.
pub(crate) fn inbox_of(member: &str) -> String {
    format!("inbox-{member}")
}

/// The reader of a log from the start, after the run: the topic's, or of a member with itself.
pub(crate) fn log_of(name: &str) -> String {
    format!("log-{name}")
}

/// The text that belongs to an id, so that a reader can tell a message whose text was changed.
pub(crate) fn text_of(id: &str) -> String {
    format!("the text of {id}")
}

/// A message as any door shows it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub client_message_id: String,
    pub sender: String,
    pub place: Place,
    pub cursor: String,
    pub body: String,
}

/// A message's id and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub message_id: String,
    pub conversation: String,
    pub seq: u64,
}

impl Row {
    /// The row in a JSON message; none when a field is missing.
    pub(crate) fn of(message: &Value) -> Option<Self> {
        let text = |field: &str| message[field].as_str().map(str::to_owned);
        Some(Self {
            client_message_id: text("client_message_id")?,
            sender: text("sender")?,
            place: Place {
                message_id: text("id")?,
                conversation: text("conversation")?,
                seq: message["history_id"].as_u64()?,
            },
            cursor: text("cursor")?,
            body: text("body")?,
        })
    }
}

impl Place {
    /// The place a receipt names; none while the message is not accepted.
    pub(crate) fn told_by(receipt: &Value) -> Option<Self> {
        Some(Self {
            message_id: receipt["broker_message_id"].as_str()?.to_owned(),
            conversation: receipt["conversation"].as_str()?.to_owned(),
            seq: receipt["history_id"].as_u64()?,
        })
    }
}
