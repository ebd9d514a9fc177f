//! `prove relay`: a relay before a hub, over many outages.

use super::{Control, Findings, Request};
use std::collections::BTreeMap;
use testkit::bin::Binary;
use testkit::fleet::relays::{Outcome, Plan};

/// Writes between two outages.
const WRITES_PER_OUTAGE: u64 = 500;
/// Writes and outages under the planted bug.
const CONTROL: (u64, u64) = (4_000, 20);

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let outages = (request.scale / WRITES_PER_OUTAGE).max(1);
    let relayed = |writes, outages, planted| {
        testkit::fleet::relays::run(&Plan {
            binary: binary.clone(),
            writes,
            outages,
            seed: request.seed,
            planted,
        })
    };
    let outcome = relayed(request.scale, outages, false)?;
    let planted = relayed(CONTROL.0, CONTROL.1, true)?;
    let mut findings = Findings {
        acked: outcome.acked,
        lost: outcome.lost,
        doubled: outcome.doubled,
        broken: outcome.broken.clone(),
        ..Findings::default()
    };
    findings.faults = BTreeMap::from([
        ("kill -9 of the hub".to_owned(), outcome.hub_kills),
        ("kill -9 of the relay".to_owned(), outcome.relay_kills),
        ("days offline".to_owned(), 15),
    ]);
    findings.figures = figures(&outcome, outages);
    findings.controls.push(control(&planted));
    Ok(findings)
}

fn figures(outcome: &Outcome, outages: u64) -> Vec<(String, String)> {
    [
        ("outages", outages.to_string()),
        ("answered with a receipt first", outcome.queued.to_string()),
        ("overtaken within a session", outcome.overtaken.to_string()),
        ("silent overwrites", outcome.overwritten.to_string()),
        ("conflicts kept for a person", outcome.conflicts.to_string()),
        ("expired after 15 days, listed so", outcome.expired.to_string()),
        ("time", format!("{:.0} s", outcome.elapsed.as_secs_f64())),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

fn control(outcome: &Outcome) -> Control {
    let first = outcome.broken.first().map_or("nothing", String::as_str);
    Control {
        planted: "the hub records a key in a transaction of its own".to_owned(),
        caught: outcome.doubled > 0,
        seen: format!("{} of {} writes applied twice; {first}", outcome.doubled, outcome.acked),
    }
}
