//! `prove model`: every state that small worlds come into under the rules of `model`, and the same worlds with one
//! rule taken out.
//!
//! The searches are an example of testkit, because it can be built optimised whatever profile this command has; it
//! prints a line of JSON for each. Nothing in them is random, so the seed has no say.

use super::{Control, Findings, Request};
use crate::workspace::cargo;
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use testkit::explore::{Expected, NO_END, Ran, delivery, envelope, outbox, turn};

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let days = u8::try_from(request.scale).ok().filter(|days| *days <= DAYS_MAX);
    let days = days.with_context(|| format!("a world lasts for at most {DAYS_MAX} days"))?;
    let mut command = Command::new(cargo());
    command.args(["run", "--quiet", "--release", "--package", "testkit", "--example", "explore", "--"]);
    command.arg(days.to_string()).current_dir(&request.workspace.root).stdout(Stdio::piped());
    let mut child = command.spawn().context("cargo cannot be run")?;
    let lines = BufReader::new(child.stdout.take().expect("the child's output is a pipe")).lines();
    // By their place in the list: which of two ends first differs from run to run, the page does not.
    let mut all_ran = BTreeMap::new();
    for line in lines {
        let line = line.context("reading what the explorer says")?;
        let (place, ran): (usize, Ran) =
            serde_json::from_str(&line).with_context(|| format!("the explorer said: {line}"))?;
        eprintln!("{:>9} states {:>7} ms  {}", ran.states, ran.elapsed_ms, ran.name);
        all_ran.insert(place, ran);
    }
    let status = child.wait().context("waiting for the explorer")?;
    ensure!(status.success(), "the explorer ended with {status}");
    let mut findings = Findings::default();
    findings.figures.push(("looked at in every state".to_owned(), invariants().join("; ")));
    all_ran.values().for_each(|ran| note(&mut findings, ran));
    Ok(findings)
}

/// Longer worlds come back to what they were: the broker has forgotten everything twice by then.
const DAYS_MAX: u8 = 21;

fn invariants() -> Vec<&'static str> {
    let mut names =
        [outbox::INVARIANTS, delivery::INVARIANTS, turn::INVARIANTS, envelope::INVARIANTS].concat();
    names.push(NO_END);
    names
}

fn note(findings: &mut Findings, ran: &Ran) {
    let figure = (ran.name.clone(), size(ran));
    match ran.expected {
        Expected::Holds => findings.figures.push(figure),
        Expected::MadeUpFor => {
            let name = format!("planted, and made up for by other rules: {}", ran.name);
            findings.figures.push((name, figure.1));
        }
        Expected::Found => {
            let control =
                Control { planted: ran.name.clone(), caught: ran.is_as_expected(), seen: seen(ran) };
            findings.controls.push(control);
            return;
        }
    }
    if !ran.whole {
        findings.broken.push(format!("{}: the space is larger than the search's bound", ran.name));
    }
    let broken = ran.findings.iter().map(|found| format!("{}: {}", ran.name, trace(found)));
    findings.broken.extend(broken);
}

fn size(ran: &Ran) -> String {
    let whole = if ran.whole { "whole" } else { "**not whole**" };
    format!("{} states, {} steps, {} deep, {whole}", ran.states, ran.steps, ran.depth)
}

fn seen(ran: &Ran) -> String {
    let traces: Vec<String> = ran.findings.iter().map(trace).collect();
    if traces.is_empty() { format!("nothing in {}", size(ran)) } else { traces.join("; ") }
}

fn trace(found: &testkit::explore::Finding) -> String {
    format!(
        "**{}** after {} steps: {} → {}",
        found.name,
        found.trace.len(),
        found.trace.join(", "),
        found.state
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::explore::Finding;

    fn ran(expected: Expected, whole: bool, found: &[&str]) -> Ran {
        let finding = |name: &&str| Finding {
            name: (*name).to_owned(),
            trace: vec!["one".to_owned(), "two".to_owned()],
            state: "lost".to_owned(),
        };
        let found_as = (expected == Expected::Found).then(|| "gone".to_owned());
        let findings = found.iter().map(finding).collect();
        let (name, elapsed_ms) = ("a world".to_owned(), 1);
        Ran { name, expected, found_as, states: 3, steps: 4, depth: 2, whole, elapsed_ms, findings }
    }

    fn noted(ran: Ran) -> Findings {
        let mut findings = Findings::default();
        note(&mut findings, &ran);
        findings
    }

    #[test]
    fn a_world_that_breaks_or_is_not_whole_is_broken() {
        for expected in [Expected::Holds, Expected::MadeUpFor] {
            assert!(noted(ran(expected, true, &[])).broken.is_empty());
            assert_eq!(noted(ran(expected, false, &[])).broken.len(), 1);
            let broken = noted(ran(expected, true, &["gone"])).broken;
            assert_eq!(broken, ["a world: **gone** after 2 steps: one, two → lost"]);
        }
    }

    #[test]
    fn a_planted_fault_is_caught_only_under_its_own_name() {
        for (found, caught) in [(&["gone"][..], true), (&["other"], false), (&[], false)] {
            let findings = noted(ran(Expected::Found, true, found));
            assert!(findings.broken.is_empty());
            assert_eq!(findings.controls[0].caught, caught, "{found:?}");
        }
    }
}
