//! The clients, in versions that are named once, installed below the build folder.

use super::Said;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const PYTHON_MCP: &str = "2.3.0";
const NODE: &str = "22.23.3";
const INSPECTOR: &str = "2.12.0";
const CONFORMANCE: &str = "0.1.16";
const CLIENT: &str = include_str!("client.py");
const BEARER: &str = include_str!("bearer.mjs");

/// Where they are.
pub struct Clients {
    folder: PathBuf,
}

impl Clients {
    /// Installs what is missing in `folder`.
    pub fn provide(folder: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder).context("the clients' folder")?;
        let clients = Self { folder: folder.to_owned() };
        std::fs::write(folder.join("client.py"), CLIENT).context("client.py")?;
        std::fs::write(folder.join("bearer.mjs"), BEARER).context("bearer.mjs")?;
        let stamp = folder.join("installed");
        let wanted = format!("{PYTHON_MCP} {NODE} {INSPECTOR} {CONFORMANCE}");
        if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(clients);
        }
        eprintln!("installing the Python client, Node, the Inspector and the conformance suite");
        let venv = folder.join("venv").display().to_string();
        done(Command::new("python3").args(["-m", "venv", &venv]))?;
        done(Command::new(folder.join("venv/bin/pip")).args([
            "install",
            "-q",
            &format!("mcp=={PYTHON_MCP}"),
        ]))?;
        let packages = [
            format!("node@{NODE}"),
            format!("@modelcontextprotocol/inspector@{INSPECTOR}"),
            format!("@modelcontextprotocol/conformance@{CONFORMANCE}"),
        ];
        std::fs::write(folder.join("package.json"), r#"{"private":true}"#).context("package.json")?;
        done(
            Command::new("npm")
                .args(["install", "--no-audit", "--no-fund"])
                .args(packages)
                .current_dir(folder),
        )?;
        std::fs::write(&stamp, wanted).context("the stamp")?;
        Ok(clients)
    }

    /// Their versions, for the page.
    pub fn versions(&self) -> Vec<(String, String)> {
        let line = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        vec![
            line("Python package mcp", PYTHON_MCP),
            line("npm @modelcontextprotocol/inspector", INSPECTOR),
            line("npm @modelcontextprotocol/conformance", CONFORMANCE),
        ]
    }

    /// Runs the Python script to its end.
    pub fn python(&self, args: &[&str]) -> anyhow::Result<Vec<Said>> {
        let mut command = Command::new(self.folder.join("venv/bin/python"));
        let output = done(command.arg(self.folder.join("client.py")).args(args))?;
        let text = String::from_utf8(output.stdout).context("the Python client's words")?;
        text.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
    }

    /// Runs the Inspector's command line at a server.
    pub fn inspector(&self, target: &[&str], args: &[&str]) -> anyhow::Result<Value> {
        let launcher = self.folder.join("node_modules/.bin/mcp-inspector");
        let mut command = self.node();
        command.arg(launcher).arg("--cli").args(target).args(args);
        // Its own catalogue stays out of the account's folder.
        command.env("HOME", &self.folder);
        let output = command.output().context("the Inspector cannot be run")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // A tool's own refusal ends it with an exit code too; the words decide.
        serde_json::from_str(&text)
            .with_context(|| format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// The conformance suite.
    pub fn conformance(&self, args: &[&str]) -> anyhow::Result<Output> {
        let suite = self.folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
        self.node()
            .arg(suite)
            .args(args)
            .current_dir(&self.folder)
            .output()
            .context("the suite cannot be run")
    }

    /// An address that adds the token for clients that cannot; answers its port and its process.
    pub fn bearer(&self, door: &str, token_file: &Path) -> anyhow::Result<(String, Bearer)> {
        let mut command = self.node();
        command.arg(self.folder.join("bearer.mjs")).arg(door).arg(token_file);
        let mut child = command.stdout(Stdio::piped()).spawn().context("the adding address")?;
        let stdout = child.stdout.take().expect("its stdout is piped");
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).context("its port")?;
        Ok((line.trim().to_owned(), Bearer(child)))
    }

    fn node(&self) -> Command {
        Command::new(self.folder.join("node_modules/node/bin/node"))
    }
}

/// The process of the adding address; gone when dropped.
pub struct Bearer(Child);

impl Drop for Bearer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn done(command: &mut Command) -> anyhow::Result<Output> {
    let shown = format!("{command:?}");
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("{shown} cannot be run"))?;
    ensure!(output.status.success(), "{shown} ended with {}", output.status);
    Ok(output)
}
