//! Hub and relay as processes, by one settable clock.

use super::caller::Caller;
use crate::bin::{Binary, Home};
use crate::fleet::FleetError;
use crate::fleet::servers::{Broker, Node, ready_line};
use crate::kills::door::Answer;
use crate::port;
use crate::process::Process;
use crate::wait::wait_for;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// Everything that waits has gone, on a busy machine.
const DRAIN_BOUND: Duration = Duration::from_secs(180);

/// What is wrong with each of the two.
#[derive(Clone, Debug, Default)]
pub(super) struct StageFaults {
    pub(super) hub: Vec<String>,
    pub(super) relay: Vec<String>,
}

pub(super) struct Stage {
    pub hub: Broker,
    pub relay: Process,
    pub relay_address: SocketAddr,
    pub local_token: String,
    hub_token: String,
    home: Home,
    faults: StageFaults,
    token_file: PathBuf,
    relay_args: Vec<String>,
    clock: PathBuf,
    files: TempDir,
    _node: Node,
}

impl Stage {
    pub(super) fn open(binary: &Binary, mut faults: StageFaults) -> Result<Self, FleetError> {
        let files = TempDir::new()?;
        let clock = files.path().join("clock");
        std::fs::write(&clock, "0")?;
        let ahead = format!("clock:{}", clock.display());
        faults.hub.push(ahead.clone());
        faults.relay.push(ahead);
        let store = format!("sqlite:{}", files.path().join("ledger.db").display());
        let budget = ["--store", &store, "--limit-member", "100000", "--limit-mesh", "100000"];
        let hub = Broker::start(binary, &budget.map(str::to_owned), &faults.hub)?;
        let node = Node::join(binary, "starter", hub.owner_invite.as_deref().unwrap_or_default())?;
        let hub_token = node.quiet(&["token", "create", "--as", "relay", "--scope", "hub"])?;
        let token_file = files.path().join("token");
        std::fs::write(&token_file, &hub_token)?;
        let relay_address = SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?));
        let relay_args = vec![
            "relay".to_owned(),
            "serve".to_owned(),
            "--json".to_owned(),
            format!("--listen={relay_address}"),
            format!("--upstream=http://{}/hub", hub.address),
            format!("--upstream-token-file={}", token_file.display()),
            "--auth-mode=relay".to_owned(),
            "--drain-rate=5000".to_owned(),
            "--answer-timeout=5".to_owned(),
        ];
        let home = Home::new(binary.clone())?;
        let relay = live(&home, &relay_args, &faults.relay)?;
        let local_token = std::fs::read_to_string(home.path().join("relay").join("token"))?;
        Ok(Self {
            hub,
            relay,
            relay_address,
            local_token,
            hub_token,
            home,
            faults,
            token_file,
            relay_args,
            clock,
            files,
            _node: node,
        })
    }

    pub(super) fn start_hub(&mut self) -> Result<(), FleetError> {
        self.hub.restart(&self.faults.hub)
    }

    pub(super) fn start_relay(&mut self) -> Result<(), FleetError> {
        self.relay = live(&self.home, &self.relay_args, &self.faults.relay)?;
        Ok(())
    }

    /// Lets days pass for both.
    pub(super) fn pass_days(&self, days: u64) -> Result<(), FleetError> {
        let fresh = self.files.path().join("clock.new");
        std::fs::write(&fresh, (days * 86_400_000_000).to_string())?;
        // Renamed into place: a clock read half-written would be no clock.
        Ok(std::fs::rename(fresh, &self.clock)?)
    }

    /// Replays until nothing waits that could leave.
    pub(super) fn drain(&self) -> Result<(), FleetError> {
        let mut last = String::new();
        let drained = wait_for("the relay to drain", DRAIN_BOUND, || {
            let replayed = self.home.cli(&["relay", "outbox", "replay", "--json", "--timeout", "20"]).ok()?;
            last = format!("{:?}: {}{}", replayed.code(), replayed.stdout, replayed.stderr);
            matches!(replayed.code(), Some(0 | 2)).then_some(())
        });
        drained.map_err(|waited| FleetError::Unreadable { asked: waited.to_string(), answered: last })
    }

    pub(super) fn cli(&self, args: &[&str]) -> Result<(), FleetError> {
        self.home.cli(args)?.done();
        Ok(())
    }

    /// One replay, with the token that the relay has; its exit code.
    pub(super) fn replay_once(&self) -> Result<Option<i32>, FleetError> {
        let token = format!("--upstream-token-file={}", self.token_file.display());
        let args = ["relay", "outbox", "replay", "--json", "--timeout", "20", &token];
        Ok(self.home.cli(&args)?.code())
    }

    /// From now on the hub refuses the relay's credential.
    pub(super) fn break_token(&self) -> Result<(), FleetError> {
        Ok(std::fs::write(&self.token_file, "a-credential-that-nobody-gave")?)
    }

    /// From the relay's next start on the hub takes its credential again.
    pub(super) fn mend_token(&self) -> Result<(), FleetError> {
        Ok(std::fs::write(&self.token_file, &self.hub_token)?)
    }

    pub(super) fn status(&self) -> Result<Value, FleetError> {
        let status = self.home.cli(&["relay", "outbox", "status", "--json"])?.done();
        Ok(status.json().into_iter().next().unwrap_or_default())
    }

    /// The state of the envelope of `key`; nothing when there is none.
    pub(super) fn inspect(&self, key: &str) -> Result<Option<String>, FleetError> {
        let found = self.home.cli(&["relay", "outbox", "inspect", key, "--json"])?;
        if found.code() == Some(0) {
            return Ok(found.json().first().and_then(|row| row["status"].as_str().map(str::to_owned)));
        }
        if found.stdout.contains("not_found") || found.stderr.contains("not_found") {
            return Ok(None);
        }
        Err(FleetError::Unreadable { asked: format!("inspect {key}"), answered: found.stderr })
    }

    /// A caller of the relay in one session.
    pub(super) fn caller(&self, session: &str) -> Caller {
        let token = &self.local_token;
        let headers = format!("statehub-relay-token: {token}\r\nstatehub-session: {session}\r\n");
        Caller::new(self.relay_address, headers)
    }

    /// Envelopes of one state, as the operator lists them.
    pub(super) fn listed(&self, status: &str) -> Result<Vec<Value>, FleetError> {
        let args = ["relay", "outbox", "list", "--json", "--limit", "1000", "--status", status];
        let listed = self.home.cli(&args)?.done();
        Ok(listed.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// A request to the hub itself.
    pub(super) fn at_hub(&self, method: &str, path: &str, body: &Value) -> Result<Answer, FleetError> {
        self.at_hub_with(method, path, "", body)
    }

    /// The same with whole header lines.
    pub(super) fn at_hub_with(
        &self,
        method: &str,
        path: &str,
        more: &str,
        body: &Value,
    ) -> Result<Answer, FleetError> {
        let headers = format!("authorization: Bearer {}\r\n", self.hub_token);
        Ok(Caller::new(self.hub.address, headers).ask(method, &format!("/hub{path}"), more, body)?)
    }

    /// A request through the relay.
    pub(super) fn at_relay(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, FleetError> {
        let headers = format!("statehub-relay-token: {}\r\n", self.local_token);
        Ok(Caller::new(self.relay_address, headers).ask(method, path, "", body.unwrap_or(&Value::Null))?)
    }
}

fn live(home: &Home, args: &[String], faults: &[String]) -> Result<Process, FleetError> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let process = home.spawn(&args, faults)?;
    ready_line(&process)?;
    Ok(process)
}
