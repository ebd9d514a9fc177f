//! `prove pressure`: a foreign reader of the files, a log at its hard bound, and busy programs beside the product.

use super::{Control, Findings, Request};
use anyhow::Context;
use std::time::Duration;
use testkit::bin::Binary;
use testkit::fleet::pressure::{
    BusySpans, FullLog, PressurePlan, ReaderRates, busy_programs, full_log, ledger_reader, mailbox_reader,
};

/// Beside a foreign reader at least this share of the rate alone.
const SHARE_BESIDE_MIN: f64 = 0.5;
/// After it the whole rate, but for the noise of a shared machine.
const SHARE_AFTER_MIN: f64 = 0.8;
/// The worst five seconds beside busy programs against the best.
const SHARE_WORST_MIN: f64 = 1.0 / 3.0;
/// How long each condition of a control lasts.
const CONTROL_SPAN: Duration = Duration::from_secs(20);

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let itself = std::env::current_exe().context("the path of this program")?;
    let plan = PressurePlan {
        binary: Binary::at(request.faulted_binary()?),
        reader: vec![itself.display().to_string(), "hold-read".to_owned()],
        span: Duration::from_secs(request.scale),
        faults: Vec::new(),
    };
    let mut findings = Findings::default();
    let (mailbox, named) = mailbox_reader(&plan)?;
    judge_reader("the mailbox", mailbox, &mut findings);
    if !named {
        findings.broken.push("health does not name the process that reads the mailbox".to_owned());
    }
    judge_reader("the ledger", ledger_reader(&plan)?, &mut findings);
    judge_full_log(&full_log(&plan)?, &mut findings);
    judge_busy(busy_programs(&plan, false)?, &mut findings);
    findings.faults.insert("read transactions of another process".to_owned(), 3);
    findings.controls = controls(&plan)?;
    Ok(findings)
}

fn judge_reader(store: &str, rates: ReaderRates, findings: &mut Findings) {
    let ReaderRates { alone, beside, after } = rates;
    findings.figures.push((
        format!("{store}: answers a second alone, beside a foreign reader, after it"),
        format!("{alone:.0}, {beside:.0} ({:.2}), {after:.0} ({:.2})", beside / alone, after / alone),
    ));
    if beside < SHARE_BESIDE_MIN * alone {
        findings.broken.push(format!("{store} beside a foreign reader: {:.2} of its rate", beside / alone));
    }
    if after < SHARE_AFTER_MIN * alone {
        findings.broken.push(format!("{store} after a foreign reader: {:.2} of its rate", after / alone));
    }
}

fn judge_full_log(full: &FullLog, findings: &mut Findings) {
    let FullLog { refusal, names_reader, taken_after } = full;
    let named = if *names_reader { "names the reading process" } else { "names no process" };
    let told = refusal.split(",\"message\"").next().unwrap_or_default();
    findings.figures.push(("a log at its hard bound".to_owned(), format!("{told}}}, {named}")));
    let seconds = format!("{:.1} s", taken_after.as_secs_f64());
    findings.figures.push(("a send is taken again, after the reader's end".to_owned(), seconds));
    if !refusal.starts_with("503") || !refusal.contains("log_full") {
        findings.broken.push(format!("a full log is answered with {refusal}"));
    }
    if !names_reader {
        findings.broken.push(format!("a full log does not name its reader: {refusal}"));
    }
}

fn judge_busy(spans: BusySpans, findings: &mut Findings) {
    findings.figures.push((
        format!("five seconds beside {} busy programs: best, worst", spans.programs),
        format!("{}, {} ({:.2})", spans.best, spans.worst, share(spans)),
    ));
    if share(spans) < SHARE_WORST_MIN {
        findings.broken.push(format!("beside busy programs the worst five seconds are {:.2}", share(spans)));
    }
}

fn share(spans: BusySpans) -> f64 {
    if spans.best == 0 { 0.0 } else { spans.worst as f64 / spans.best as f64 }
}

fn controls(plan: &PressurePlan) -> anyhow::Result<Vec<Control>> {
    let waits = PressurePlan {
        span: CONTROL_SPAN,
        faults: vec!["bug:sqlite.wait_for_readers".to_owned()],
        ..plan.clone()
    };
    let (rates, _) = mailbox_reader(&waits)?;
    let beside = rates.beside / rates.alone;
    let frozen = share(busy_programs(&PressurePlan { span: CONTROL_SPAN, ..plan.clone() }, true)?);
    Ok(vec![
        Control {
            planted: "the writer waits for readers after every commit".to_owned(),
            caught: beside < SHARE_BESIDE_MIN,
            seen: format!("{beside:.2} of the rate beside a foreign reader"),
        },
        Control {
            planted: "the daemon stands still for ten seconds".to_owned(),
            caught: frozen < SHARE_WORST_MIN,
            seen: format!("the worst five seconds are {frozen:.2} of the best"),
        },
    ])
}
