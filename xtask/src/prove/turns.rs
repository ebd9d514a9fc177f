//! `prove turns`: fake agents and the real binary, dead at every point of a turn, judged by the agents' own logs.

use super::{Control, Findings, Request};
use testkit::bin::Binary;
use testkit::turns::{Outcome, Plan, Planted};

/// Deaths of the daemon in the window of a planted bug.
const CONTROL_KILLS: u64 = 12;

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let ran = |kills, planted| {
        testkit::turns::run(&Plan { binary: binary.clone(), kills, seed: request.seed, planted })
    };
    let mut findings = findings(ran(request.scale, Planted::Nothing)?);
    for (planted, words) in [
        (Planted::BeginUnrecorded, "a turn is handed out before its commit"),
        (Planted::Unmarked, "a rerun is handed out as if it were the first attempt"),
        (Planted::ReplyApart, "the end commits alone, its reply after it"),
    ] {
        let outcome = ran(CONTROL_KILLS, planted)?;
        let (caught, found) = (!outcome.holds(), outcome.findings());
        let first = found.first().map_or("nothing", String::as_str);
        let seen = format!("{} findings in {} turns; {first}", found.len(), outcome.begun);
        findings.controls.push(Control { planted: words.to_owned(), caught, seen });
    }
    Ok(findings)
}

fn findings(outcome: Outcome) -> Findings {
    let figure = |name: &str, value: u64| (name.to_owned(), value.to_string());
    let mut broken = outcome.broken.clone();
    broken.extend(outcome.lost.iter().chain(&outcome.doubled).cloned());
    Findings {
        figures: vec![
            figure("turns in the agents' logs", outcome.begun),
            figure("of these, marked as reruns", outcome.reruns),
            figure("replies received", outcome.replies),
            figure("messages interrupted twice, listed for a person", outcome.given_up),
            ("time".to_owned(), format!("{:.1} s", outcome.elapsed.as_secs_f64())),
        ],
        faults: outcome.deaths,
        acked: outcome.acked,
        indeterminate: 0,
        lost: outcome.lost.len() as u64,
        doubled: outcome.doubled.len() as u64,
        broken,
        controls: Vec::new(),
    }
}
