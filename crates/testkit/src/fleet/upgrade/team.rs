//! The team's processes; each can change its binary between two lives.

use crate::bin::{Binary, Home};
use crate::fleet::FleetError;
use crate::fleet::races::Store;
use crate::fleet::relays::Caller;
use crate::fleet::servers::{Broker, Node, ready_line};
use crate::kills::door::Answer;
use crate::port;
use crate::postgres::Database;
use crate::process::Process;
use crate::wait::wait_for;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The mesh's owner.
pub(super) const ANN: &str = "ann";
/// The other home.
pub(super) const BOB: &str = "bob";
/// A member without a home: a script with a token.
const DIRECT: &str = "script";
/// A store that recovers, a link that opens and mail that is carried, on a busy machine.
pub(super) const BOUND: Duration = Duration::from_secs(60);

/// What changes its version by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Broker,
    Ann,
    Bob,
    Relay,
}

/// See the module.
pub(super) struct Team {
    pub broker: Broker,
    pub ann: Node,
    pub bob: Node,
    pub relay: Relay,
    pub direct_token: String,
    pub hub_token: String,
    /// On PostgreSQL.
    pub database: Option<Database>,
}

/// A relay before the broker's hub, at one address over its lives.
pub(super) struct Relay {
    pub home: Home,
    address: SocketAddr,
    hub: SocketAddr,
    process: Option<Process>,
}

impl Team {
    /// A new one, joined, with a topic, the tokens of both HTTP callers, and everything running.
    pub(super) fn open(binary: &Binary, store: Store) -> Result<Self, FleetError> {
        let database = match store {
            Store::Sqlite => None,
            Store::Postgres => Some(Database::create()?),
        };
        let broker = Broker::start(binary, &broker_args(database.as_ref()), &[])?;
        let ann = Node::join(binary, ANN, broker.owner_invite.as_deref().unwrap_or_default())?;
        let bob = Node::join(binary, BOB, &ann.quiet(&["invite"])?)?;
        ann.quiet(&["topic", "create", super::history::TOPIC])?;
        let direct_token = ann.quiet(&["token", "create", "--as", DIRECT])?;
        let hub_token = ann.quiet(&["token", "create", "--as", "relay", "--scope", "hub"])?;
        let mut relay = Relay::new(Home::new(binary.clone())?, broker.address, &hub_token)?;
        relay.start(&[])?;
        Ok(Self { broker, ann, bob, relay, direct_token, hub_token, database })
    }

    /// kill -9 of everything that runs.
    pub(super) fn stop(&mut self) {
        self.relay.kill9();
        self.ann.kill9();
        self.bob.kill9();
        self.broker.kill9();
    }

    /// Everything's next life, of `binary`.
    pub(super) fn start(&mut self, binary: &Binary, faults: &[String]) -> Result<(), FleetError> {
        for part in [Part::Broker, Part::Ann, Part::Bob, Part::Relay] {
            self.change(part, binary, faults)?;
        }
        Ok(())
    }

    /// One part's next life, of `binary`.
    pub(super) fn change(
        &mut self,
        part: Part,
        binary: &Binary,
        faults: &[String],
    ) -> Result<(), FleetError> {
        match part {
            Part::Broker => {
                self.broker.kill9();
                self.broker.switch_to(binary);
                self.broker.restart(faults)
            }
            Part::Ann | Part::Bob => {
                let node = if part == Part::Ann { &mut self.ann } else { &mut self.bob };
                node.kill9();
                node.switch_to(binary);
                node.restart(faults)
            }
            Part::Relay => {
                self.relay.kill9();
                self.relay.home.switch_to(binary.clone());
                self.relay.start(faults)
            }
        }
    }

    /// Waits until both homes are linked and nothing waits in them; a home whose broker was away is told to try now.
    pub(super) fn await_carried(&self) -> Result<(), FleetError> {
        for node in [&self.ann, &self.bob] {
            node.door().post("/v1/meshes/home/resume", &json!({}))?;
            node.await_link()?;
        }
        crate::fleet::daemon::await_empty(&[&self.ann, &self.bob])
    }

    /// Posts as the direct caller.
    pub(super) fn post(&self, message: &Value) -> Result<Answer, FleetError> {
        let path = "/v1/meshes/home/messages";
        Ok(bearer(self.broker.address, &self.direct_token).ask("POST", path, "", message)?)
    }

    /// Asks the hub itself.
    pub(super) fn at_hub(
        &self,
        method: &str,
        path: &str,
        more: &str,
        body: &Value,
    ) -> Result<Answer, FleetError> {
        let path = format!("/hub{path}");
        Ok(bearer(self.broker.address, &self.hub_token).ask(method, &path, more, body)?)
    }
}

/// Those beyond the listener; the file is in the broker's home.
pub(super) fn broker_args(database: Option<&Database>) -> Vec<String> {
    let budget = ["--limit-member", "100000", "--limit-mesh", "1000000"].map(str::to_owned);
    let store = database.map(|database| ["--store".to_owned(), database.url()]);
    budget.into_iter().chain(store.into_iter().flatten()).collect()
}

fn bearer(address: SocketAddr, token: &str) -> Caller {
    Caller::new(address, format!("authorization: Bearer {token}\r\n"))
}

impl Relay {
    pub(super) fn new(home: Home, hub: SocketAddr, hub_token: &str) -> Result<Self, FleetError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?));
        std::fs::write(home.path().with_file_name("hub.token"), hub_token)?;
        Ok(Self { home, address, hub, process: None })
    }

    pub(super) fn kill9(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill9();
        }
    }

    pub(super) fn start(&mut self, faults: &[String]) -> Result<(), FleetError> {
        let token = self.home.path().with_file_name("hub.token");
        let args = [
            "relay".to_owned(),
            "serve".to_owned(),
            "--json".to_owned(),
            format!("--listen={}", self.address),
            format!("--upstream=http://{}/hub", self.hub),
            format!("--upstream-token-file={}", token.display()),
            "--auth-mode=relay".to_owned(),
        ];
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let process = self.home.spawn(&args, faults)?;
        ready_line(&process)?;
        self.process = Some(process);
        Ok(())
    }

    /// A write of one session under `key`.
    pub(super) fn write(&self, key: &str, body: &Value) -> Result<Answer, FleetError> {
        let token = std::fs::read_to_string(self.home.path().join("relay").join("token"))?;
        let headers = format!("statehub-relay-token: {token}\r\nstatehub-session: s1\r\n");
        let more = format!("idempotency-key: {key}\r\n");
        Ok(Caller::new(self.address, headers).ask("POST", "/progress/", &more, body)?)
    }

    /// Replays until nothing waits.
    pub(super) fn drain(&self) -> Result<(), FleetError> {
        let mut last = String::new();
        let drained = wait_for("the relay to drain", BOUND, || {
            let replayed = self.home.cli(&["relay", "outbox", "replay", "--json", "--timeout", "20"]).ok()?;
            last = format!("{:?}: {}{}", replayed.code(), replayed.stdout, replayed.stderr);
            matches!(replayed.code(), Some(0 | 2)).then_some(())
        });
        drained.map_err(|waited| FleetError::Unreadable { asked: waited.to_string(), answered: last })
    }
}
