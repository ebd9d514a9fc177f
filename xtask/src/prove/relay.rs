//! `prove relay`: a relay before a hub, over many outages.

use super::{Control, Findings, Request};
use std::collections::BTreeMap;
use testkit::bin::Binary;
use testkit::fleet::relays::draws::{DrawOutcome, DrawPlan};
use testkit::fleet::relays::{Outcome, Plan};

/// Writes between two outages.
const WRITES_PER_OUTAGE: u64 = 500;
/// Writes and outages under the planted bug.
const CONTROL: (u64, u64) = (4_000, 20);

/// Writes of the only caller, and the outages they are spread over.
const DRAWN: (u64, u64) = (10_000, 20);
/// The same under a bug of the relay's.
const DRAWN_CONTROL: (u64, u64) = (400, 2);

/// What each bug of the relay's must be found by.
type FoundBy = fn(&DrawOutcome) -> u64;

/// The relay's bugs, what they do, and what finds them.
const RELAY_BUGS: [(&str, &str, FoundBy); 4] = [
    ("relay.key_without_fingerprint", "a key counts as the write's, whichever request has it", |outcome| {
        outcome.wrongly_done
    }),
    ("relay.endless_replay", "a replay goes on through pauses and stops", |outcome| outcome.unpaused),
    ("relay.tags_by_path", "a tag belongs to a path, and outlives a 409", |outcome| outcome.false_conflicts),
    ("relay.refused_and_stored", "a write is refused for want of room after it was stored", |outcome| {
        outcome.stored_refusals
    }),
];

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
    let drawn = |(writes, rounds): (u64, u64), planted: Option<&str>| {
        testkit::fleet::relays::draws::run(&DrawPlan {
            binary: binary.clone(),
            writes,
            rounds,
            seed: request.seed,
            planted: planted.map(str::to_owned),
        })
    };
    let single = drawn(DRAWN, None)?;
    let mut findings = Findings {
        acked: outcome.acked + single.acked,
        lost: outcome.lost,
        doubled: outcome.doubled,
        broken: outcome.broken.iter().chain(&single.broken).cloned().collect(),
        ..Findings::default()
    };
    if !single.holds() && single.broken.is_empty() {
        findings.broken.push("the only caller's writes did not hold".to_owned());
    }
    findings.faults = BTreeMap::from([
        ("kill -9 of the hub".to_owned(), outcome.hub_kills),
        ("kill -9 of the relay".to_owned(), outcome.relay_kills),
        ("days offline".to_owned(), 15),
    ]);
    findings.figures = figures(&outcome, outages);
    findings.figures.extend(drawn_figures(&single));
    findings.controls.push(control(&planted));
    for (bug, does, found_by) in RELAY_BUGS {
        let outcome = drawn(DRAWN_CONTROL, Some(bug))?;
        let first = outcome.broken.first().map_or("nothing", String::as_str);
        findings.controls.push(Control {
            planted: does.to_owned(),
            caught: found_by(&outcome) > 0,
            seen: first.to_owned(),
        });
    }
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

fn drawn_figures(outcome: &DrawOutcome) -> Vec<(String, String)> {
    [
        ("writes of one caller over other names, decisions and batches", outcome.acked.to_string()),
        ("of them with a receipt first", outcome.queued.to_string()),
        ("conflicts although nobody else wrote", outcome.false_conflicts.to_string()),
        ("keys of waiting writes taken by another request", outcome.taken_keys.to_string()),
        ("of them told as done", outcome.wrongly_done.to_string()),
        ("starts with a credential that the hub refuses", outcome.bad_credentials.to_string()),
        ("writes that met a pause beyond its first", outcome.unpaused.to_string()),
        ("requests refused with a word that denies storage", outcome.refused.to_string()),
        ("of them stored or applied", outcome.stored_refusals.to_string()),
        ("time of the only caller", format!("{:.0} s", outcome.elapsed.as_secs_f64())),
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
