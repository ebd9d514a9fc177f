//! A real daemon, joined to a mesh whose broker is away until the backlog shall drain.

use super::door::{Ids, Sender};
use super::{Measured, Row, Table, round as all_at_once};
use anyhow::{Context, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::bin::{Binary, Home};
use testkit::process::{Channel, Process};
use testkit::stopwatch::Stopwatch;
use testkit::wait_for;

/// A start, on a busy machine.
const READY: Duration = Duration::from_secs(60);
/// A backlog of millions drains within this.
const DRAINED: Duration = Duration::from_secs(1_200);
/// Nothing a benchmark sends is over a budget.
const BUDGET: &str = "1000000";

/// One home with a daemon, and the broker of its mesh.
pub struct Place {
    home: Home,
    daemon: Process,
    socket: PathBuf,
    broker_home: Home,
    listen: String,
}

impl Place {
    /// Joined, and the broker gone again.
    pub fn open(binary: Binary) -> anyhow::Result<Self> {
        let (home, broker_home) = (Home::new(binary.clone())?, Home::new(binary)?);
        let listen = format!("127.0.0.1:{}", testkit::port::free()?);
        let (broker, told) = serve(&broker_home, &listen)?;
        let invite = told["owner_invite"].as_str().context("the owner's invite")?;
        let (daemon, socket) = up(&home)?;
        home.cli(&["join", invite, "--node", "bench", "--person", "bench"])?.done();
        drop(broker);
        Ok(Self { home, daemon, socket, broker_home, listen })
    }

    /// One round of sends.
    pub async fn round(&self, callers: usize, bytes: usize, ids: Ids) -> anyhow::Result<Measured> {
        let mut senders = Vec::with_capacity(callers);
        for number in 0..callers {
            senders.push(Sender::connect(&self.socket, number, bytes, ids)?);
        }
        all_at_once(senders).await
    }

    /// The broker comes back, and what waits is carried.
    pub fn drain(&mut self, table: &mut Table) -> anyhow::Result<()> {
        let waiting = self.waiting()?;
        let watch = Stopwatch::start();
        let (_broker, _) = serve(&self.broker_home, &self.listen)?;
        let resumed = self.home.cli(&["mesh", "resume", "home"])?;
        ensure!(resumed.code() == Some(0), "{resumed:?}");
        wait_for("an outbox without waiting rows", DRAINED, || (self.waiting().ok()? == 0).then_some(()))?;
        let rate = waiting as f64 / watch.elapsed().as_secs_f64();
        table.push(Row::measured("a backlog that drains: rows", waiting as f64, ""));
        table.push(Row::measured("a backlog drains to a broker on this machine", rate, "/s"));
        Ok(())
    }

    /// Killed and started again: the time until a send is accepted.
    pub fn restart(&mut self) -> anyhow::Result<Duration> {
        self.daemon.kill9();
        let watch = Stopwatch::start();
        (self.daemon, self.socket) = up(&self.home)?;
        self.home_send()?;
        Ok(watch.elapsed())
    }

    /// The daemon's memory, now and at its peak, in MiB.
    pub fn memory_mib(&self) -> Option<(f64, f64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.daemon.id())).ok()?;
        let of = |field: &str| -> Option<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
        };
        Some((of("VmRSS:")?, of("VmHWM:")?))
    }

    /// The mailbox's file.
    pub fn mailbox(&self) -> PathBuf {
        self.home.path().join("daemon/home/mailbox.db")
    }

    /// The size of the mailbox's log, in MiB.
    pub fn log_mib(&self) -> f64 {
        let log = self.mailbox().with_extension("db-wal");
        std::fs::metadata(log).map_or(0.0, |found| found.len() as f64 / (1024.0 * 1024.0))
    }

    /// Stops the daemon, so that its file is nobody's.
    pub fn stop(&mut self) {
        self.daemon.kill9();
    }

    fn home_send(&self) -> anyhow::Result<()> {
        let stream = std::os::unix::net::UnixStream::connect(&self.socket)?;
        let (mut writer, body) = (&stream, r##"{"to":"#first","body":"first"}"##);
        let request = format!(
            "POST /v1/send HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{body}",
            body.len()
        );
        std::io::Write::write_all(&mut writer, request.as_bytes())?;
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut &stream, &mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        Ok(())
    }

    fn waiting(&self) -> anyhow::Result<u64> {
        let health = self.home.cli(&["--json", "status"])?.done().json();
        let outbox = &health.first().context("a health")?["meshes"][0]["outbox"];
        let count = |state: &str| outbox[state].as_u64().with_context(|| format!("{outbox}"));
        Ok(count("pending")? + count("inflight")?)
    }
}

fn serve(home: &Home, listen: &str) -> anyhow::Result<(Process, Value)> {
    let args =
        ["broker", "serve", "--json", "--listen", listen, "--limit-member", BUDGET, "--limit-mesh", BUDGET];
    let process = home.spawn(&args, &[])?;
    let told = ready(&process)?;
    Ok((process, told))
}

fn up(home: &Home) -> anyhow::Result<(Process, PathBuf)> {
    let process = home.spawn(&["daemon", "up", "--json"], &[])?;
    let told = ready(&process)?;
    let socket = told["socket"].as_str().context("the socket")?;
    Ok((process, Path::new(socket).to_owned()))
}

fn ready(process: &Process) -> anyhow::Result<Value> {
    let parsed = |line: &str| serde_json::from_str::<Value>(line).ok();
    let is_ready = |line: &str| parsed(line).is_some_and(|value| value["event"] == "ready");
    let line = process.line(Channel::Stdout, "its ready line", READY, is_ready)?;
    parsed(&line).context("a ready line")
}
