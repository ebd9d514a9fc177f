//! A driver for the real binary: started, talked to, killed, started again, as a person or a script would.
//!
//! Invariants:
//! - A [`Home`] is a temporary folder; the binary sees it as its home *and* as the user's, so no run can touch
//!   the files of whoever runs the tests.
//! - Every `POSTRIDER_*` variable of the caller is kept from the binary; what it gets is what the test gave.
//! - A test learns what happened from what the binary printed and how it ended, never from its files.

mod binary;
mod output;
mod product;

use crate::process::{Orphaned, Process};
use crate::wait::WaitedTooLong;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

pub use binary::{BIN_VARIABLE, Binary, NoBinary, SHIPPED_VARIABLE};
pub use output::Output;
pub use product::{Options, Product, Ready, UpError};

/// One command, on a machine whose two cores are busy with other tests.
const CLI_BOUND: Duration = Duration::from_secs(60);

/// Why a command gave no output to look at.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// It could not be started.
    #[error("the binary could not be started: {0}")]
    Spawn(#[from] std::io::Error),
    /// It did not end.
    #[error("`postrider {args}`: {waited}")]
    NoEnd {
        /// The arguments.
        args: String,
        /// How long it was given.
        waited: WaitedTooLong,
    },
}

/// A home of its own for one binary; removed on drop.
#[derive(Debug)]
pub struct Home {
    binary: Binary,
    folder: TempDir,
}

impl Home {
    /// An empty one.
    pub fn new(binary: Binary) -> std::io::Result<Self> {
        // Short, because the socket's path inside it has about a hundred bytes.
        Ok(Self { binary, folder: tempfile::Builder::new().prefix("pr-").tempdir()? })
    }

    /// What is started from now on is of this binary.
    pub fn switch_to(&mut self, binary: Binary) {
        self.binary = binary;
    }

    /// The folder `--home` names.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Runs one command to its end.
    pub fn cli(&self, args: &[&str]) -> Result<Output, CliError> {
        self.cli_with(args, &[], "")
    }

    /// Runs one command with more environment and with `input` as its standard input.
    pub fn cli_with(&self, args: &[&str], env: &[(&str, &str)], input: &str) -> Result<Output, CliError> {
        let mut command = self.command();
        command.args(args).envs(env.iter().copied());
        let mut process = Process::spawn(command, input.as_bytes(), &Orphaned::EndsByItself)?;
        let waited = process.wait_exit(CLI_BOUND);
        let status = waited.map_err(|waited| CliError::NoEnd { args: args.join(" "), waited })?;
        Ok(Output::of(&process, status))
    }

    /// Starts a command that runs until somebody ends it, such as `broker serve`, with faults armed.
    pub fn spawn(&self, args: &[&str], faults: &[String]) -> std::io::Result<Process> {
        self.spawn_with(args, faults, &[])
    }

    /// The same with more environment.
    pub fn spawn_with(
        &self,
        args: &[&str],
        faults: &[String],
        env: &[(&str, &str)],
    ) -> std::io::Result<Process> {
        let mut command = self.command();
        command.args(args).envs(env.iter().copied());
        if !faults.is_empty() {
            command.env("POSTRIDER_FAULT", faults.join(","));
        }
        Process::spawn(command, b"", &Orphaned::Reaped { folder: self.folder().to_owned() })
    }

    /// Starts a command whose home lies on a disk of its own of so many MiB, seen by it alone: below
    /// `/proc/PID/root` for others. Needs the system to allow namespaces to this account.
    pub fn spawn_on_a_small_disk(&self, mib: u32, args: &[&str]) -> std::io::Result<Process> {
        std::fs::create_dir_all(self.path())?;
        let mount = format!("mount -t tmpfs -o size={mib}m,mode=0700 tmpfs \"$0\" && exec \"$@\"");
        let mut command = self.environed(Command::new("unshare"));
        command.args(["-r", "-m", "sh", "-c", &mount]).arg(self.path()).arg(self.binary.path()).args(args);
        Process::spawn(command, b"", &Orphaned::Reaped { folder: self.folder().to_owned() })
    }

