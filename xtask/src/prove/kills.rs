//! `prove kills`: the real binary under real clients, dead again and again, judged by what the clients saw.

use super::{Control, Findings, Request};
use std::time::Duration;
use testkit::bin::Binary;
use testkit::kills::{AT_RANDOM, Commit, Outcome, POINT_NOT_REACHED, Plan, Planted};

/// Deaths in the window of a planted bug; every second one falls into it for certain.
const CONTROL_KILLS: u64 = 20;

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let killed = |kills, planted| {
        testkit::kills::run(&Plan { binary: binary.clone(), kills, seed: request.seed, planted })
    };
    let mut findings = findings(&killed(request.scale, Planted::Nothing)?);
    for commit in Commit::ALL {
        findings.controls.push(control(commit, &killed(CONTROL_KILLS, Planted::AnswerBefore(commit))?));
    }
    Ok(findings)
}

fn findings(outcome: &Outcome) -> Findings {
    let verdict = &outcome.verdict;
    let (points, left_out) = (outcome.points.len(), outcome.points_left_out());
    let mut broken = outcome.findings();
    // Every second death is at a point in turn, after the six of the three commits.
    if outcome.deaths() >= 6 + 2 * points as u64 {
        broken.extend(left_out.iter().map(|point| format!("nothing died at {point}, which was reached")));
    }
    Findings {
        faults: outcome.kills.iter().map(|(kind, times)| (shown(kind), *times)).collect(),
        acked: verdict.acked,
        indeterminate: verdict.indeterminate,
        lost: outcome.losses().max(verdict.lost()),
        doubled: verdict.doubled(),
        broken,
        controls: Vec::new(),
        figures: figures(outcome, points - left_out.len()),
    }
}

fn figures(outcome: &Outcome, points_died_at: usize) -> Vec<(String, String)> {
    let figure = |name: &str, value: String| (name.to_owned(), value);
    vec![
        figure("deaths", outcome.deaths().to_string()),
        figure("crash points the walk reaches", outcome.points.len().to_string()),
        figure("of these, died at", points_died_at.to_string()),
        figure("calls without an answer", outcome.unanswered.to_string()),
        figure("of these, asked again with the same id", outcome.asked_again.to_string()),
        figure("receipts compared with the logs", outcome.receipts.to_string()),
        figure("rows read from inboxes and logs", outcome.verdict.seen.to_string()),
        figure("time", seconds(outcome.elapsed)),
    ]
}

fn control(commit: Commit, outcome: &Outcome) -> Control {
    let losses = outcome.losses();
    let first = outcome.findings().into_iter().next().unwrap_or_else(|| "nothing".to_owned());
    Control {
        planted: format!("{} the answer before the commit of {}", sign(commit), commit.job()),
        caught: losses > 0,
        seen: format!(
            "{losses} of {} acknowledgements not kept after {} kills in {}; {first}",
            outcome.verdict.acked + outcome.receipts,
            outcome.deaths(),
            seconds(outcome.elapsed),
        ),
    }
}

fn shown(kind: &str) -> String {
    let commit = Commit::ALL.into_iter().find(|commit| commit.points().iter().any(|point| point == kind));
    match (kind, commit) {
        (AT_RANDOM | POINT_NOT_REACHED, _) => kind.to_owned(),
        (point, Some(commit)) => format!("crash at {point} {}", sign(commit)),
        (point, None) => format!("crash at {point}"),
    }
}

fn sign(commit: Commit) -> &'static str {
    match commit {
        Commit::Outbox => "①",
        Commit::Ledger => "②",
        Commit::Inbox => "③",
    }
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}
