//! `cargo xtask bench NAME`: measured values and ratios of one run.
//!
//! To add one: a file in `bench/` with `pub fn run(request: &Request) -> anyhow::Result<Table>`, and its line in
//! [`BENCHES`]. Benchmarks run optimised: the command builds itself again in the `dist` profile first.

mod against;
mod broker;
mod callers;
mod chat;
mod connection;
mod cpu;
mod daemon;
mod engine;
mod limits;
mod memory;
mod peer;
mod relay;
mod table;

use crate::Ending;
use crate::build;
use crate::facts::Facts;
use crate::revision::Revision;
use crate::workspace::{Workspace, cargo};
use anyhow::Context;
use std::io::IsTerminal;
use std::process::Command;
use tempfile::TempDir;
use testkit::bin::Binary;

pub use against::{Against, Comparison};
pub use ledger_rounds::{Measured, median};
pub use limits::syncs_per_second;
pub use table::{Bar, Row, Table};

/// How often a comparison measures each build when the command line does not say: even, so that each goes first as often
/// as the other.
pub const ROUNDS: u64 = 8;

/// One benchmark.
pub struct Bench {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it measures, in one sentence.
    pub about: &'static str,
    /// Runs it.
    pub run: fn(&Request<'_>) -> anyhow::Result<Table>,
    /// Compares this checkout with another commit, where that is possible.
    pub against: Option<fn(&Against<'_>) -> anyhow::Result<Comparison>>,
}

/// What the command line asks for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// See that it runs, with figures that mean nothing.
    pub quick: bool,
    /// Also write the page.
    pub save: bool,
    /// Compare with this commit.
    pub against: Option<String>,
    /// Compare only these rows of the bars.
    pub rows: Vec<String>,
    /// How often each build is measured in a comparison.
    pub rounds: u64,
}

/// What a benchmark is given.
pub struct Request<'workspace> {
    /// Where it runs.
    pub workspace: &'workspace Workspace,
    /// To see that it runs: few rounds, small files, figures that mean nothing.
    pub quick: bool,
}

/// One line each.
pub const BENCHES: &[Bench] = &[
    Bench {
        name: "chat",
        about: "Publish to follower against Redis and JetStream, fan-out against a bare server, a long conversation.",
        run: chat::run,
        against: None,
    },
    Bench {
        name: "limits",
        about: "What this machine's disk allows: bare overwrite and append, one fdatasync each.",
        run: limits::run,
        against: None,
    },
    Bench {
        name: "engine",
        about: "Durable one-row commits at 1, 16 and 64 callers, against a transaction per call; growth to 5 M rows.",
        run: engine::run,
        against: None,
    },
    Bench {
        name: "daemon",
        about: "Sends at a real daemon's socket against NATS and Redis, how a backlog drains, growth to 5 M rows.",
        run: daemon::run,
        against: Some(daemon::against),
    },
    Bench {
        name: "broker",
        about: "Durable accepts with 10 fan-out rows on each store, against Redis and PostgreSQL peers; 1 M and 5 M ids.",
        run: broker::run,
        against: Some(broker::against),
    },
    Bench {
        name: "relay",
        about: "A relay before an API against nginx, and receipts while the API is away against sends at a daemon.",
        run: relay::run,
        against: None,
    },
];

