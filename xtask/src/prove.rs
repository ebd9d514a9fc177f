//! `cargo xtask prove NAME`: the larger proofs, each with its control.
//!
//! To add one: a file in `prove/` with `pub fn run(request: &Request) -> anyhow::Result<Findings>`, and its line in
//! [`PROOFS`]. Nothing else: list, help, report, page and exit code follow from the line.

mod agents;
mod brokers;
mod chat;
mod checker;
mod daemon;
mod explain;
mod hostile;
mod kills;
mod mcp;
mod model;
mod power_loss;
mod races;
mod relay;
mod report;
mod turns;

use crate::facts::Facts;
use crate::workspace::Workspace;
use crate::{Ending, build};
use anyhow::Context;
use std::path::PathBuf;
use testkit::bin::{BIN_VARIABLE, Binary};

pub use report::{Control, Findings, Report};

/// The seed of a run that names none: every machine begins with the same one.
pub const SEED: u64 = 1;

/// One proof.
pub struct Proof {
    /// Its name on the command line and of its page.
    pub name: &'static str,
    /// What it shows, in one sentence.
    pub about: &'static str,
    /// What `--scale` counts.
    pub unit: &'static str,
    /// How much of it is run when nobody says otherwise.
    pub scale: u64,
    /// Runs it.
    pub run: fn(&Request<'_>) -> anyhow::Result<Findings>,
}

/// What a proof is given.
pub struct Request<'workspace> {
    /// How much, in the proof's unit.
    pub scale: u64,
    /// Decides everything that is random.
    pub seed: u64,
    /// Where it runs.
    pub workspace: &'workspace Workspace,
}

/// One line each.
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "agents",
        about: "Two agents under the command adapter keep their conversation through kills of everything.",
        unit: "messages",
        scale: 1_000,
        run: agents::run,
    },
    Proof {
        name: "brokers",
        about: "Two brokers over one PostgreSQL and one Redis, killed in turn, lose nothing and double nothing.",
        unit: "seconds",
        scale: 300,
        run: brokers::run,
    },
    Proof {
        name: "chat",
        about: "Everybody who follows a conversation sees each message once and in order, across reconnects, on each store.",
        unit: "messages",
        scale: 100_000,
        run: chat::run,
    },
    Proof {
        name: "checker",
        about: "The history checker is silent on legal histories and names every planted bug.",
        unit: "histories",
        scale: 200,
        run: checker::run,
    },
    Proof {
        name: "daemon",
        about: "A daemon dead in every state of a row, 8 days without a broker, or with one that flaps, keeps its word.",
        unit: "seconds of flapping",
        scale: 300,
        run: daemon::run,
    },
    Proof {
        name: "hostile",
        about: "No call that can be invented from the broker's document gives a 500, a 502, a panic or a lost connection.",
        unit: "calls",
        scale: 20_000,
        run: hostile::run,
    },
    Proof {
        name: "explain",
        about: "Explain says of every id what the driver's own log says, and of ids never sent that they were not.",
        unit: "histories",
        scale: 300,
        run: explain::run,
    },
    Proof {
        name: "kills",
        about: "The whole product, killed at every crash point and at random, loses nothing and doubles nothing.",
        unit: "kills",
        scale: 500,
        run: kills::run,
    },
    Proof {
        name: "mcp",
        about: "The official clients list and call every tool; a call that is cut off and made again gives one message.",
        unit: "cut calls",
        scale: 200,
        run: mcp::run,
    },
    Proof {
        name: "model",
        about: "The rules of outbox, admission, operator and receipts hold in every state of small worlds.",
        unit: "days",
        scale: 15,
        run: model::run,
    },
    Proof {
        name: "power-loss",
        about: "An acknowledged commit survives a power loss at any moment of the engine's writes and syncs.",
        unit: "commits",
        scale: 300,
        run: power_loss::run,
    },
    Proof {
        name: "races",
        about: "Of 64 copies of one id at once, one is accepted, on each store; each text is paid for at most once.",
        unit: "ids a store",
        scale: 10_000,
        run: races::run,
    },
    Proof {
        name: "relay",
        about: "Writes through a relay over outages, with kill -9 of relay and hub and 15 days offline, are applied once.",
        unit: "writes",
        scale: 100_000,
        run: relay::run,
    },
    Proof {
        name: "turns",
        about: "Agents and daemon, killed at every point of a turn: one first attempt a message, reruns marked, none lost.",
        unit: "deaths of the daemon",
        scale: 300,
        run: turns::run,
    },
];

/// Runs the proof `name`, prints its report and writes its page.
pub fn run(
    workspace: &Workspace,
    name: Option<&str>,
    scale: Option<u64>,
    seed: u64,
) -> anyhow::Result<Ending> {
    let Some(proof) = find(name) else { return Ok(unknown(name)) };
    let report = proof.report(workspace, scale.unwrap_or(proof.scale), seed)?;
    let page = workspace.root.join("docs/proof").join(format!("{}.md", proof.name));
    std::fs::create_dir_all(page.with_file_name("")).context("docs/proof")?;
    std::fs::write(&page, report.to_string()).with_context(|| page.display().to_string())?;
    println!("{report}");
    println!("written to {}", workspace.relative(&page).display());
    Ok(if report.holds() { Ending::Holds } else { Ending::Broken })
}

/// The proof of that name.
pub fn find(name: Option<&str>) -> Option<&'static Proof> {
    PROOFS.iter().find(|proof| Some(proof.name) == name)
}

/// The names, a line each.
pub fn list() -> String {
    let line =
        |proof: &Proof| format!("  {:<14} {} [{} {}]", proof.name, proof.about, proof.scale, proof.unit);
    let lines: Vec<String> = PROOFS.iter().map(line).collect();
    format!("Proofs:\n{}", lines.join("\n"))
}

pub(crate) fn unknown(name: Option<&str>) -> Ending {
    match name {
        Some(name) => eprintln!("there is no proof `{name}`"),
        None => eprintln!("which proof?"),
    }
    eprintln!("{}", list());
    Ending::Usage
}

/// A binary that was not built by the run may be of another commit and another profile; its page says so.
const NAMED_BINARY: &str = "one that `POSTRIDER_BIN` named: the commit above is the harness's";

impl Proof {
    /// Runs it and puts the facts above what it found.
    pub fn report(&self, workspace: &Workspace, scale: u64, seed: u64) -> anyhow::Result<Report> {
        let facts = Facts::gather(&workspace.root);
        let mut findings = (self.run)(&Request { scale, seed, workspace })?;
        if std::env::var_os(BIN_VARIABLE).is_some() {
            findings.figures.insert(0, ("binary".to_owned(), NAMED_BINARY.to_owned()));
        }
        let scale = format!("{scale} {}", self.unit);
        Ok(Report { name: self.name, about: self.about, scale, seed, facts, findings })
    }
}

impl Request<'_> {
    /// The product's binary with faults: the one `POSTRIDER_BIN` names, else an optimised one, built when it is not
    /// up to date.
    pub fn faulted_binary(&self) -> anyhow::Result<PathBuf> {
        match std::env::var_os(BIN_VARIABLE) {
            Some(_) => Ok(Binary::from_env()?.path().to_owned()),
            None => build::faulted(self.workspace),
        }
    }
}
