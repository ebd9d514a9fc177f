//! A broker that whoever likes may throw requests at, and what must be true of it afterwards.

use super::FleetError;
use super::caller::{ANSWER_BOUND, Caller};
use super::races::Store;
use super::servers::{Broker, Node};
use crate::bin::Binary;
use crate::kills::door::Answer;
use crate::postgres::Database;
use serde_json::json;
use tempfile::TempDir;

/// The bug the proof must find: a question with an answer asked for breaks its handler.
pub const PANIC_ON_QUESTION: &str = "bug:broker.panic_on_question";

/// A broker with a topic, a conversation and somebody who may write to both.
pub struct Besieged {
    /// A token that may send, read and write to the hub.
    pub token: String,
    /// A conversation of the token's member.
    pub conversation: String,
    broker: Broker,
    _node: Node,
    _database: Option<Database>,
    _file: TempDir,
}

impl Besieged {
    /// Starts it; budgets are wide, so that requests meet the rules behind them.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn open(binary: &Binary, store: Store, faults: &[String]) -> Result<Self, FleetError> {
        let file = TempDir::new()?;
        let database = match store {
            Store::Sqlite => None,
            Store::Postgres => Some(Database::create()?),
        };
        let books = match &database {
            Some(database) => database.url(),
            None => format!("sqlite:{}", file.path().join("ledger.db").display()),
        };
        let wide = "100000:1000000";
        let args = ["--store", &books, "--limit-member", wide, "--limit-mesh", wide];
        let broker = Broker::start(binary, &args.map(str::to_owned), faults)?;
        let node = Node::join(binary, "starter", broker.owner_invite.as_deref().unwrap_or_default())?;
        let scopes = ["--scope", "send", "--scope", "read", "--scope", "hub"];
        let token = node.quiet(&[&["token", "create", "--as", "stranger"], &scopes[..]].concat())?;
        let mut besieged = Self {
            token,
            conversation: String::new(),
            broker,
            _node: node,
            _database: database,
            _file: file,
        };
        besieged.conversation = besieged.posted("before")?;
        Ok(besieged)
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.broker.address)
    }

    /// Whether it took a message like any other; the id must be new.
    pub fn serves(&self, id: &str) -> bool {
        self.posted(id).is_ok()
    }

    /// Lines in which a thread says that it broke; a process that ended is one too.
    pub fn broken(&mut self) -> Vec<String> {
        let mut broken: Vec<String> =
            self.broker.said().lines().filter(|line| line.contains("panicked")).map(str::to_owned).collect();
        broken.extend(self.broker.ended().map(|status| format!("the broker ended: {status}")));
        broken
    }

    fn posted(&self, id: &str) -> Result<String, FleetError> {
        let mut caller = Caller::new(vec![self.broker.address], 0, &self.token);
        caller.ask(&json!({"to": "#general", "body": "x", "client_message_id": id}))?;
        let Answer { status, body } = caller.answer(ANSWER_BOUND)?;
        match (status, body["conversation"].as_str()) {
            (201, Some(conversation)) => Ok(conversation.to_owned()),
            (_, _) => Err(FleetError::Unreadable {
                asked: "a message".to_owned(),
                answered: format!("{status} {body}"),
            }),
        }
    }
}
