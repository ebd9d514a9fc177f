//! `list_agents`, `list_topics` and `list_members`: who and what there is in the mesh.

use model::MemberKind;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use wire::ask::{MemberRow, TopicRow};

use crate::door::Door;
use crate::told::{Told, Trouble};

pub(super) const ABOUT_AGENTS: &str = "List the agents you can write to, with the machine each one lives on.";
pub(super) const ABOUT_TOPICS: &str =
    "List the topics: logs that every member may read and post to. `send` to `#name` posts to one.";
pub(super) const ABOUT_MEMBERS: &str = "List everyone you can write to: people, agents and services.";

/// These tools take no arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {}

/// Members of a mesh.
#[derive(Serialize, JsonSchema)]
pub(super) struct Members {
    /// The mesh's name here.
    mesh: String,
    /// By name.
    members: Vec<Member>,
}

/// Somebody who can be written to.
#[derive(Serialize, JsonSchema)]
struct Member {
    /// What `send` takes as `to`.
    name: String,
    /// person, agent or service.
    kind: String,
    /// The machine it lives on; left out when the broker hosts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<String>,
    /// owner or member.
    role: String,
}

/// Topics of a mesh.
#[derive(Serialize, JsonSchema)]
pub(super) struct Topics {
    /// The mesh's name here.
    mesh: String,
    /// By name.
    topics: Vec<Topic>,
}

/// A log that every member may read.
#[derive(Serialize, JsonSchema)]
struct Topic {
    /// With `#` before it, what `send` takes as `to`.
    name: String,
    /// Messages so far.
    messages: u64,
    /// Whether its messages come to your inbox.
    subscribed: bool,
}

#[derive(Deserialize)]
struct Peers {
    mesh: String,
    peers: Vec<MemberRow>,
}

#[derive(Deserialize)]
struct TopicList {
    mesh: String,
    topics: Vec<TopicRow>,
}

pub(super) async fn agents(door: &Door) -> Result<Told, Trouble> {
    let is_agent = |row: &MemberRow| row.member.kind == MemberKind::Agent.word();
    listed(door, is_agent, "No agents yet. postrider agent add NAME makes one.").await
}

pub(super) async fn everyone(door: &Door) -> Result<Told, Trouble> {
    listed(door, |_| true, "Nobody yet.").await
}

pub(super) async fn topics(door: &Door) -> Result<Told, Trouble> {
    let TopicList { mesh, topics } = door.get("/v1/topic/list", &[]).await?;
    let topics = topics.into_iter().map(|row| Topic {
        name: row.topic.to_string(),
        messages: row.head,
        subscribed: row.subscribed,
    });
    let topics = Topics { mesh, topics: topics.collect() };
    Ok(Told::new(topics.text(), &topics))
}

async fn listed(door: &Door, wanted: fn(&MemberRow) -> bool, none: &str) -> Result<Told, Trouble> {
    let Peers { mesh, peers } = door.get("/v1/peers", &[]).await?;
    let members = peers.into_iter().filter(wanted).map(|row| Member {
        name: row.member.name.to_string(),
        kind: row.member.kind.to_string(),
        home: row.home,
        role: row.role,
    });
    let members = Members { mesh, members: members.collect() };
    Ok(Told::new(members.text(none), &members))
}

impl Members {
    fn text(&self, none: &str) -> String {
        if self.members.is_empty() {
            return none.to_owned();
        }
        let line = |member: &Member| {
            let home = member.home.as_deref().unwrap_or("the broker");
            format!("{} ({}) at {home}", member.name, member.kind)
        };
        let lines: Vec<String> = self.members.iter().map(line).collect();
        format!("Mesh {}:\n{}", self.mesh, lines.join("\n"))
    }
}

impl Topics {
    fn text(&self) -> String {
        if self.topics.is_empty() {
            return "No topics yet. In an open mesh the first message to #name makes one.".to_owned();
        }
        let line = |topic: &Topic| {
            let mark = if topic.subscribed { ", comes to your inbox" } else { "" };
            format!("#{} ({} messages{mark})", topic.name, topic.messages)
        };
        let lines: Vec<String> = self.topics.iter().map(line).collect();
        format!("Mesh {}:\n{}", self.mesh, lines.join("\n"))
    }
}
