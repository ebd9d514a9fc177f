//! A private PostgreSQL: own cluster in a temporary folder, own port, durable settings as in production.
//!
//! Invariants:
//! - fsync and synchronous_commit are on: a test that passes here passes on a server that keeps its word.
//! - The server refuses root, so under root it runs as user `postgres`, else `nobody`.
//! - Trust authentication, on loopback only: whoever may reach it may reach the test process as well.

mod binaries;
mod database;

use crate::port;
use crate::process::{Channel, LineNeverCame, Orphaned, Process};
use crate::wait::{WaitedTooLong, wait_for};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

pub use binaries::{Account, Binaries, MAJOR_MIN, PACKAGE};
pub use database::{Database, URL_VARIABLE};

/// Creating a cluster or recovering one after a crash on a loaded machine of two cores.
const START_BOUND: Duration = Duration::from_secs(60);
/// Ports are picked, then bound: each try lowers the chance that somebody was faster.
const START_TRIES: u32 = 5;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No suitable binaries on this machine.
    #[error(
        "no PostgreSQL {MAJOR_MIN} or newer found in PATH or /usr/lib/postgresql; install the package `{PACKAGE}`"
    )]
    NotInstalled,
    /// Root needs another account to run it.
    #[error("PostgreSQL refuses to run as root, and neither `postgres` nor `nobody` is in /etc/passwd")]
    NoAccount,
    /// A program could not be run, or a folder not be made.
    #[error("PostgreSQL's folder or programs: {0}")]
    Io(#[from] std::io::Error),
    /// A program of PostgreSQL said no.
    #[error("{program} ended with {status}:\n{stderr}")]
    Refused {
        /// Which one.
        program: &'static str,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// What it said.
        stderr: String,
    },
    /// It never became ready, on any of the tried ports.
    #[error("PostgreSQL did not become ready: {0}")]
    NotReady(#[from] LineNeverCame),
    /// It did not end when asked to.
    #[error(transparent)]
    NotEnded(#[from] WaitedTooLong),
}

/// A server of one's own, to kill and restart at will; ended and removed on drop.
#[derive(Debug)]
pub struct Private {
    // Declared before the folder: fields drop in this order, and the server must be gone before its files are.
    server: Process,
    cluster: Cluster,
    port: u16,
}

#[derive(Debug)]
struct Cluster {
    binaries: Binaries,
    account: Option<Account>,
    folder: TempDir,
}

impl Private {
    /// Creates a cluster and starts it.
    pub fn start() -> Result<Self, StartError> {
        let cluster = Cluster::create()?;
        let mut tries = 1;
        loop {
            let port = port::free()?;
            match cluster.serve(port) {
                Ok(server) => return Ok(Self { server, cluster, port }),
                Err(StartError::NotReady(_)) if tries < START_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The superuser's way into the database `postgres`.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The superuser's way into `database`.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// A second server that streams from this one under `name`: made from a copy, and started. No commit waits for it
    /// before [`Self::set`] says so.
    pub fn standby(&self, name: &str) -> Result<Self, StartError> {
        let cluster = Cluster::empty()?;
        let source = format!("host=127.0.0.1 port={} user=postgres application_name={name}", self.port);
        let output = cluster
            .command("pg_basebackup")
            .arg("--pgdata")
            .arg(cluster.data())
            .args([
                "--write-recovery-conf",
                "--wal-method=stream",
                "--checkpoint=fast",
                "--no-sync",
                "--dbname",
            ])
            .arg(&source)
            .output()?;
        binaries::succeeded("pg_basebackup", &output)?;
        let port = port::free()?;
        let server = cluster.serve_until(port, "database system is ready to accept read-only connections")?;
        let standby = Self { server, cluster, port };
        let streams = format!(
            "EXISTS (SELECT FROM pg_stat_replication WHERE application_name = '{name}' AND state = 'streaming')"
        );
        self.await_that("the standby to stream", &streams)?;
        Ok(standby)
    }

    /// Changes a setting of the running server, for its sessions too.
    pub fn set(&self, setting: &str, value: &str) -> Result<(), StartError> {
        self.execute("postgres", &format!("ALTER SYSTEM SET {setting} = '{value}'"))?;
        self.execute("postgres", "SELECT pg_reload_conf()")
    }

    /// A standby stops hearing from its source: what is committed there from now on it does not have.
    pub fn stop_streaming(&self) -> Result<(), StartError> {
        self.set("primary_conninfo", "")?;
        self.await_that("the standby to stop streaming", "NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")
    }

    /// Commits wait for the standby `name` from now on.
    pub fn wait_for_standby(&self, name: &str) -> Result<(), StartError> {
        self.set("synchronous_standby_names", name)?;
        let holds = "EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')";
        self.await_that("the standby to be synchronous", holds)
    }

    /// A standby becomes a server of its own; done when it takes writes.
    pub fn promote(&self) -> Result<(), StartError> {
        self.execute("postgres", "SELECT pg_promote()")?;
        self.await_that("the promoted server to take writes", "NOT pg_is_in_recovery()")
    }

    fn await_that(&self, what: &str, holds: &str) -> Result<(), StartError> {
        let ask = format!("DO $$ BEGIN IF NOT ({holds}) THEN RAISE 'not yet'; END IF; END $$");
        Ok(wait_for(what, START_BOUND, || self.execute("postgres", &ask).ok())?)
    }

    /// kill -9 of the server's first process; the others notice and end.
    pub fn kill9(&mut self) {
        self.server.kill9();
    }

    /// Immediate shutdown, the manual's word for a crash that a restart recovers from.
    pub fn stop_immediately(&mut self) -> Result<(), StartError> {
        self.server.quit();
        self.server.wait_exit(START_BOUND)?;
        Ok(())
    }

    /// Starts it again on the same files and port, after [`Self::kill9`] or [`Self::stop_immediately`].
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.stop_immediately()?;
        // After a kill -9 the orphaned workers hold the shared memory for a moment, and the server says so.
        let mut last = None;
        let started =
            wait_for("PostgreSQL to start again", START_BOUND, || match self.cluster.serve(self.port) {
                Ok(server) => Some(server),
                Err(error) => {
                    last = Some(error);
                    None
                }
            });
        match (started, last) {
            (Ok(server), _) => self.server = server,
            (Err(_), Some(error)) => return Err(error),
            (Err(waited), None) => return Err(waited.into()),
        }
        Ok(())
    }

    /// Runs `sql` as the superuser in `database`.
    pub fn execute(&self, database: &str, sql: &str) -> Result<(), StartError> {
        self.cluster.binaries.psql(&self.url_of(database), sql)
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // Asked first, so that its workers end with it; the process handle kills whatever is left.
        let _late = self.stop_immediately();
    }
}

impl Cluster {
    fn empty() -> Result<Self, StartError> {
        let binaries = Binaries::find().ok_or(StartError::NotInstalled)?;
        let account = Account::for_server()?;
        let folder = tempfile::Builder::new().prefix("postrider-pg-").tempdir()?;
        if let Some(account) = &account {
            std::os::unix::fs::chown(folder.path(), Some(account.user), Some(account.group))?;
        }
        Ok(Self { binaries, account, folder })
    }

    fn create() -> Result<Self, StartError> {
        let cluster = Self::empty()?;
        let output = cluster
            .command("initdb")
            .arg("--pgdata")
            .arg(cluster.data())
            // The new files need no sync here: a machine that stops now takes this whole run with it.
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"])
            .output()?;
        binaries::succeeded("initdb", &output)?;
        Ok(cluster)
    }

    fn serve(&self, port: u16) -> Result<Process, StartError> {
        self.serve_until(port, "database system is ready to accept connections")
    }

    fn serve_until(&self, port: u16, ready: &str) -> Result<Process, StartError> {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data());
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            format!("unix_socket_directories={}", self.folder.path().display()),
            "fsync=on".to_owned(),
            "max_connections=200".to_owned(),
            "shared_buffers=64MB".to_owned(),
            "logging_collector=off".to_owned(),
            "log_destination=stderr".to_owned(),
            "lc_messages=C".to_owned(),
        ];
        for setting in settings {
            command.args(["-c", &setting]);
        }
        let orphaned = Orphaned::Reaped { folder: self.folder.path().to_owned() };
        let server = Process::spawn(command, b"", &orphaned)?;
        server.line(Channel::Stderr, "PostgreSQL to be ready", START_BOUND, |line| line.contains(ready))?;
        Ok(server)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.binaries.path(program));
        // The caller's folder may be closed to the other account, and a PG* variable would redirect the programs.
        command.current_dir(self.folder.path()).env_clear().env("LC_ALL", "C").env("PATH", "/usr/bin:/bin");
        if let Some(account) = &self.account {
            command.uid(account.user).gid(account.group);
        }
        command
    }

    fn data(&self) -> PathBuf {
        Path::join(self.folder.path(), "data")
    }
}
