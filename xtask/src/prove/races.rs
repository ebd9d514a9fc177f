//! `prove races`: copies of one id at a real broker, on each store, with the limiter in Redis.

use super::{Control, Findings, Request};
use std::collections::BTreeMap;
use testkit::bin::Binary;
use testkit::fleet::races::{COPIES, Outcome, Plan, Planted, Store};

/// Ids under the planted bug; it shows within a few of them.
const CONTROL_IDS: u64 = 200;

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let mut findings = Findings::default();
    for store in [Store::Sqlite, Store::Postgres] {
        let raced = |ids, planted| {
            testkit::fleet::races::run(&Plan {
                binary: binary.clone(),
                ids,
                seed: request.seed,
                store,
                planted,
            })
        };
        add(&mut findings, store, &raced(request.scale, Planted::Nothing)?);
        findings.controls.push(control(store, &raced(CONTROL_IDS, Planted::DedupeApart)?));
        if store == Store::Sqlite {
            let refused = raced(CONTROL_IDS, Planted::RefusedAndStored)?.refused;
            let planted = "SQLite: a message is refused after its commit";
            findings.controls.push(Control::of_refused(planted, &refused));
        }
    }
    findings.faults = BTreeMap::from([(format!("ids with {COPIES} copies at once"), 2 * request.scale)]);
    Ok(findings)
}

fn add(findings: &mut Findings, store: Store, outcome: &Outcome) {
    let name = name(store);
    findings.acked += outcome.accepted;
    findings.lost += outcome.lost;
    findings.doubled += outcome.doubled;
    findings.broken.extend(outcome.broken.iter().map(|broken| format!("{name}: {broken}")));
    let mut figure = |what: &str, value: String| findings.figures.push((format!("{name}: {what}"), value));
    figure("copies answered 201", outcome.accepted.to_string());
    figure("copies answered 200 duplicate", outcome.duplicates.to_string());
    figure("copies answered 409 idempotency_key_reused", outcome.conflicts.to_string());
    for (why, times) in &outcome.asked_again {
        figure(&format!("copies asked again after {why}"), times.to_string());
    }
    for (kind, paid) in [("one text", outcome.twins), ("two texts", outcome.rivals)] {
        figure(&format!("budget units of {} ids with {kind}", paid.ids), paid.units.to_string());
    }
    figure("time", format!("{:.1} s", outcome.elapsed.as_secs_f64()));
    findings.refused(Some(name), &outcome.refused);
}

fn control(store: Store, outcome: &Outcome) -> Control {
    let first = outcome.broken.first().map_or("nothing", String::as_str);
    Control {
        planted: format!("{}: an id is written in a transaction of its own", name(store)),
        caught: !outcome.holds(),
        seen: format!("{} of {CONTROL_IDS} ids doubled; {first}", outcome.doubled),
    }
}

fn name(store: Store) -> &'static str {
    match store {
        Store::Sqlite => "SQLite",
        Store::Postgres => "PostgreSQL",
    }
}