    /// Starts a command that may write to the home and to nothing beside it, as a unit of the machine. Needs the system to
    /// allow namespaces to this account.
    pub fn spawn_confined_to_home(&self, args: &[&str]) -> std::io::Result<Process> {
        let binds = "mount --bind \"$0\" \"$0\" && mount --bind \"$0/home\" \"$0/home\" && \
                     mount -o remount,bind,ro \"$0\" && exec \"$@\"";
        let mut command = self.environed(Command::new("unshare"));
        command.args(["-r", "-m", "sh", "-c", binds]).arg(self.folder.path());
        command.arg(self.binary.path()).args(args);
        Process::spawn(command, b"", &Orphaned::Reaped { folder: self.folder().to_owned() })
    }

    /// Starts a command whose disk refuses, with EIO, to sync `file` from the `from`-th time on. Needs `strace`, which
    /// holds the process as a debugger does.
    pub fn spawn_whose_syncs_fail(&self, file: &Path, from: u32, args: &[&str]) -> std::io::Result<Process> {
        let mut command = self.environed(Command::new("strace"));
        // -D: the command itself is the child, with its own id, signals and exit code.
        command.args(["-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-P"]).arg(file);
        command.args(["-e", &format!("inject=fdatasync:error=EIO:when={from}+")]);
        command.arg(self.binary.path()).args(args);
        Process::spawn(command, b"", &Orphaned::Reaped { folder: self.folder().to_owned() })
    }

    /// Starts a command whose system calls are written to `file`, one a line. Needs `strace`.
    pub fn spawn_traced(&self, file: &Path, args: &[&str]) -> std::io::Result<Process> {
        let mut command = self.environed(Command::new("strace"));
        command.args(["-D", "-f", "-qq", "-o"]).arg(file).arg(self.binary.path()).args(args);
        Process::spawn(command, b"", &Orphaned::Reaped { folder: self.folder().to_owned() })
    }

    /// Starts `up` with its writes to sockets and its syncs traced into a file, each with the path or socket it is about.
    pub fn spawn_with_syncs_traced(&self, trace: &Path, args: &[String]) -> std::io::Result<Process> {
        let mut command = self.environed(Command::new("strace"));
        let calls = "trace=fsync,fdatasync,sync_file_range,write,writev,sendto,sendmsg";
        command.args(["-f", "-y", "-s", "160", "-e", calls, "-o"]).arg(trace).arg(self.binary.path());
        command
            .args(["up", "--json", "--home"])
            .arg(self.path())
            .args(["--listen", "127.0.0.1:0"])
            .args(args);
        Process::spawn(command, b"", &Orphaned::Reaped { folder: self.folder().to_owned() })
    }

    /// Runs one command with a terminal as its output, as a person does; what the terminal showed.
    pub fn terminal(&self, line: &str) -> Result<String, CliError> {
        let mut command = self.environed(Command::new("script"));
        let line = format!("{} {line}", self.binary.path().display());
        command.args(["-q", "-e", "-c", &line, "/dev/null"]).envs([("TERM", "dumb"), ("NO_COLOR", "1")]);
        let mut process = Process::spawn(command, b"", &Orphaned::EndsByItself)?;
        let waited = process.wait_exit(CLI_BOUND);
        let status = waited.map_err(|waited| CliError::NoEnd { args: line, waited })?;
        Ok(Output::of(&process, status).stdout.replace('\r', ""))
    }

    /// The binary, pointed at this home and at nothing else.
    fn command(&self) -> Command {
        self.environed(Command::new(self.binary.path()))
    }

    fn environed(&self, mut command: Command) -> Command {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("POSTRIDER_") {
                command.env_remove(name);
            }
        }
        command
            .env("POSTRIDER_HOME", self.path())
            .env("HOME", self.folder.path())
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path().join(".config"))
            .current_dir(self.folder.path());
        command
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}
