//! `prove hostile`: calls that schemathesis invents from the broker's own document, with a token and without.

mod siege;
mod tool;

use super::{Control, Findings, Request};
use siege::{Counted, Siege, Who};
use testkit::bin::Binary;
use testkit::fleet::hostile::{Besieged, PANIC_ON_QUESTION};
use testkit::fleet::races::Store;
use tool::Tool;

/// One in so many calls comes without a token.
const STRANGERS: u64 = 4;
/// Calls under the planted bug; it shows within a few hundred of them.
const CONTROL_CALLS: u64 = 1_500;
/// A run of so many calls must have called every address of the document on each store.
const EVERYWHERE_FROM: u64 = 10_000;

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let tool = Tool::installed(&request.workspace.target.join("schemathesis"))?;
    let binary = Binary::at(request.faulted_binary()?);
    let mut findings = Findings::default();
    for store in [Store::Sqlite, Store::Postgres] {
        let mut besieged = Besieged::open(&binary, store, &[])?;
        let name = format!("{store:?}");
        let siege = Siege { tool: &tool, besieged: &besieged, name: &name, seed: request.seed };
        let calls = request.scale / 2;
        let mut counted = siege.lay(Who::Member, calls - calls / STRANGERS)?;
        counted.add(siege.lay(Who::Stranger, calls / STRANGERS)?);
        add(&mut findings, &name, &mut besieged, &counted);
        if request.scale >= EVERYWHERE_FROM {
            let missed = counted.uncalled().map(|address| format!("{name}: nobody called {address}"));
            findings.broken.extend(missed);
        }
    }
    findings.controls.push(control(&tool, &binary, request.seed)?);
    Ok(findings)
}

fn add(findings: &mut Findings, name: &str, besieged: &mut Besieged, counted: &Counted) {
    findings.acked += counted.answered;
    findings.broken.extend(counted.broken.iter().map(|broken| format!("{name}: {broken}")));
    findings.broken.extend(besieged.broken().iter().map(|line| format!("{name}: {line}")));
    if counted.begun > counted.answered {
        let lost = counted.begun - counted.answered;
        findings.broken.push(format!("{name}: {lost} calls got no answer"));
    }
    if !besieged.serves("after") {
        findings.broken.push(format!("{name}: it takes no message afterwards"));
    }
    let mut figure = |what: &str, value: String| findings.figures.push((format!("{name}: {what}"), value));
    figure("calls", counted.begun.to_string());
    let called = counted.addresses.values().filter(|times| **times > 0).count();
    figure("addresses called", format!("{called} of {}", counted.addresses.len()));
    for (status, times) in &counted.statuses {
        figure(&format!("answered {status}"), times.to_string());
    }
    findings.faults.insert(format!("invented calls, {name}"), counted.begun);
}

fn control(tool: &Tool, binary: &Binary, seed: u64) -> anyhow::Result<Control> {
    let mut besieged = Besieged::open(binary, Store::Sqlite, &[PANIC_ON_QUESTION.to_owned()])?;
    let counted =
        Siege { tool, besieged: &besieged, name: "planted bug", seed }.lay(Who::Member, CONTROL_CALLS)?;
    let panics = besieged.broken().len();
    Ok(Control {
        planted: "a message that expects an answer breaks its handler".to_owned(),
        caught: !counted.broken.is_empty() && panics > 0,
        seen: format!("{} answers 500 or 502 kept, {panics} panics said", counted.broken.len()),
    })
}
