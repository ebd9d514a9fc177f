//! `prove power-loss`: every moment of a recording of the engine's writes and syncs, taken as the last one.

use super::{Control, Findings, Request};
use testkit::disk::{Control as LeftOut, PowerLoss, Report, power_loss, second_crash};

/// The syncs the promise rests on; without either, the same replay must show losses.
const CONTROLS: [(LeftOut, &str); 2] = [
    (LeftOut::CommitUnsynced, "commits under synchronous=NORMAL"),
    (LeftOut::FolderUnsynced, "the folder not synced when the file is opened"),
];

/// Commits of a recording whose every moment is a second crash.
const SECOND_CRASH_COMMITS_MAX: u64 = 90;

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let replay = |control| power_loss(&PowerLoss { commits: request.scale, control, seed: request.seed });
    let crash_twice = |control| {
        let commits = request.scale.min(SECOND_CRASH_COMMITS_MAX);
        second_crash(&PowerLoss { commits, control, seed: request.seed })
    };
    let report = replay(LeftOut::Nothing)?;
    let second = crash_twice(LeftOut::Nothing)?;
    let mut findings = Findings { acked: report.commits, lost: report.worst_loss, ..Findings::default() };
    findings.faults.insert("power lost at a moment of the recording".to_owned(), report.points);
    findings.faults.insert("kill, restart, answer, then power lost".to_owned(), second.power_losses);
    findings.lost += second.kills_with_loss;
    findings.broken.extend(flaws(&report));
    if !second.is_clean() {
        findings.broken.push(format!("a second crash: {second}"));
    }
    findings.figures = vec![
        ("different folders opened by the engine".to_owned(), report.folders.to_string()),
        ("times the log was begun anew while recording".to_owned(), report.log_restarts.to_string()),
        ("moments with an acknowledged commit lost".to_owned(), report.points_with_loss.to_string()),
        ("folders corrupt or refused".to_owned(), report.corrupt.to_string()),
        ("kills with something unsynced, answered by the next process".to_owned(), second.kills.to_string()),
        (
            "of these, with an answer taken back by the power loss".to_owned(),
            second.kills_with_loss.to_string(),
        ),
    ];
    for (control, planted) in CONTROLS {
        let report = replay(control)?;
        let (lossy, points) = (report.points_with_loss, report.points);
        let seen = format!("{lossy} of {points} moments with loss, worst {} commits", report.worst_loss);
        findings.controls.push(Control { planted: planted.to_owned(), caught: lossy > 0, seen });
    }
    let unsynced = crash_twice(LeftOut::OpeningUnsynced)?;
    findings.controls.push(Control {
        planted: "nothing is synced at the opening".to_owned(),
        caught: unsynced.kills_with_loss > 0,
        seen: unsynced.to_string(),
    });
    Ok(findings)
}

fn flaws(report: &Report) -> Vec<String> {
    let mut flaws = Vec::new();
    if report.corrupt > 0 {
        flaws.push(format!("{} folders did not open or were damaged", report.corrupt));
    }
    if report.log_restarts == 0 {
        flaws.push("the log was never begun anew, so checkpoints are not part of this".to_owned());
    }
    flaws
}
