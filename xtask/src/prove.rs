//! `cargo xtask prove NAME`: the larger proofs, each with its control.
//!
//! To add one: a file in `prove/` with `pub fn run(request: &Request) -> anyhow::Result<Findings>`, and its line in
//! [`PROOFS`]. Nothing else: list, help, report, page and exit code follow from the line.

mod agents;
mod brokers;
mod chat;
mod checker;
mod daemon;
mod disk;
mod explain;
mod hostile;
mod kills;
mod mcp;
mod model;
mod power_loss;
mod pressure;
mod races;
mod relay;
mod report;
mod standing;
mod turns;
mod upgrade;

use crate::facts::Facts;
use crate::workspace::Workspace;
use crate::{Ending, build};
use anyhow::Context;
use std::path::PathBuf;
use testkit::bin::{BIN_VARIABLE, Binary};

pub use report::{Control, Findings, Report};
pub use standing::{Standing, standings};

/// The seed of a run that names none: every machine begins with the same one.
pub const SEED: u64 = 1;

/// One proof.
pub struct Proof {
    /// Its name on the command line and of its page.
    pub name: &'static str,
    /// What it shows, in one sentence.
    pub about: &'static str,
    /// The crates whose change makes its page old.
    pub covers: &'static [&'static str],
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

/// What `broker serve` is made of, on either store.
const BROKER: &[&str] = &["model", "wire", "sqlite", "ledger", "net", "broker", "postrider"];
/// What `up` is made of, without a relay.
const NODE_AND_BROKER: &[&str] =
    &["model", "wire", "sqlite", "mailbox", "ledger", "net", "daemon", "broker", "postrider"];

/// What has files of its own or reads them.
const EVERYTHING_STORED: &[&str] =
    &["model", "wire", "sqlite", "mailbox", "ledger", "net", "daemon", "broker", "relay", "postrider"];

/// One line each.
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "agents",
        about: "Two agents under the command adapter keep their conversation through kills of everything.",
        covers: NODE_AND_BROKER,
        unit: "messages",
        scale: 1_000,
        run: agents::run,
    },
    Proof {
        name: "brokers",
        about: "Two brokers over one PostgreSQL and one Redis, with clocks apart, killed in turn or failed over, lose and double nothing.",
        covers: BROKER,
        unit: "seconds",
        scale: 300,
        run: brokers::run,
    },
    Proof {
        name: "chat",
        about: "Everybody who follows a conversation sees each message once and in order, across reconnects, on each store.",
        covers: BROKER,
        unit: "messages",
        scale: 100_000,
        run: chat::run,
    },
    Proof {
        name: "checker",
        about: "The history checker is silent on legal histories and names every planted bug.",
        covers: &["testkit"],
        unit: "histories",
        scale: 200,
        run: checker::run,
    },
    Proof {
        name: "daemon",
        about: "A daemon dead in every state of a row, 8 days without a broker, or with one that flaps, keeps its word.",
        covers: NODE_AND_BROKER,
        unit: "seconds of flapping",
        scale: 300,
        run: daemon::run,
    },
    Proof {
        name: "disk",
        about: "Whatever act of a failing disk fails, no acknowledged request is lost and no refused one is stored.",
        covers: &[
            "model",
            "wire",
            "sqlite",
            "mailbox",
            "ledger",
            "net",
            "daemon",
            "broker",
            "relay",
            "postrider",
        ],
        unit: "faults",
        scale: 2_400,
        run: disk::run,
    },
    Proof {
        name: "hostile",
        about: "No call that can be invented from the broker's document gives a 500, a 502, a panic or a lost connection.",
        covers: BROKER,
        unit: "calls",
        scale: 20_000,
        run: hostile::run,
    },
    Proof {
        name: "explain",
        about: "Explain says of every id what the driver's own log says, and of ids never sent that they were not.",
        covers: EVERYTHING_STORED,
        unit: "histories",
        scale: 300,
        run: explain::run,
    },
    Proof {
        name: "kills",
        about: "The whole product, killed at every crash point and at random, loses nothing and doubles nothing.",
        covers: NODE_AND_BROKER,
        unit: "kills",
        scale: 500,
        run: kills::run,
    },
    Proof {
        name: "mcp",
        about: "The official clients list and call every tool; a call that is cut off and made again gives one message.",
        covers: &[
            "model",
            "wire",
            "sqlite",
            "mailbox",
            "ledger",
            "net",
            "daemon",
            "broker",
            "mcp",
            "postrider",
        ],
        unit: "cut calls",
        scale: 200,
        run: mcp::run,
    },
    Proof {
        name: "model",
        about: "The rules of outbox, admission, operator and receipts hold in every state of small worlds.",
        covers: &["model", "testkit"],
        unit: "days",
        scale: 15,
        run: model::run,
    },
    Proof {
        name: "power-loss",
        about: "An acknowledged commit survives a power loss at any moment of the engine's writes and syncs.",
        covers: &["sqlite", "testkit"],
        unit: "commits",
        scale: 300,
        run: power_loss::run,
    },
    Proof {
        name: "pressure",
        about: "A foreign reader of the files and busy programs slow the product within bounds; a full log says so by name.",
        covers: NODE_AND_BROKER,
        unit: "seconds a condition",
        scale: 60,
        run: pressure::run,
    },
    Proof {
        name: "races",
        about: "Of 64 copies of one id at once, one is accepted, on each store; each text is paid for at most once.",
        covers: BROKER,
        unit: "ids a store",
        scale: 10_000,
        run: races::run,
    },
    Proof {
        name: "relay",
        about: "Writes through a relay over outages, with kill -9 of relay and hub and 15 days offline, are applied once.",
        covers: &["model", "wire", "sqlite", "mailbox", "ledger", "net", "broker", "relay", "postrider"],
        unit: "writes",
        scale: 100_000,
        run: relay::run,
    },
    Proof {
        name: "turns",
        about: "Agents and daemon, killed at every point of a turn: one first attempt a message, reruns marked, none lost.",
        covers: NODE_AND_BROKER,
        unit: "deaths of the daemon",
        scale: 300,
        run: turns::run,
    },
    Proof {
        name: "upgrade",
        about: "A team goes on under a new binary, all at once or one machine at a time, and no answer of the old is lost.",
        covers: EVERYTHING_STORED,
        unit: "messages a step",
        scale: 20,
        run: upgrade::run,
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
    proof.run_to_its_page(workspace, scale.unwrap_or(proof.scale), seed)
}

