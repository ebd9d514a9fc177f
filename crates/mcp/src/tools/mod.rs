//! The tools, a file each.

mod explain;
mod inbox;
mod members;
mod reply;
mod send;

use std::sync::Arc;

use model::ErrorCode;
use rmcp::handler::server::tool::{schema_for_input, schema_for_output};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::door::Door;
use crate::told::{Told, Trouble};

/// Which tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// Hands a message over.
    Send,
    /// Answers a received message; its turn begins and ends with that.
    Reply,
    /// Lists received messages.
    ReadInbox,
    /// The same, waiting for the next one.
    WaitForMail,
    /// Lists agents.
    ListAgents,
    /// Lists topics.
    ListTopics,
    /// Lists everyone.
    ListMembers,
    /// Says where a message is and why.
    Explain,
}

impl ToolKind {
    /// Every tool, in the order clients see.
    pub const ALL: &[ToolKind] = &[
        ToolKind::Send,
        ToolKind::Reply,
        ToolKind::ReadInbox,
        ToolKind::WaitForMail,
        ToolKind::ListAgents,
        ToolKind::ListTopics,
        ToolKind::ListMembers,
        ToolKind::Explain,
    ];

    /// The name clients call it by.
    pub const fn name(self) -> &'static str {
        match self {
            ToolKind::Send => "send",
            ToolKind::Reply => "reply",
            ToolKind::ReadInbox => "read_inbox",
            ToolKind::WaitForMail => "wait_for_mail",
            ToolKind::ListAgents => "list_agents",
            ToolKind::ListTopics => "list_topics",
            ToolKind::ListMembers => "list_members",
            ToolKind::Explain => "explain",
        }
    }

    /// The tool of that name.
    pub fn named(name: &str) -> Option<ToolKind> {
        ToolKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Whether a call that is given up leaves nothing half done.
    pub(crate) const fn only_reads(self) -> bool {
        match self {
            ToolKind::Send | ToolKind::Reply => false,
            ToolKind::ReadInbox
            | ToolKind::WaitForMail
            | ToolKind::ListAgents
            | ToolKind::ListTopics
            | ToolKind::ListMembers
            | ToolKind::Explain => true,
        }
    }

    /// What clients are told about it.
    pub(crate) fn describe(self) -> Tool {
        let tool = match self {
            ToolKind::Send => shape::<send::Arguments, send::Posted>(self, "Send a message", send::ABOUT),
            ToolKind::Reply => {
                shape::<reply::Arguments, reply::Replied>(self, "Answer a message", reply::ABOUT)
            }
            ToolKind::ReadInbox => {
                shape::<inbox::Arguments, inbox::Page>(self, "Read the inbox", inbox::ABOUT)
            }
            ToolKind::WaitForMail => {
                shape::<inbox::WaitArguments, inbox::Page>(self, "Wait for mail", inbox::ABOUT_WAIT)
            }
            ToolKind::ListAgents => {
                shape::<members::Arguments, members::Members>(self, "List agents", members::ABOUT_AGENTS)
            }
            ToolKind::ListTopics => {
                shape::<members::Arguments, members::Topics>(self, "List topics", members::ABOUT_TOPICS)
            }
            ToolKind::ListMembers => {
                shape::<members::Arguments, members::Members>(self, "List members", members::ABOUT_MEMBERS)
            }
            ToolKind::Explain => {
                shape::<explain::Arguments, explain::Explained>(self, "Where is it?", explain::ABOUT)
            }
        };
        tool.with_annotations(self.annotations())
    }

    /// Carries a call out.
    pub(crate) async fn call(self, door: &Door, arguments: JsonObject) -> Result<Told, Trouble> {
        match self {
            ToolKind::Send => send::call(door, parsed(arguments)?).await,
            ToolKind::Reply => reply::call(door, parsed(arguments)?).await,
            ToolKind::ReadInbox => inbox::read(door, parsed(arguments)?).await,
            ToolKind::WaitForMail => inbox::wait(door, parsed(arguments)?).await,
            ToolKind::ListAgents => {
                let members::Arguments {} = parsed(arguments)?;
                members::agents(door).await
            }
            ToolKind::ListTopics => {
                let members::Arguments {} = parsed(arguments)?;
                members::topics(door).await
            }
            ToolKind::ListMembers => {
                let members::Arguments {} = parsed(arguments)?;
                members::everyone(door).await
            }
            ToolKind::Explain => explain::call(door, parsed(arguments)?).await,
        }
    }

    /// Nothing here destroys, and every write repeats without effect.
    fn annotations(self) -> ToolAnnotations {
        let hints = ToolAnnotations::new().read_only(self.only_reads()).open_world(false);
        if self.only_reads() { hints } else { hints.destructive(false).idempotent(true) }
    }
}

fn shape<A: JsonSchema + 'static, R: JsonSchema + 'static>(
    kind: ToolKind,
    title: &str,
    about: &'static str,
) -> Tool {
    let takes = schema_for_input::<A>().expect("arguments are an object");
    let gives = schema_for_output::<R>();
    Tool::new(kind.name(), about, portable(&takes)).with_title(title).with_raw_output_schema(portable(&gives))
}

/// The same schema for clients whose models know one type a field: what may be left out is left out, never null.
fn portable(schema: &JsonObject) -> Arc<JsonObject> {
    let mut schema = Value::Object(schema.clone());
    without_null(&mut schema);
    match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => unreachable!("an object stays one"),
    }
}

fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    fields.insert("type".to_owned(), only);
                }
            }
            if fields.get("default").is_some_and(Value::is_null) {
                fields.remove("default");
            }
            fields.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A wrong argument is the caller's to correct, so it is told like every other refusal.
fn parsed<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, Trouble> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Trouble::new(ErrorCode::InvalidRequest, format!("The arguments do not fit: {error}."))
            .still("Nothing was stored.")
            .fix("Correct the argument and call again.")
    })
}

/// What a receipt's word means, for the text and the data alike.
fn meaning(word: &str) -> &'static str {
    model::receipt::meaning(word).unwrap_or("A word of a newer version; explain says more.")
}