/// Runs the benchmark `name` and prints its table; writes a page only when asked to.
pub fn run(workspace: &Workspace, name: Option<&str>, asked: &Asked) -> anyhow::Result<Ending> {
    let Some(bench) = BENCHES.iter().find(|bench| Some(bench.name) == name) else {
        match name {
            Some(name) => eprintln!("there is no benchmark `{name}`"),
            None => eprintln!("which benchmark?"),
        }
        eprintln!("{}", list());
        return Ok(Ending::Usage);
    };
    if asked.against.is_some() && bench.against.is_none() {
        eprintln!("`bench {}` compares no commits; those that do: {}", bench.name, comparing().join(", "));
        return Ok(Ending::Usage);
    }
    // A quick run's figures mean nothing, so nothing needs to be built for them.
    if cfg!(debug_assertions) && !asked.quick {
        return optimised(workspace, bench, asked);
    }
    let facts = Facts::gather(&workspace.root);
    let request = Request { workspace, quick: asked.quick };
    if let (Some(commit), Some(compare)) = (&asked.against, bench.against) {
        let other = Revision::find(&workspace.root, commit)?;
        let rows = asked.rows.clone();
        let against = Against { request: &request, other, rows, rounds: asked.rounds };
        println!("{}", compare(&against)?.page(bench.name, &against.other, &facts));
        return Ok(Ending::Holds);
    }
    let table = (bench.run)(&request)?;
    let page = table.page(bench.name, bench.about, &facts);
    println!("{page}");
    if asked.save {
        let path = workspace.root.join("docs/bench").join(format!("{}.md", bench.name));
        std::fs::create_dir_all(path.with_file_name("")).context("docs/bench")?;
        std::fs::write(&path, page).with_context(|| path.display().to_string())?;
    }
    Ok(if table.bars_met() { Ending::Holds } else { Ending::Broken })
}

fn comparing() -> Vec<&'static str> {
    BENCHES.iter().filter(|bench| bench.against.is_some()).map(|bench| bench.name).collect()
}

/// The names, a line each.
pub fn list() -> String {
    let lines: Vec<String> =
        BENCHES.iter().map(|bench| format!("  {:<14} {}", bench.name, bench.about)).collect();
    format!("Benchmarks:\n{}", lines.join("\n"))
}

impl Request<'_> {
    /// The binary to measure: one that is named, so that a run costs no build, or one built for it.
    pub fn binary(&self) -> anyhow::Result<Binary> {
        let named = if self.quick { Binary::from_env() } else { Binary::shipped() };
        if let Ok(named) = named {
            return Ok(named);
        }
        // What a quick run measures means nothing, so it may use what proofs have built.
        let built = if self.quick { build::faulted } else { build::dist };
        Ok(Binary::at(built(self.workspace)?))
    }

    /// A folder on the disk that holds the build, removed afterwards: a temporary folder may live in memory,
    /// where a sync costs nothing and proves nothing.
    pub fn folder(&self) -> anyhow::Result<TempDir> {
        let parent = self.workspace.target.join("bench");
        std::fs::create_dir_all(&parent).context("target/bench")?;
        tempfile::tempdir_in(parent).context("target/bench")
    }
}

/// Tells whoever waits at a terminal what is measured now: a run takes minutes and prints its table at the end.
fn measuring(what: impl std::fmt::Display) {
    if std::io::stderr().is_terminal() {
        eprintln!("   {what}");
    }
}

/// The most memory this process ever held, where the system tells.
fn memory_peak_mib() -> Option<f64> {
    status_mib("VmHWM:")
}

/// The memory this process holds now, where the system tells.
fn memory_mib() -> Option<f64> {
    status_mib("VmRSS:")
}

fn status_mib(field: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1024.0)
}

/// The same command, built in the `dist` profile.
fn optimised(workspace: &Workspace, bench: &Bench, asked: &Asked) -> anyhow::Result<Ending> {
    let mut command = Command::new(cargo());
    command.args(["run", "--profile", "dist", "--package", "xtask", "--", "bench", bench.name]);
    command.args(asked.save.then_some("--save"));
    if let Some(commit) = &asked.against {
        command.args(["--against", commit, "--rounds", &asked.rounds.to_string()]);
        if !asked.rows.is_empty() {
            command.args(["--rows", &asked.rows.join(",")]);
        }
    }
    let status = command.current_dir(&workspace.root).status().context("cargo cannot be run")?;
    Ok(if status.success() { Ending::Holds } else { Ending::Broken })
}
