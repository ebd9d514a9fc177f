//! `postrider up`: started, ready, killed.

use super::{CliError, Home, Output};
use crate::process::{Channel, LineNeverCame, Orphaned, Process};
use crate::wait::WaitedTooLong;
use serde::Deserialize;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// A start that recovers a store after kill -9, on a machine whose cores are busy.
const READY_BOUND: Duration = Duration::from_secs(60);
/// Draining ends within 10 s; twice that for a busy machine.
const DOWN_BOUND: Duration = Duration::from_secs(20);

/// How to start it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Faults of a binary built with them, such as `crash:mailbox.accept.after_commit:3`.
    pub faults: Vec<String>,
    /// Arguments after `up`, beyond the home, the listener and `--json`.
    pub args: Vec<String>,
    /// More environment.
    pub env: Vec<(String, String)>,
    /// Where to listen; a free port of loopback when not given.
    pub listen: Option<String>,
}

/// The line it prints when it is ready.
#[derive(Clone, Debug, Deserialize)]
pub struct Ready {
    /// The page and the fabric door.
    pub url: String,
    /// The local door.
    pub socket: PathBuf,
    /// The home it serves.
    pub home: PathBuf,
}

/// Why it is not up.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// It could not be started.
    #[error("the binary could not be started: {0}")]
    Spawn(#[from] std::io::Error),
    /// It printed no ready line.
    #[error("`postrider up`: {0}")]
    NotReady(#[from] LineNeverCame),
    /// Its ready line lacks a field.
    #[error("the ready line cannot be read ({error}): {line}")]
    Unreadable {
        /// What it printed.
        line: String,
        /// What is wrong with it.
        error: serde_json::Error,
    },
}

/// A running product; killed on drop.
#[derive(Debug)]
pub struct Product<'home> {
    home: &'home Home,
    process: Process,
    ready: Ready,
}

impl<'home> Product<'home> {
    /// Starts it and waits for its ready line.
    pub fn up(home: &'home Home, options: &Options) -> Result<Self, UpError> {
        let process = Self::spawn(home, options)?;
        let line = process.line(Channel::Stdout, "its ready line", READY_BOUND, is_ready_line)?;
        match serde_json::from_str(&line) {
            Ok(ready) => Ok(Self { home, process, ready }),
            Err(error) => Err(UpError::Unreadable { line, error }),
        }
    }

    /// Starts it for a start that is meant to end early: at a crash point, or refused.
    pub fn spawn(home: &Home, options: &Options) -> std::io::Result<Process> {
        let mut command = home.command();
        command.args(["up", "--json", "--home"]).arg(home.path());
        command.args(["--listen", options.listen.as_deref().unwrap_or("127.0.0.1:0")]);
        command.args(&options.args).envs(options.env.iter().map(|(name, value)| (name, value)));
        if !options.faults.is_empty() {
            command.env("POSTRIDER_FAULT", options.faults.join(","));
        }
        Process::spawn(command, b"", &Orphaned::Reaped { folder: home.folder().to_owned() })
    }

    /// What its ready line said.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Runs a command against it.
    pub fn cli(&self, args: &[&str]) -> Result<Output, CliError> {
        self.home.cli(args)
    }

    /// kill -9; when it returns, the process is gone and may be started again.
    pub fn kill9(mut self) -> ExitStatus {
        self.process.kill9()
    }

    /// Ctrl-C, then waits for the drain.
    pub fn interrupt(mut self) -> Result<Output, WaitedTooLong> {
        self.process.interrupt();
        let status = self.process.wait_exit(DOWN_BOUND)?;
        Ok(Output::of(&self.process, status))
    }

    /// Waits until it ends by itself: at a crash point, or after `postrider down`.
    pub fn wait_exit(mut self, bound: Duration) -> Result<Output, WaitedTooLong> {
        let status = self.process.wait_exit(bound)?;
        Ok(Output::of(&self.process, status))
    }

    /// True until it ended.
    pub fn is_running(&mut self) -> bool {
        self.process.ended().is_none()
    }

    /// SIGSTOP.
    pub fn freeze(&mut self) {
        self.process.freeze();
    }

    /// SIGCONT.
    pub fn thaw(&mut self) {
        self.process.thaw();
    }
}

fn is_ready_line(line: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(line).is_ok_and(|value| value["event"] == "ready")
}
