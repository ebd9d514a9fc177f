//! `prove hostile`: calls that schemathesis invents from the broker's own document, with a token and without.
//!
//! The tool is Python's; it lives in a folder of the build, made by the first run.

use super::{Control, Findings, Request};
use anyhow::{Context, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::bin::Binary;
use testkit::fleet::hostile::{Besieged, PANIC_ON_QUESTION};
use testkit::fleet::races::Store;

/// The tool, in the version whose document this was written for.
const TOOL: &str = "schemathesis==4.32.*";
const HOOKS: &str = include_str!("hostile.py");
/// One in so many calls comes without a token.
const STRANGERS: u64 = 4;
/// Calls under the planted bug; it shows within a few hundred of them.
const CONTROL_CALLS: u64 = 1_500;
/// A run invents at most so many calls for one address; the next seed follows.
const EXAMPLES: &str = "500";

/// What the hooks counted.
#[derive(Debug, Default, Deserialize)]
struct Counted {
    begun: u64,
    answered: u64,
    statuses: BTreeMap<String, u64>,
    broken: Vec<String>,
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Stranger,
    Member,
}

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let tool = installed(&request.workspace.target.join("schemathesis"))?;
    let binary = Binary::at(request.faulted_binary()?);
    let mut findings = Findings::default();
    for store in [Store::Sqlite, Store::Postgres] {
        let mut besieged = Besieged::open(&binary, store, &[])?;
        let calls = request.scale / 2;
        let mut counted = siege(&tool, &besieged, Who::Member, calls - calls / STRANGERS, request.seed)?;
        counted.add(siege(&tool, &besieged, Who::Stranger, calls / STRANGERS, request.seed)?);
        add(&mut findings, store, &mut besieged, counted);
    }
    findings.controls.push(control(&tool, &binary, request.seed)?);
    Ok(findings)
}

fn add(findings: &mut Findings, store: Store, besieged: &mut Besieged, counted: Counted) {
    let name = format!("{store:?}");
    findings.acked += counted.answered;
    findings.broken.extend(counted.broken.iter().map(|broken| format!("{name}: {broken}")));
    findings.broken.extend(besieged.broken().iter().map(|line| format!("{name}: {line}")));
    if counted.begun > counted.answered {
        let lost = counted.begun - counted.answered;
        findings.broken.push(format!("{name}: {lost} calls got no answer"));
    }
    if !besieged.serves("after") {
        findings.broken.push(format!("{name}: it takes no message afterwards"));
    }
    let mut figure =
        |what: &str, value: u64| findings.figures.push((format!("{name}: {what}"), value.to_string()));
    figure("calls", counted.begun);
    for (status, times) in &counted.statuses {
        figure(&format!("answered {status}"), *times);
    }
    findings.faults.insert(format!("invented calls, {name}"), counted.begun);
}

fn control(tool: &Path, binary: &Binary, seed: u64) -> anyhow::Result<Control> {
    let mut besieged = Besieged::open(binary, Store::Sqlite, &[PANIC_ON_QUESTION.to_owned()])?;
    let counted = siege(tool, &besieged, Who::Member, CONTROL_CALLS, seed)?;
    let panics = besieged.broken().len();
    Ok(Control {
        planted: "a message that expects an answer breaks its handler".to_owned(),
        caught: !counted.broken.is_empty() && panics > 0,
        seen: format!("{} answers 500 or 502 kept, {panics} panics said", counted.broken.len()),
    })
}

/// Runs the tool with one seed after the other until enough calls were made.
fn siege(tool: &Path, besieged: &Besieged, who: Who, calls: u64, seed: u64) -> anyhow::Result<Counted> {
    let folder = tempfile::tempdir()?;
    let mut counted = Counted::default();
    let mut seed = seed;
    while counted.begun < calls {
        let before = counted.begun;
        counted.add(invent(tool, folder.path(), besieged, who, calls - before, seed)?);
        ensure!(counted.begun > before, "schemathesis made no call with seed {seed}");
        seed += 1;
    }
    Ok(counted)
}

fn invent(
    tool: &Path,
    folder: &Path,
    besieged: &Besieged,
    who: Who,
    calls: u64,
    seed: u64,
) -> anyhow::Result<Counted> {
    std::fs::write(folder.join("hostile.py"), HOOKS).context("the hooks")?;
    let report = folder.join("report.json");
    let mut command = Command::new(tool);
    command
        .args(["run", &format!("{}/openapi.json", besieged.url()), "--checks", "not_a_server_error"])
        .args(["--max-examples", EXAMPLES, "--seed", &seed.to_string(), "--workers", "2", "--no-color"])
        .args(["--max-failures", "1000000", "--continue-on-failure"])
        .current_dir(folder)
        .env("SCHEMATHESIS_HOOKS", "hostile")
        .env("PYTHONPATH", folder)
        .env("HOSTILE_CALLS", calls.to_string())
        .env("HOSTILE_REPORT", &report)
        .env("HOSTILE_CONVERSATION", &besieged.conversation);
    match who {
        Who::Stranger => {}
        Who::Member => {
            command.args(["--header", &format!("Authorization: Bearer {}", besieged.token)]);
        }
    }
    let output = command.output().context("schemathesis cannot be run")?;
    let text = || String::from_utf8_lossy(&output.stdout).chars().take(2_000).collect::<String>();
    // Its exit code speaks of findings, which the report holds; no report means that it did not run.
    let found = std::fs::read(&report).with_context(|| format!("schemathesis left no report: {}", text()))?;
    serde_json::from_slice(&found).context("the hooks' report")
}

/// The tool's program; a folder with the wrong version or half an installation is made again.
fn installed(folder: &Path) -> anyhow::Result<PathBuf> {
    let program = folder.join("bin/schemathesis");
    let runs = |program: &Path| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    if !runs(&program) {
        done(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))
            .context("schemathesis needs Python 3 with venv: apt-get install python3-venv")?;
        done(Command::new(folder.join("bin/pip")).args(["install", "--quiet", TOOL]))?;
    }
    ensure!(runs(&program), "{} does not run", program.display());
    Ok(program)
}

fn done(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

impl Counted {
    fn add(&mut self, other: Self) {
        self.begun += other.begun;
        self.answered += other.answered;
        for (status, times) in other.statuses {
            *self.statuses.entry(status).or_default() += times;
        }
        self.broken.extend(other.broken);
    }
}
