//! Schemathesis: Python's, in a folder of the build that the first run makes.

use super::siege::{Counted, Who};
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::fleet::hostile::Besieged;

/// In the version whose document this was written for.
const VERSION: &str = "schemathesis==4.32.*";
const HOOKS: &str = include_str!("hooks.py");
/// A stream of events has no end; its first event is its answer.
const SETTINGS: &str = "max-stream-events = 1\n";
/// The program.
pub struct Tool(PathBuf);

/// One run of it.
pub struct Invention<'a> {
    pub phase: &'a str,
    /// At random: calls for one address.
    pub examples: u64,
    pub seed: u64,
    /// At most so many.
    pub calls: u64,
    pub who: Who,
}

impl Tool {
    /// A folder with the wrong version or half an installation is made again.
    pub fn installed(folder: &Path) -> anyhow::Result<Self> {
        let program = folder.join("bin/schemathesis");
        let runs = |program: &Path| {
            Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
        };
        if !runs(&program) {
            done(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))
                .context("schemathesis needs Python 3 with venv: apt-get install python3-venv")?;
            done(Command::new(folder.join("bin/pip")).args(["install", "--quiet", VERSION]))?;
        }
        ensure!(runs(&program), "{} does not run", program.display());
        Ok(Self(program))
    }

    /// Runs it in a folder of its own and answers with what the hooks counted.
    pub fn invent(&self, besieged: &Besieged, invention: &Invention<'_>) -> anyhow::Result<Counted> {
        let folder = tempfile::tempdir()?;
        let report = folder.path().join("report.json");
        std::fs::write(folder.path().join("hostile.py"), HOOKS).context("the hooks")?;
        std::fs::write(folder.path().join("schemathesis.toml"), SETTINGS).context("the settings")?;
        let mut command = self.command(besieged, invention);
        command
            .current_dir(folder.path())
            .env("SCHEMATHESIS_HOOKS", "hostile")
            .env("PYTHONPATH", folder.path())
            .env("HOSTILE_CALLS", invention.calls.to_string())
            .env("HOSTILE_REPORT", &report)
            .env("HOSTILE_CONVERSATION", &besieged.conversation);
        let output = command.output().context("schemathesis cannot be run")?;
        let text = || String::from_utf8_lossy(&output.stdout).chars().take(2_000).collect::<String>();
        // Its exit code speaks of findings, which the report holds; no report means that it did not run.
        let found =
            std::fs::read(&report).with_context(|| format!("schemathesis left no report: {}", text()))?;
        serde_json::from_slice(&found).context("the hooks' report")
    }

    fn command(&self, besieged: &Besieged, invention: &Invention<'_>) -> Command {
        let mut command = Command::new(&self.0);
        command
            .args(["run", &format!("{}/openapi.json", besieged.url()), "--checks", "not_a_server_error"])
            .args(["--phases", invention.phase])
            .args(["--max-examples", &invention.examples.to_string()])
            .args(["--seed", &invention.seed.to_string(), "--generation-database", "none"])
            // Findings are counted, not made small: that would call on and on.
            .args(["--max-failures", "1000000", "--continue-on-failure", "--no-shrink"])
            // Its threads share one processor; whoever wants more starts another run beside it.
            .args(["--workers", "1", "--suppress-health-check", "all", "--no-color"]);
        match invention.who {
            Who::Stranger => {}
            Who::Member => {
                command.args(["--header", &format!("Authorization: Bearer {}", besieged.token)]);
            }
        }
        command
    }
}

fn done(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
