//! `postrider broker serve` and `postrider daemon up` as processes.

use super::FleetError;
use crate::bin::{Binary, Home};
use crate::kills::door::Door;
use crate::port;
use crate::process::{Channel, Process};
use crate::wait::wait_for;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// A start that recovers a store, on a busy machine.
const READY_BOUND: Duration = Duration::from_secs(60);

/// A broker at an address that stays its own over its lives.
pub(super) struct Broker {
    pub address: SocketAddr,
    /// The invite of its mesh's owner, while there is none.
    pub owner_invite: Option<String>,
    home: Home,
    args: Vec<String>,
    process: Process,
}

/// A home with its daemon, joined to the mesh.
pub(super) struct Node {
    home: Home,
    socket: std::path::PathBuf,
    process: Process,
}

impl Broker {
    /// Starts one; `args` are those beyond the listener and `--json`.
    pub(super) fn start(binary: &Binary, args: &[String], faults: &[String]) -> Result<Self, FleetError> {
        let home = Home::new(binary.clone())?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?));
        let (process, ready) = live(&home, address, args, faults)?;
        let owner_invite = ready["owner_invite"].as_str().map(str::to_owned);
        Ok(Self { address, owner_invite, home, args: args.to_vec(), process })
    }

    /// One that has a home and did not live yet.
    pub(super) fn stored(home: Home, args: Vec<String>) -> Result<Self, FleetError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?));
        let process = ended(&home)?;
        Ok(Self { address, owner_invite: None, home, args, process })
    }

    /// Its home.
    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    /// Its next life is of this binary.
    pub(super) fn switch_to(&mut self, binary: &Binary) {
        self.home.switch_to(binary.clone());
    }

    /// Its next life serves this store, in the place of the one that it was started with.
    pub(super) fn point_at(&mut self, store: &str) {
        if let Some(place) = self.place_of_store() {
            store.clone_into(&mut self.args[place]);
        }
    }

    fn place_of_store(&self) -> Option<usize> {
        let place = self.args.iter().position(|word| word == "--store")? + 1;
        (place < self.args.len()).then_some(place)
    }

    /// `broker check` of the store that it serves.
    pub(super) fn check_own(&self) -> Result<(Option<i32>, String), FleetError> {
        let store = match self.place_of_store() {
            Some(place) => self.args[place].clone(),
            None => format!("sqlite:{}", self.home.path().join("broker/ledger.db").display()),
        };
        self.check(&store)
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// kill -9, when it still runs.
    pub(super) fn kill9(&mut self) {
        self.process.kill9();
    }

    /// Stands still: what is sent to it arrives and is not read. A busy machine stops threads one by one, so this
    /// waits for the last of them.
    pub(super) fn freeze(&mut self) -> Result<(), FleetError> {
        self.process.freeze();
        let tasks = format!("/proc/{}/task", self.process.id());
        let stands = |task: std::path::PathBuf| {
            let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
            // Behind the name, which may hold anything but ends with the last bracket.
            stat.rsplit(") ").next().is_some_and(|fields| fields.starts_with('T'))
        };
        let still = || {
            let mut tasks = std::fs::read_dir(&tasks).ok()?.flatten();
            tasks.all(|task| stands(task.path())).then_some(())
        };
        Ok(wait_for("the broker to stand still", READY_BOUND, still)?)
    }

    /// Waits for `moment`; true when it ended meanwhile by itself.
    pub(super) fn ends_within(&mut self, moment: Duration) -> bool {
        self.process.wait_exit(moment).is_ok()
    }

    /// The next life, at the same address.
    pub(super) fn restart(&mut self, faults: &[String]) -> Result<(), FleetError> {
        // Somebody's outgoing connection may hold the port for a moment, and the database may be starting.
        let mut last = None;
        let started = wait_for("the broker to start again", READY_BOUND, || {
            match live(&self.home, self.address, &self.args, faults) {
                Ok((process, _)) => Some(process),
                Err(error) => {
                    last = Some(error);
                    None
                }
            }
        });
        match (started, last) {
            (Ok(process), _) => self.process = process,
            (Err(_), Some(error)) => return Err(error),
            (Err(waited), None) => return Err(waited.into()),
        }
        Ok(())
    }

    /// Everything kept of what it said on standard error.
    pub(super) fn said(&self) -> String {
        self.process.text(Channel::Stderr)
    }

    /// How it ended, when it has.
    pub(super) fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.process.ended()
    }

    /// `broker check` of a store, as its exit code and what it said.
    pub(super) fn check(&self, store: &str) -> Result<(Option<i32>, String), FleetError> {
        let output = self.home.cli(&["broker", "check", "--store", store, "--json"])?;
        Ok((output.code(), format!("{}{}", output.stdout, output.stderr)))
    }
}

fn live(
    home: &Home,
    address: SocketAddr,
    args: &[String],
    faults: &[String],
) -> Result<(Process, Value), FleetError> {
    let listen = address.to_string();
    let mut all = vec!["broker", "serve", "--json", "--listen", &listen];
    all.extend(args.iter().map(String::as_str));
    let process = home.spawn(&all, faults)?;
    let ready = ready_line(&process)?;
    Ok((process, ready))
}

