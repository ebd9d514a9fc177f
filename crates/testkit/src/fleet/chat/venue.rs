//! Brokers with one member that has a token, on either store.

use crate::bin::Binary;
use crate::fleet::FleetError;
use crate::fleet::caller::Caller;
use crate::fleet::races::Store;
use crate::fleet::servers::{Broker, Node};
use crate::postgres::Database;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tempfile::TempDir;

/// See the module; ends with its handle.
pub struct Venue {
    brokers: Vec<Broker>,
    token: String,
    _node: Node,
    _database: Option<Database>,
    _file: TempDir,
}

/// One connection that writes.
pub struct Poster(Caller);

impl Venue {
    /// One broker over a file, or two over a database.
    ///
    /// # Errors
    /// When a server does not come up.
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
        let args = ["--store", &books, "--limit-member", "1000000", "--limit-mesh", "1000000"];
        let args = args.map(str::to_owned);
        let mut brokers = vec![Broker::start(binary, &args, faults)?];
        if store == Store::Postgres {
            brokers.push(Broker::start(binary, &args, faults)?);
        }
        let invite = brokers[0].owner_invite.clone().unwrap_or_default();
        let node = Node::join(binary, "starter", &invite)?;
        let token = node.quiet(&["token", "create", "--as", "follower"])?;
        Ok(Self { brokers, token, _node: node, _database: database, _file: file })
    }

    /// The brokers' next lives, without faults.
    pub(super) fn kill_and_restart(&mut self) -> Result<(), FleetError> {
        self.brokers.iter_mut().try_for_each(|broker| {
            broker.kill9();
            broker.restart(&[])
        })
    }

    /// Where the brokers listen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.brokers.iter().map(|broker| broker.address).collect()
    }

    /// The member's token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The first broker's process.
    pub fn pid(&self) -> u32 {
        self.brokers[0].pid()
    }

    /// A connection to the first broker that writes as the member.
    pub fn poster(&self) -> Poster {
        Poster(Caller::new(self.addresses(), 0, &self.token))
    }
}

impl Poster {
    /// A connection to a server that takes messages as a broker does.
    pub fn at(address: SocketAddr, token: &str) -> Self {
        Self(Caller::new(vec![address], 0, token))
    }

    /// Hands `body` to `to` under `id` and waits for the answer.
    ///
    /// # Errors
    /// When it is refused, or put off again and again.
    pub fn post(&mut self, to: &str, id: &str, body: &str) -> Result<Value, FleetError> {
        self.0.post(&json!({"to": to, "body": body, "client_message_id": id}))
    }
}
