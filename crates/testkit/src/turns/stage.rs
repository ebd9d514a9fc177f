//! What the threads of a run share.

use super::judge::Note;
use crate::bin::{Home, Options, Product};
use crate::kills::KillsError;
use crate::kills::door::Door;
use crate::wait::wait_for;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const AGENTS: [&str; 2] = ["smith", "baker"];
/// A start that recovers, on a busy machine.
const LISTEN_BOUND: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The sender sends, everybody dies.
    Killing,
    /// Nothing new is sent; what is there is worked off.
    Closing,
    Over,
}

pub(super) struct Stage<'home> {
    pub home: &'home Home,
    /// Messages acknowledged, and turns known to be ended: the sender does not run far ahead.
    pub acked: AtomicU64,
    pub ended: AtomicU64,
    logs: PathBuf,
    socket: PathBuf,
    phase: Mutex<Phase>,
    mortal: AtomicBool,
}

/// An agent's log.
pub(super) struct Log(File);

impl<'home> Stage<'home> {
    pub(super) fn open(home: &'home Home, logs: &Path) -> Result<Self, KillsError> {
        let product = Product::up(home, &Options::default())?;
        for agent in AGENTS {
            product.cli(&["agent", "add", agent])?.done();
        }
        let socket = product.ready().socket.clone();
        product.kill9();
        Ok(Self {
            home,
            acked: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            logs: logs.to_owned(),
            socket,
            phase: Mutex::new(Phase::Killing),
            mortal: AtomicBool::new(false),
        })
    }

    pub(super) fn agents(&self) -> [&'static str; 2] {
        AGENTS
    }

    pub(super) fn door(&self, acting_as: Option<&str>) -> Door {
        Door::new(self.socket.clone(), acting_as.map(str::to_owned))
    }

    /// Whether somebody listens; false when the run is over.
    pub(super) fn await_listening(&self, door: &mut Door) -> Result<bool, KillsError> {
        let look = || match door.connect() {
            Ok(()) => Some(true),
            Err(_) => (self.phase() == Phase::Over).then_some(false),
        };
        Ok(wait_for("the product to listen", LISTEN_BOUND, look)?)
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    /// Whether an agent dies when its call breaks.
    pub(super) fn is_mortal(&self) -> bool {
        self.mortal.load(Ordering::SeqCst)
    }

    pub(super) fn set_mortal(&self, mortal: bool) {
        self.mortal.store(mortal, Ordering::SeqCst);
    }

    pub(super) fn log(&self, agent: &str) -> Result<Log, KillsError> {
        let path = self.logs.join(agent);
        Ok(Log(OpenOptions::new().create(true).append(true).open(path)?))
    }

    /// Every agent's notes, each in its order.
    pub(super) fn logs(&self) -> Result<Vec<Vec<Note>>, KillsError> {
        AGENTS
            .iter()
            .map(|agent| {
                let text = std::fs::read_to_string(self.logs.join(agent)).unwrap_or_default();
                let notes = text.lines().map(|line| {
                    serde_json::from_str(line)
                        .map_err(|error| KillsError::Io(std::io::Error::other(format!("{line}: {error}"))))
                });
                notes.collect()
            })
            .collect()
    }
}

impl Log {
    /// Notes, and syncs before it returns.
    pub(super) fn note(&mut self, note: &Note) -> Result<(), KillsError> {
        let line = serde_json::to_string(note).map_err(std::io::Error::other)?;
        writeln!(self.0, "{line}")?;
        Ok(self.0.sync_data()?)
    }
}