impl Node {
    /// A home named `name` whose person has the same name, in by `invite`.
    pub(super) fn join(binary: &Binary, name: &str, invite: &str) -> Result<Self, FleetError> {
        let home = Home::new(binary.clone())?;
        let process = home.spawn(&["daemon", "up", "--json"], &[])?;
        let socket = socket_in(&ready_line(&process)?)?;
        home.cli(&["join", invite, "--node", name, "--person", name])?.done();
        Ok(Self { home, socket, process })
    }

    /// One that has joined and did not live yet; it has no door before its next life.
    pub(super) fn stored(home: Home) -> Result<Self, FleetError> {
        let process = ended(&home)?;
        Ok(Self { home, socket: std::path::PathBuf::new(), process })
    }

    /// Its home.
    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    /// Its next life is of this binary.
    pub(super) fn switch_to(&mut self, binary: &Binary) {
        self.home.switch_to(binary.clone());
    }

    /// kill -9, when it still runs.
    pub(super) fn kill9(&mut self) {
        self.process.kill9();
    }

    /// True once it ended, by itself or not.
    pub(super) fn has_ended(&mut self) -> bool {
        self.process.ended().is_some()
    }

    /// The next life, begun and not waited for: it may end before it is ready.
    pub(super) fn begin(&mut self, faults: &[String]) -> Result<(), FleetError> {
        self.kill9();
        self.process = self.home.spawn(&["daemon", "up", "--json"], faults)?;
        Ok(())
    }

    /// The next life, ready; its broker may be away.
    pub(super) fn restart(&mut self, faults: &[String]) -> Result<(), FleetError> {
        self.begin(faults)?;
        self.socket = socket_in(&ready_line(&self.process)?)?;
        Ok(())
    }

    /// Waits until its link is open.
    pub(super) fn await_link(&self) -> Result<(), FleetError> {
        let (mut door, mut mesh) = (self.door(), Value::Null);
        let live = || {
            mesh = door.get("/v1/health").ok()?.body["meshes"][0].clone();
            (mesh["link"] == "live").then_some(())
        };
        let opened = wait_for("the link to open", READY_BOUND, live);
        opened.map_err(|waited| FleetError::Unreadable {
            asked: waited.to_string(),
            answered: mesh.to_string(),
        })
    }

    /// Everything it printed to standard error so far, to the end when it ended.
    pub(super) fn said(&self) -> String {
        self.process.text(Channel::Stderr)
    }

    /// Waits for its end.
    pub(super) fn ends_within(&mut self, moment: Duration) -> bool {
        self.process.wait_exit(moment).is_ok()
    }

    /// A file of its own, beside its home.
    pub(super) fn file(&self, name: &str) -> std::path::PathBuf {
        self.home.path().with_file_name(name)
    }

    /// A command that must succeed; what it printed with `--quiet`.
    pub(super) fn quiet(&self, args: &[&str]) -> Result<String, FleetError> {
        let all: Vec<&str> = ["--quiet"].into_iter().chain(args.iter().copied()).collect();
        Ok(self.home.cli(&all)?.done().stdout.trim().to_owned())
    }

    /// The file of its mailbox in the mesh it joined.
    pub(super) fn mailbox(&self) -> std::path::PathBuf {
        self.home.path().join("daemon/home/mailbox.db")
    }

    /// The problems that its health tells.
    pub(super) fn problems(&self) -> Result<Vec<String>, FleetError> {
        let health = self.door().get("/v1/health")?.body;
        let problems = health["problems"].as_array().cloned().unwrap_or_default();
        Ok(problems.iter().filter_map(|problem| problem.as_str().map(str::to_owned)).collect())
    }

    /// Stands still until it is thawed.
    pub(super) fn freeze(&mut self) {
        self.process.freeze();
    }

    /// Goes on.
    pub(super) fn thaw(&mut self) {
        self.process.thaw();
    }

    /// A client of its local door.
    pub(super) fn door(&self) -> Door {
        Door::new(self.socket.clone(), None)
    }
}

/// A command that ends by itself, in the place of a life before the first.
fn ended(home: &Home) -> std::io::Result<Process> {
    home.spawn(&["--version"], &[])
}

fn socket_in(ready: &Value) -> Result<std::path::PathBuf, FleetError> {
    let socket = ready["socket"].as_str().map(Into::into);
    socket.ok_or_else(|| FleetError::Unreadable {
        asked: "the socket in the ready line".to_owned(),
        answered: ready.to_string(),
    })
}

pub(super) fn ready_line(process: &Process) -> Result<Value, FleetError> {
    let parsed = |line: &str| serde_json::from_str::<Value>(line).ok();
    let is_ready = |line: &str| parsed(line).is_some_and(|value| value["event"] == "ready");
    let line = process.line(Channel::Stdout, "its ready line", READY_BOUND, is_ready)?;
    Ok(parsed(&line).unwrap_or_default())
}
