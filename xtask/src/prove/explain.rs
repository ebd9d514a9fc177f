//! `prove explain`: random histories with faults, and what is said of every id in them.

use super::{Control, Findings, Request};
use testkit::bin::Binary;
use testkit::explained::{Outcome, Plan};

/// Ids asked about that were never sent.
const NEVER: u64 = 100;
/// Enough that some id is still queued in most.
const CONTROL_HISTORIES: u64 = 10;
/// What is planted, and its name.
const CONTROLS: [(&str, &str); 2] = [
    ("what is queued on this host is told as accepted", "daemon.explain_optimism"),
    ("what waits at the relay is told as done", "relay.explain_optimism"),
];
/// A message is refused and stored.
const REFUSED_AND_STORED: &str = "bug:sqlite.refused_and_stored:mailbox.accept";

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let told = |histories, never, faults: Vec<String>| {
        testkit::explained::run(&Plan {
            binary: binary.clone(),
            histories,
            never,
            seed: request.seed,
            faults,
        })
    };
    let mut findings = findings(told(request.scale, NEVER, Vec::new())?);
    for (planted, bug) in CONTROLS {
        let optimistic = told(CONTROL_HISTORIES, 0, vec![format!("bug:{bug}")])?;
        findings.controls.push(Control {
            planted: planted.to_owned(),
            caught: !optimistic.holds(),
            seen: format!(
                "{} of {} ids; {}",
                optimistic.wrong.len(),
                optimistic.asked,
                optimistic.wrong.first().map_or("nothing", String::as_str)
            ),
        });
    }
    let refused = told(CONTROL_HISTORIES, 0, vec![REFUSED_AND_STORED.to_owned()])?.refused;
    findings.controls.push(Control::of_refused("a message is refused after its commit", &refused));
    Ok(findings)
}

fn findings(outcome: Outcome) -> Findings {
    let fates = outcome.fates.iter().map(|(fate, times)| (fate.clone(), times.to_string()));
    let mut findings = Findings {
        figures: fates
            .chain([("time".to_owned(), format!("{:.1} s", outcome.elapsed.as_secs_f64()))])
            .collect(),
        faults: outcome.deaths,
        acked: outcome.asked,
        broken: outcome.wrong,
        ..Findings::default()
    };
    findings.refused(None, &outcome.refused);
    findings
}
