//! `prove brokers`: two real brokers of one mesh, dying in turn with clocks apart, judged by what their callers and readers
//! saw.

use super::{Control, Findings, Request};
use std::time::Duration;
use testkit::bin::Binary;
use testkit::fleet::brokers::{Outcome, Plan, Planted};

/// Long enough for a few deaths between the planted bug's two transactions.
const CONTROL_SPAN: Duration = Duration::from_secs(15);
pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let broken = |span, planted| {
        testkit::fleet::brokers::run(&Plan { binary: binary.clone(), span, seed: request.seed, planted })
    };
    let mut findings = findings(&broken(Duration::from_secs(request.scale), Planted::Nothing)?);
    findings.controls.push(control(&broken(CONTROL_SPAN, Planted::DedupeApart)?));
    findings.controls.push(clock_control(&broken(CONTROL_SPAN, Planted::ProcessClock)?));
    Ok(findings)
}

fn findings(outcome: &Outcome) -> Findings {
    let verdict = &outcome.verdict;
    let figure = |name: &str, value: String| (name.to_owned(), value);
    Findings {
        faults: outcome.faults.clone(),
        acked: verdict.acked,
        indeterminate: verdict.indeterminate,
        lost: verdict.lost() + outcome.gone.len() as u64,
        doubled: verdict.doubled(),
        broken: outcome.findings(),
        controls: Vec::new(),
        figures: vec![
            figure("calls without an answer", outcome.unanswered.to_string()),
            figure("calls whose caller hung up within 50 ms", outcome.hung_up.to_string()),
            figure("receipts compared with the log", outcome.receipts.to_string()),
            figure("rows read from inboxes and the log", verdict.seen.to_string()),
            figure("time", format!("{:.1} s", outcome.elapsed.as_secs_f64())),
        ],
    }
}

fn control(outcome: &Outcome) -> Control {
    let findings = outcome.findings();
    let audit = findings.iter().find(|finding| finding.starts_with("broker check"));
    let first = findings.first().map_or("nothing", String::as_str);
    Control {
        planted: "an id is written in a transaction of its own, and brokers die before it".to_owned(),
        caught: outcome.verdict.doubled() > 0,
        seen: format!(
            "{} doubled of {} acknowledged; {first}; {}",
            outcome.verdict.doubled(),
            outcome.verdict.acked,
            audit.map_or("the audit found nothing", String::as_str),
        ),
    }
}

fn clock_control(outcome: &Outcome) -> Control {
    let findings = outcome.findings();
    let first = findings.first().map_or("nothing", String::as_str);
    Control {
        planted: "brokers take their process's clock for the store's".to_owned(),
        caught: !findings.is_empty(),
        seen: format!("{} findings of {} acknowledged; {first}", findings.len(), outcome.verdict.acked),
    }
}
