//! `prove brokers`: two real brokers of one mesh, dying in turn with clocks apart, and over a PostgreSQL that fails over,
//! judged by what their callers and readers saw.

use super::{Control, Findings, Request};
use std::time::Duration;
use testkit::bin::Binary;
use testkit::fleet::brokers::failover::{self, Standby};
use testkit::fleet::brokers::{Outcome, Plan, Planted};

/// Long enough for a few deaths between the planted bug's two transactions.
const CONTROL_SPAN: Duration = Duration::from_secs(15);
/// Before the lag, before the server's death and after the promotion, each.
const RECEIPTS: usize = 500;

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let broken = |span, planted| {
        testkit::fleet::brokers::run(&Plan { binary: binary.clone(), span, seed: request.seed, planted })
    };
    let mut findings = findings(&broken(Duration::from_secs(request.scale), Planted::Nothing)?);
    findings.controls.push(control(&broken(CONTROL_SPAN, Planted::DedupeApart)?));
    findings.controls.push(clock_control(&broken(CONTROL_SPAN, Planted::ProcessClock)?));
    let failed_over = |standby, planted| {
        let plan = failover::Plan {
            binary: binary.clone(),
            standby,
            receipts: RECEIPTS,
            seed: request.seed,
            planted,
        };
        failover::run(&plan)
    };
    add(&mut findings, "synchronous standby", &failed_over(Standby::Synchronous, false)?);
    let lagging = failed_over(Standby::Lagging, false)?;
    add(&mut findings, "standby that lagged", &lagging);
    findings.controls.push(Control {
        planted: "the promoted standby lagged, and nothing is sent again over HTTP".to_owned(),
        caught: lagging.gone_over_http > 0,
        seen: format!("{} of {} acknowledged are not there", lagging.gone_over_http, lagging.acked),
    });
    let unwitnessed = failed_over(Standby::Lagging, true)?;
    findings.controls.push(Control {
        planted: "a broker does not look at what daemons know to be accepted".to_owned(),
        caught: unwitnessed.lost > 0,
        seen: format!("{} acknowledged by daemons are not there after the promotion", unwitnessed.lost),
    });
    Ok(findings)
}

fn add(findings: &mut Findings, what: &str, outcome: &failover::Outcome) {
    findings.acked += outcome.acked;
    findings.lost += outcome.lost;
    findings.doubled += outcome.doubled;
    findings.broken.extend(outcome.broken.iter().map(|broken| format!("{what}: {broken}")));
    *findings.faults.entry(format!("PostgreSQL killed under load, {what} promoted")).or_default() += 1;
    let mut figure = |name: &str, value: String| findings.figures.push((format!("{what}: {name}"), value));
    figure("acknowledged", outcome.acked.to_string());
    figure("lost, doubled", format!("{}, {}", outcome.lost, outcome.doubled));
    figure(
        "acknowledged over HTTP and gone, as `broker check` had warned",
        outcome.gone_over_http.to_string(),
    );
    figure("receipts of what daemons sent again", outcome.sent_again.to_string());
    figure("time", format!("{:.1} s", outcome.elapsed.as_secs_f64()));
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
