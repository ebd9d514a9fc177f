//! `cargo xtask test`: everything, from an unprepared machine to one closing line.

mod doctests;
mod selection;
mod tally;

use crate::steps::step;
use crate::workspace::{Workspace, cargo};
use crate::{Ending, build, needs, node, page};
use anyhow::Context;
use selection::{Runner, arguments};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tally::Tally;
use testkit::{bin, postgres, redis};

/// What the tests find in their environment; the servers end when this is dropped.
struct Ground {
    shipped: Option<PathBuf>,
    /// Where a Node.js is that the page's tools run with, when the machine's own is too old.
    node: Option<PathBuf>,
    postgres: postgres::Private,
    redis: redis::Private,
}

/// Prepares the ground, runs the tests, prints `N passed, N failed`. Zero tests are a failure: a filter that
/// matches nothing, or a build that lost its tests, must not look like success.
pub fn run(workspace: &Workspace, filters: &[String]) -> anyhow::Result<Ending> {
    step("programs the tests need", needs::provide)?;
    let node = step("a Node.js that is new enough", || node::provide(workspace))?;
    step("tools of the page", || page::provide(workspace))?;
    let shipped = step("the binary as shipped", || build::shipped(workspace))?;
    let ground = step("private PostgreSQL and Redis", || {
        Ok(Ground { shipped, node, postgres: postgres::Private::start()?, redis: redis::Private::start()? })
    })?;
    let runner = Runner::on_this_machine();
    let mut tally = step("tests", || ground.run(workspace, runner, arguments(runner, workspace, filters)))?;
    if filters.is_empty() {
        tally = tally + ground.doctests(workspace)?;
    }
    step("ending the servers", || {
        drop(ground);
        Ok(())
    })?;
    println!("{tally}");
    Ok(if tally.holds() { Ending::Holds } else { Ending::Broken })
}

impl Ground {
    fn doctests(&self, workspace: &Workspace) -> anyhow::Result<Tally> {
        let packages = doctests::packages(workspace)?;
        if packages.is_empty() {
            return Ok(Tally::default());
        }
        let mut arguments = vec!["test".to_owned(), "--doc".to_owned()];
        arguments.extend(packages.into_iter().flat_map(|package| ["--package".to_owned(), package]));
        step("examples in the documentation", || self.run(workspace, Runner::CargoTest, arguments))
    }

    /// Runs cargo, shows what it says, counts what ran.
    fn run(&self, workspace: &Workspace, runner: Runner, arguments: Vec<String>) -> anyhow::Result<Tally> {
        let mut command = Command::new(cargo());
        command.args(&arguments).current_dir(&workspace.root);
        command.env(postgres::URL_VARIABLE, self.postgres.url());
        command.env(redis::URL_VARIABLE, self.redis.url());
        command.envs(self.shipped.iter().map(|path| (bin::SHIPPED_VARIABLE, path)));
        if let Some(folder) = &self.node {
            command.env("PATH", node::path_with(folder)?);
        }
        // nextest reports on standard error, the standard harness on standard output.
        match runner {
            Runner::Nextest => command.stderr(Stdio::piped()),
            Runner::CargoTest => command.stdout(Stdio::piped()),
        };
        let mut child = command.spawn().context("cargo cannot be run")?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut tally = Tally::default();
        if let Some(pipe) = stdout {
            tally = shown(pipe, |line| println!("{line}"))?;
        } else if let Some(pipe) = stderr {
            tally = shown(pipe, |line| eprintln!("{line}"))?;
        }
        let status = child.wait().context("waiting for cargo")?;
        Ok(tally.ended(status.success()))
    }
}

fn shown(pipe: impl Read, show: impl Fn(&str)) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).context("reading the test run's report")? > 0 {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\n');
        show(text);
        tally.read(text);
        line.clear();
    }
    Ok(tally)
}
