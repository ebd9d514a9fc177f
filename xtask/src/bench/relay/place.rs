//! Relays of the real binary: one before an API that answers, one before nothing.

use anyhow::Context;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use testkit::bin::{Binary, Home};
use testkit::process::{Channel, Process};

/// A start, on a busy machine.
const READY: Duration = Duration::from_secs(60);
/// More than any round stores.
const ROWS_MAX: &str = "100000000";

/// A running relay; ends with its handle.
pub struct Relay {
    address: SocketAddr,
    _process: Process,
    _home: Home,
}

impl Relay {
    pub fn start(binary: &Binary, upstream: SocketAddr) -> anyhow::Result<Self> {
        let home = Home::new(binary.clone())?;
        let (upstream, listen) = (format!("http://{upstream}"), "127.0.0.1:0");
        let args =
            ["relay", "serve", "--json", "--listen", listen, "--upstream", &upstream, "--rows-max", ROWS_MAX];
        let process = home.spawn(&args, &[])?;
        let told = ready(&process)?;
        let url = told["url"].as_str().context("the relay's address")?;
        let address = url.trim_start_matches("http://").parse().with_context(|| url.to_owned())?;
        Ok(Self { address, _process: process, _home: home })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A daemon whose sends wait: its mesh's broker is away.
pub struct Daemon {
    /// Its door on the loopback.
    pub address: SocketAddr,
    /// What its door wants to see there.
    pub token: String,
    _process: Process,
    _home: Home,
}

impl Daemon {
    pub fn start(binary: &Binary) -> anyhow::Result<Self> {
        let (home, broker_home) = (Home::new(binary.clone())?, Home::new(binary.clone())?);
        let listen = format!("127.0.0.1:{}", testkit::port::free()?);
        let broker = broker_home.spawn(&["broker", "serve", "--json", "--listen", &listen], &[])?;
        let told = ready(&broker)?;
        let invite = told["owner_invite"].as_str().context("the owner's invite")?;
        // In a container the daemon would keep its loopback door closed.
        let process = home.spawn_with(&["daemon", "up", "--json"], &[], &[("POSTRIDER_TCP", "on")])?;
        ready(&process)?;
        home.cli(&["join", invite, "--node", "bench", "--person", "bench"])?.done();
        drop(broker);
        let read = |name: &str| {
            std::fs::read_to_string(home.path().join("daemon").join(name)).context(name.to_owned())
        };
        let port: u16 = read("http.port")?.trim().parse().context("the daemon's port")?;
        let token = read("local_token")?.trim().to_owned();
        Ok(Self { address: SocketAddr::from(([127, 0, 0, 1], port)), token, _process: process, _home: home })
    }
}

fn ready(process: &Process) -> anyhow::Result<Value> {
    let parsed = |line: &str| serde_json::from_str::<Value>(line).ok();
    let is_ready = |line: &str| parsed(line).is_some_and(|value| value["event"] == "ready");
    let line = process.line(Channel::Stdout, "its ready line", READY, is_ready)?;
    parsed(&line).context("a ready line")
}
