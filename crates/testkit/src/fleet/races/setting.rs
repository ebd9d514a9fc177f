//! A broker with its store, a shared limiter, and three members with a token each.

use super::Store;
use crate::bin::Binary;
use crate::fleet::FleetError;
use crate::fleet::caller::Caller;
use crate::fleet::servers::{Broker, Node};
use crate::kills::audience::Row;
use crate::kills::closing::whole_log;
use crate::postgres::Database;
use crate::redis;
use serde_json::json;
use std::net::SocketAddr;
use tempfile::TempDir;

/// Where every copy goes.
pub(super) const TO: &str = "#race";
const TOPIC: &str = "race";
/// Messages that put a budget so far ahead of the clock that it does not become whole between two ids, on a busy machine
/// either: seconds of waiting in all.
const PRIMERS: usize = 240;
/// What the largest budget holds, at one unit a second.
const BUDGET_S: u64 = 86_400;
/// What the primers' ids begin with.
pub(super) const PRIMER: &str = "primer";

pub(super) struct Setting {
    /// The token of the member that sends twins.
    pub twins: String,
    /// The token of the member that sends rivals.
    pub rivals: String,
    /// The token of the member that has nothing to pay with.
    pub unpaid: String,
    node: Node,
    broker: Broker,
    keys: Arrivals<String>,
    unpaid_key: String,
    redis: redis::Private,
    _database: Option<Database>,
    _file: TempDir,
}

/// Something of each kind: where its arrival instant is kept, or the instant in microseconds.
pub(super) struct Arrivals<T> {
    pub twins: T,
    pub rivals: T,
}

impl Setting {
    pub(super) fn open(binary: &Binary, store: Store, faults: &[String]) -> Result<Self, FleetError> {
        let (file, redis) = (TempDir::new()?, redis::Private::start()?);
        let database = match store {
            Store::Sqlite => None,
            Store::Postgres => Some(Database::create()?),
        };
        let books = match &database {
            Some(database) => database.url(),
            None => format!("sqlite:{}", file.path().join("ledger.db").display()),
        };
        let limiter = redis.url();
        // The mesh's budget must never be the one to refuse.
        let member = format!("1:{BUDGET_S}");
        let args =
            ["--store", &books, "--limiter", &limiter, "--limit-member", &member, "--limit-mesh", "1000000"];
        let broker = Broker::start(binary, &args.map(str::to_owned), faults)?;
        let invite = broker.owner_invite.clone().unwrap_or_default();
        let node = Node::join(binary, "starter", &invite)?;
        node.quiet(&["topic", "create", TOPIC])?;
        let token = |name| node.quiet(&["token", "create", "--as", name]);
        let (twins, rivals, unpaid) = (token("twins")?, token("rivals")?, token("unpaid")?);
        let twins_key = prime(&broker, &twins, PRIMERS, &redis, &[])?;
        let rivals_key = prime(&broker, &rivals, PRIMERS, &redis, &[&twins_key])?;
        let unpaid_key = prime(&broker, &unpaid, 1, &redis, &[&twins_key, &rivals_key])?;
        let keys = Arrivals { twins: twins_key, rivals: rivals_key };
        let setting = Self {
            twins,
            rivals,
            unpaid,
            node,
            broker,
            keys,
            unpaid_key,
            redis,
            _database: database,
            _file: file,
        };
        setting.spend_all()?;
        Ok(setting)
    }

    /// The unpaid member has spent its budget of a day and half the next: with twice as much a clock must be wrong.
    fn spend_all(&self) -> Result<(), FleetError> {
        let primed = self.arrival(&self.unpaid_key)?;
        let spent = primed + (BUDGET_S + BUDGET_S / 2) * 1_000_000;
        self.redis.ask(&format!("SET {} {spent}", self.unpaid_key))?;
        Ok(())
    }

    /// A caller of the unpaid member, which has its budget again.
    pub(super) fn paying_again(&self) -> Result<Caller, FleetError> {
        self.redis.ask(&format!("DEL {}", self.unpaid_key))?;
        Ok(Caller::new(vec![self.address()], 0, &self.unpaid))
    }

    /// The broker's next life, without faults.
    pub(super) fn kill_and_restart(&mut self) -> Result<(), FleetError> {
        self.broker.kill9();
        self.broker.restart(&[])?;
        self.node.await_link()
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.broker.address
    }

    /// Both members' arrival instants.
    pub(super) fn paid_until(&self) -> Result<Arrivals<u64>, FleetError> {
        Ok(Arrivals { twins: self.arrival(&self.keys.twins)?, rivals: self.arrival(&self.keys.rivals)? })
    }

    fn arrival(&self, key: &str) -> Result<u64, FleetError> {
        let found = self.redis.ask(&format!("GET {key}"))?;
        let instant = found.first().and_then(|text| text.parse().ok());
        instant
            .ok_or_else(|| FleetError::Unreadable { asked: key.to_owned(), answered: format!("{found:?}") })
    }

    /// Every row of the topic's log that is no primer.
    pub(super) fn log(&self) -> Result<Vec<Row>, FleetError> {
        let question = json!({ "what": "topic_history", "topic": TOPIC });
        let mut rows = whole_log(&mut self.node.door(), &question)?;
        rows.retain(|row| !row.client_message_id.starts_with(PRIMER));
        Ok(rows)
    }
}

/// Spends the primers of a member and learns the name of its budget: the one that was not there before.
fn prime(
    broker: &Broker,
    token: &str,
    primers: usize,
    redis: &redis::Private,
    known: &[&String],
) -> Result<String, FleetError> {
    let mut caller = Caller::new(vec![broker.address], 0, token);
    for n in 0..primers {
        post_primer(&mut caller, n)?;
    }
    let found = redis.ask("KEYS rl:*:*")?;
    let new = found.iter().find(|key| !known.contains(key)).cloned();
    new.ok_or_else(|| FleetError::Unreadable {
        asked: "a member's budget".to_owned(),
        answered: format!("{found:?}"),
    })
}

/// A call that costs nothing: its message is known.
pub(super) fn prove_who(caller: &mut Caller) -> Result<(), FleetError> {
    post_primer(caller, 0)
}

fn post_primer(caller: &mut Caller, n: usize) -> Result<(), FleetError> {
    let message = json!({"to": TO, "body": "x", "client_message_id": format!("{PRIMER}{n}")});
    caller.post(&message).map(drop)
}