/// Runs every proof whose page is older than the code that it covers, at its usual scale.
pub fn run_stale(workspace: &Workspace, seed: u64) -> anyhow::Result<Ending> {
    let mut old = standings(workspace)?;
    old.retain(|(_, standing)| *standing != Standing::Current);
    println!("{} of {} pages are old", old.len(), PROOFS.len());
    let mut ending = Ending::Holds;
    for (proof, standing) in old {
        println!("{}: {standing}", proof.name);
        if proof.run_to_its_page(workspace, proof.scale, seed)? != Ending::Holds {
            ending = Ending::Broken;
        }
    }
    Ok(ending)
}

/// The proof of that name.
pub fn find(name: Option<&str>) -> Option<&'static Proof> {
    PROOFS.iter().find(|proof| Some(proof.name) == name)
}

/// Says `reading` once a read transaction is open on `file`, and keeps it open until the process ends.
pub fn hold_read(file: &std::path::Path) -> anyhow::Result<Ending> {
    let conn = sqlite::rusqlite::Connection::open(file).context("opening the file")?;
    conn.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").context("reading the file")?;
    println!("reading");
    loop {
        std::thread::park();
    }
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
    fn run_to_its_page(&self, workspace: &Workspace, scale: u64, seed: u64) -> anyhow::Result<Ending> {
        let report = self.report(workspace, scale, seed)?;
        let page = self.page(workspace);
        std::fs::create_dir_all(page.with_file_name("")).context("docs/proof")?;
        std::fs::write(&page, report.to_string()).with_context(|| page.display().to_string())?;
        println!("{report}");
        println!("written to {}", workspace.relative(&page).display());
        Ok(if report.holds() { Ending::Holds } else { Ending::Broken })
    }

    fn page(&self, workspace: &Workspace) -> PathBuf {
        workspace.root.join("docs/proof").join(format!("{}.md", self.name))
    }

    /// Runs it and puts the facts above what it found.
    pub fn report(&self, workspace: &Workspace, scale: u64, seed: u64) -> anyhow::Result<Report> {
        let facts = Facts::gather(&workspace.root);
        let mut findings = (self.run)(&Request { scale, seed, workspace })?;
        if std::env::var_os(BIN_VARIABLE).is_some() {
            findings.figures.insert(0, ("binary".to_owned(), NAMED_BINARY.to_owned()));
        }
        let scale = format!("{scale} {}", self.unit);
        Ok(Report { name: self.name, about: self.about, covers: self.covers, scale, seed, facts, findings })
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
