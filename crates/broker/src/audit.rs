//! The audit stream: who was let in, what owners decided. One record each, as log lines of target `audit`; the
//! binary keeps them in `broker/audit.log` of its home.
//!
//! A record is written after the fact it names is committed. It follows from committed facts and is none itself: a
//! kill between the two loses a line, never the truth. No secret and no message text ever stands in one.

use std::time::Duration;

use model::{ConversationId, MemberName, NodeName, TopicName};

/// The log target that carries the stream, so that an operator can send it elsewhere.
pub const TARGET: &str = "audit";

/// One thing worth remembering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// A node used an invite.
    NodeJoined { node: &'a NodeName, person: &'a MemberName },
    /// A node opened a link.
    LinkOpened { node: &'a NodeName, epoch: u64 },
    /// A second connection of a node met the first.
    ConcurrentConnection { node: &'a NodeName, kept: Kept },
    /// The store's clock went back.
    ClockRegressed { by: Duration },
    /// The store's clock jumped ahead of running time.
    ClockAhead { by: Duration },
    /// An owner did something.
    Decided { by: &'a MemberName, what: Decision<'a> },
}

/// Which of two connections stayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The later one.
    Newest,
    /// The earlier one.
    Oldest,
}

/// What an owner may decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision<'a> {
    /// An invite was made.
    InviteCreated { node: Option<&'a NodeName> },
    /// An invite was taken back.
    InviteRevoked { id: &'a str },
    /// A token was made.
    TokenCreated { id: u64, member: &'a MemberName },
    /// A token was taken back.
    TokenRevoked { id: u64 },
    /// A member was removed.
    MemberRemoved { member: &'a MemberName },
    /// Policies were changed.
    PoliciesSet,
    /// A topic was declared.
    TopicCreated { topic: &'a TopicName },
    /// A conversation's messages were removed.
    ConversationEmptied { conversation: ConversationId, messages: u64 },
    /// A member got a webhook.
    WebhookCreated { name: &'a MemberName },
    /// A webhook got a new secret.
    WebhookRotated { name: &'a MemberName },
    /// A webhook was started again.
    WebhookEnabled { name: &'a MemberName },
    /// A webhook was taken away.
    WebhookRemoved { name: &'a MemberName },
}

impl Event<'_> {
    /// Appends the record.
    pub(crate) fn record(&self) {
        let (event, by, about) = self.line();
        tracing::info!(target: TARGET, event, by, about);
    }

    /// What, who, about whom or what.
    fn line(&self) -> (&'static str, String, String) {
        match self {
            Event::NodeJoined { node, person } => ("node_joined", node.to_string(), person.to_string()),
            Event::LinkOpened { node, epoch } => ("link_opened", node.to_string(), format!("epoch {epoch}")),
            Event::ConcurrentConnection { node, kept } => {
                let kept = match kept {
                    Kept::Newest => "kept the newest",
                    Kept::Oldest => "kept the oldest",
                };
                ("member_concurrent_connection", node.to_string(), kept.to_owned())
            }
            Event::ClockRegressed { by } => {
                ("clock_regressed", String::new(), format!("{} ms behind", by.as_millis()))
            }
            Event::ClockAhead { by } => {
                ("clock_ahead", String::new(), format!("{} ms ahead", by.as_millis()))
            }
            Event::Decided { by, what } => {
                let (event, about) = what.line();
                (event, by.to_string(), about)
            }
        }
    }
}

impl Decision<'_> {
    fn line(&self) -> (&'static str, String) {
        match self {
            Decision::InviteCreated { node } => {
                ("invite_created", node.map_or("any node".to_owned(), ToString::to_string))
            }
            Decision::InviteRevoked { id } => ("invite_revoked", (*id).to_owned()),
            Decision::TokenCreated { id, member } => ("token_created", format!("{id} as {member}")),
            Decision::TokenRevoked { id } => ("token_revoked", id.to_string()),
            Decision::MemberRemoved { member } => ("member_removed", member.to_string()),
            Decision::PoliciesSet => ("policies_set", String::new()),
            Decision::TopicCreated { topic } => ("topic_created", format!("#{topic}")),
            Decision::ConversationEmptied { conversation, messages } => {
                ("conversation_emptied", format!("{conversation}, {messages} messages"))
            }
            Decision::WebhookCreated { name } => ("webhook_created", name.to_string()),
            Decision::WebhookRotated { name } => ("webhook_rotated", name.to_string()),
            Decision::WebhookEnabled { name } => ("webhook_enabled", name.to_string()),
            Decision::WebhookRemoved { name } => ("webhook_removed", name.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_names_what_who_and_about_what() {
        let (node, jane, topic) =
            ("lab".parse().unwrap(), "jane".parse().unwrap(), "alerts".parse().unwrap());
        let decided = |what| Event::Decided { by: &jane, what };
        for (event, line) in [
            (Event::NodeJoined { node: &node, person: &jane }, ("node_joined", "lab", "jane")),
            (Event::LinkOpened { node: &node, epoch: 3 }, ("link_opened", "lab", "epoch 3")),
            (
                Event::ConcurrentConnection { node: &node, kept: Kept::Oldest },
                ("member_concurrent_connection", "lab", "kept the oldest"),
            ),
            (
                Event::ConcurrentConnection { node: &node, kept: Kept::Newest },
                ("member_concurrent_connection", "lab", "kept the newest"),
            ),
            (
                Event::ClockRegressed { by: Duration::from_secs(90) },
                ("clock_regressed", "", "90000 ms behind"),
            ),
            (Event::ClockAhead { by: Duration::from_secs(90) }, ("clock_ahead", "", "90000 ms ahead")),
            (decided(Decision::InviteCreated { node: None }), ("invite_created", "jane", "any node")),
            (decided(Decision::InviteRevoked { id: "00ff" }), ("invite_revoked", "jane", "00ff")),
            (
                decided(Decision::TokenCreated { id: 3, member: &jane }),
                ("token_created", "jane", "3 as jane"),
            ),
            (decided(Decision::TokenRevoked { id: 3 }), ("token_revoked", "jane", "3")),
            (decided(Decision::MemberRemoved { member: &jane }), ("member_removed", "jane", "jane")),
            (decided(Decision::PoliciesSet), ("policies_set", "jane", "")),
            (decided(Decision::TopicCreated { topic: &topic }), ("topic_created", "jane", "#alerts")),
            (decided(Decision::WebhookCreated { name: &jane }), ("webhook_created", "jane", "jane")),
            (decided(Decision::WebhookRotated { name: &jane }), ("webhook_rotated", "jane", "jane")),
            (decided(Decision::WebhookEnabled { name: &jane }), ("webhook_enabled", "jane", "jane")),
            (decided(Decision::WebhookRemoved { name: &jane }), ("webhook_removed", "jane", "jane")),
        ] {
            let (what, by, about) = event.line();
            assert_eq!((what, by.as_str(), about.as_str()), line);
        }
    }
}
