//! `prove turns`: fake agents and the real binary, dead at every point of a turn, judged by the agents' own logs.

use super::{Control, Findings, Request};
use testkit::bin::Binary;
use testkit::turns::{Outcome, Plan, Planted};

/// Homes side by side, each with its share of the deaths: a death is mostly waiting, for a point to be reached or for a
/// lease to end.
const HOMES: u64 = 5;
/// Deaths of the daemon in the window of a planted bug.
const CONTROL_KILLS: u64 = 12;

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let ran =
        |kills, seed, planted| testkit::turns::run(&Plan { binary: binary.clone(), kills, seed, planted });
    let share = |home| request.scale / HOMES + u64::from(home < request.scale % HOMES);
    let outcomes: Result<Vec<_>, _> = std::thread::scope(|scope| {
        let homes: Vec<_> = (0..HOMES)
            .map(|home| scope.spawn(move || ran(share(home), request.seed * HOMES + home, Planted::Nothing)))
            .collect();
        homes
            .into_iter()
            .map(|home| home.join().expect("a home ends with an error, not with a panic"))
            .collect()
    });
    let mut findings = findings(together(outcomes?));
    for (planted, words) in [
        (Planted::BeginUnrecorded, "a turn is handed out before its commit"),
        (Planted::Unmarked, "a rerun is handed out as if it were the first attempt"),
        (Planted::ReplyApart, "the end commits alone, its reply after it"),
    ] {
        let outcome = ran(CONTROL_KILLS, request.seed, planted)?;
        let (caught, found) = (!outcome.holds(), outcome.findings());
        let first = found.first().map_or("nothing", String::as_str);
        let seen = format!("{} findings in {} turns; {first}", found.len(), outcome.begun);
        findings.controls.push(Control { planted: words.to_owned(), caught, seen });
    }
    let refused = ran(CONTROL_KILLS, request.seed, Planted::RefusedAndStored)?.refused;
    let planted = "messages and turns are refused after their commit";
    findings.controls.push(Control::of_refused(planted, &refused));
    Ok(findings)
}

/// What happened in all homes.
fn together(outcomes: Vec<Outcome>) -> Outcome {
    let mut all = Outcome::default();
    for outcome in outcomes {
        for (kind, times) in outcome.deaths {
            *all.deaths.entry(kind).or_default() += times;
        }
        all.acked += outcome.acked;
        all.begun += outcome.begun;
        all.reruns += outcome.reruns;
        all.replies += outcome.replies;
        all.given_up += outcome.given_up;
        all.lost.extend(outcome.lost);
        all.doubled.extend(outcome.doubled);
        all.refused.add(outcome.refused);
        all.broken.extend(outcome.broken);
        all.elapsed = all.elapsed.max(outcome.elapsed);
    }
    all
}

fn findings(outcome: Outcome) -> Findings {
    let figure = |name: &str, value: u64| (name.to_owned(), value.to_string());
    let mut broken = outcome.broken.clone();
    broken.extend(outcome.lost.iter().chain(&outcome.doubled).cloned());
    let mut findings = Findings {
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
    };
    findings.refused(None, &outcome.refused);
    findings
}
