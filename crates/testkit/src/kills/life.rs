//! One life of the product, from its start to its death.

use super::schedule::{Kill, Watched};
use super::stage::Stage;
use super::{AT_RANDOM, KillsError, POINT_NOT_REACHED};
use crate::bin::{Options, Product};
use crate::process::{Channel, Process};
use crate::stopwatch::Stopwatch;
use crate::wait::wait_for;
use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::time::Duration;

/// A start that recovers, on a busy machine.
const START_BOUND: Duration = Duration::from_secs(60);
/// A point that a life of this length does not reach is not reached.
const POINT_BOUND: Duration = Duration::from_secs(15);
/// Sends that the watched life takes, so that every job of the walk has been done many times.
const WATCHED_SENDS: u64 = 40;
/// SIGABRT, what a crash point ends with.
const ABORTED: i32 = 6;

/// A life that ends by SIGKILL once enough was sent, and says which points it reached.
pub(super) fn watch(stage: &Stage<'_>) -> Result<Watched, KillsError> {
    let clock = Stopwatch::start();
    let mut process = begin(stage, vec!["watch".to_owned()])?;
    await_link(stage, &mut process)?;
    let start = clock.elapsed();
    wait_for("the watched life's sends", START_BOUND, || {
        (stage.tally.acked() >= WATCHED_SENDS || process.ended().is_some()).then_some(())
    })?;
    if let Some(status) = process.ended() {
        return Err(ended_by_itself(&process, status));
    }
    process.kill9();
    process.wait_exit(START_BOUND)?;
    let mut points = BTreeMap::new();
    for line in process.text(Channel::Stderr).lines() {
        if let Some(point) = after_words(line, "reached") {
            *points.entry(point.to_owned()).or_default() += 1;
        }
    }
    Ok(Watched { points, start })
}

/// Starts the product, lets it die as `kill` says, and names the kind of its death.
pub(super) fn kill(stage: &Stage<'_>, kill: &Kill, planted: &[String]) -> Result<String, KillsError> {
    let mut faults = planted.to_vec();
    let bound = match kill {
        Kill::At { point, visit } => {
            faults.push(format!("crash:{point}:{visit}"));
            POINT_BOUND
        }
        Kill::After(moment) => *moment,
    };
    let mut process = begin(stage, faults)?;
    let ended = process.wait_exit(bound);
    match (kill, ended) {
        (Kill::At { point, .. }, Ok(status)) if crashed_at(&process, status, point) => Ok(point.clone()),
        (_, Ok(status)) => Err(ended_by_itself(&process, status)),
        (Kill::At { .. }, Err(_)) => {
            process.kill9();
            Ok(POINT_NOT_REACHED.to_owned())
        }
        (Kill::After(_), Err(_)) => {
            process.kill9();
            Ok(AT_RANDOM.to_owned())
        }
    }
}

/// A life without faults, its link open.
pub(super) fn heal(stage: &Stage<'_>) -> Result<Process, KillsError> {
    let mut process = begin(stage, Vec::new())?;
    await_link(stage, &mut process)?;
    Ok(process)
}

fn begin(stage: &Stage<'_>, faults: Vec<String>) -> Result<Process, KillsError> {
    Ok(Product::spawn(stage.home, &Options { faults, ..Options::default() })?)
}

fn await_link(stage: &Stage<'_>, process: &mut Process) -> Result<(), KillsError> {
    let mut door = stage.door(&stage.members[0]);
    let link_is_open = || {
        if process.ended().is_some() {
            return Some(false);
        }
        let answer = door.get("/v1/health").ok()?;
        (answer.body["meshes"][0]["link"] == "live").then_some(true)
    };
    match (wait_for("the link to open", START_BOUND, link_is_open)?, process.ended()) {
        (true, _) | (false, None) => Ok(()),
        (false, Some(status)) => Err(ended_by_itself(process, status)),
    }
}

fn crashed_at(process: &Process, status: ExitStatus, point: &str) -> bool {
    use std::os::unix::process::ExitStatusExt;
    let said = process.text(Channel::Stderr);
    status.signal() == Some(ABORTED) && said.lines().any(|line| after_words(line, "crash at") == Some(point))
}

/// What stands behind `words` in a line of the armed faults.
fn after_words<'line>(line: &'line str, words: &str) -> Option<&'line str> {
    let said = line.strip_prefix(sqlite::fault::VARIABLE)?.strip_prefix(": ")?;
    said.strip_prefix(words)?.strip_prefix(' ')
}

fn ended_by_itself(process: &Process, status: ExitStatus) -> KillsError {
    let printed = format!("{}{}", process.text(Channel::Stdout), process.text(Channel::Stderr));
    KillsError::EndedByItself { how: status.to_string(), printed }
}
