//! `prove chat`: writers and subscribers at real brokers, on each store.

use super::{Control, Findings, Request};
use std::collections::BTreeMap;
use testkit::bin::Binary;
use testkit::fleet::chat::{Outcome, Plan, Planted};
use testkit::fleet::races::Store;

const WRITERS: u64 = 8;
const SUBSCRIBERS: u64 = 200;
const CONVERSATIONS: u64 = 20;
/// Messages under the planted bug; it shows within a few hundred.
const CONTROL_MESSAGES: u64 = 4_000;
/// On PostgreSQL every message is a round trip to a server: a part of the scale shows the same.
const POSTGRES_PART: u64 = 5;

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let mut findings = Findings::default();
    let mut leaves = 0;
    let played = |store, messages, subscribers, planted| {
        testkit::fleet::chat::run(&Plan {
            binary: binary.clone(),
            store,
            writers: WRITERS,
            subscribers,
            messages,
            conversations: CONVERSATIONS,
            seed: request.seed,
            planted,
        })
    };
    for (store, messages) in
        [(Store::Sqlite, request.scale), (Store::Postgres, request.scale.div_ceil(POSTGRES_PART))]
    {
        let outcome = played(store, messages, SUBSCRIBERS, Planted::Nothing)?;
        leaves += outcome.connections.saturating_sub(SUBSCRIBERS);
        add(&mut findings, store, messages, &outcome);
    }
    let control_of = |planted| played(Store::Sqlite, CONTROL_MESSAGES, 20, planted);
    findings.controls.push(control(&control_of(Planted::TimestampCursor)?));
    let refused = control_of(Planted::RefusedAndStored)?.refused;
    findings.controls.push(Control::of_refused("SQLite: a message is refused after its commit", &refused));
    findings.faults =
        BTreeMap::from([("connections dropped and resumed from the cursor kept".to_owned(), leaves)]);
    Ok(findings)
}

fn add(findings: &mut Findings, store: Store, messages: u64, outcome: &Outcome) {
    let name = match store {
        Store::Sqlite => "SQLite",
        Store::Postgres => "PostgreSQL, two brokers",
    };
    findings.acked += outcome.accepted;
    findings.lost += outcome.missed;
    findings.doubled += outcome.repeated;
    findings.broken.extend(outcome.broken.iter().take(20).map(|broken| format!("{name}: {broken}")));
    if outcome.swapped > 0 {
        findings.broken.push(format!("{name}: {} rows came after a later one", outcome.swapped));
    }
    let expected = SUBSCRIBERS * (messages / CONVERSATIONS);
    if outcome.taken != expected {
        findings.broken.push(format!("{name}: {} frames taken, {expected} due", outcome.taken));
    }
    let mut figure = |what: &str, value: String| findings.figures.push((format!("{name}: {what}"), value));
    figure("messages written by 8 writers to 20 conversations", outcome.accepted.to_string());
    figure("frames taken by 200 subscribers", outcome.taken.to_string());
    figure(
        "rows missed, repeated, swapped",
        format!("{}, {}, {}", outcome.missed, outcome.repeated, outcome.swapped),
    );
    figure("connections opened", outcome.connections.to_string());
    figure("time", format!("{:.1} s", outcome.elapsed.as_secs_f64()));
    findings.refused(Some(name), &outcome.refused);
}

fn control(outcome: &Outcome) -> Control {
    Control {
        planted: "SQLite: messages are stamped before their log's lock, and logs are read by the stamps"
            .to_owned(),
        caught: outcome.missed > 0,
        seen: format!(
            "{} rows missed, {} repeated, {} swapped of {} taken",
            outcome.missed, outcome.repeated, outcome.swapped, outcome.taken
        ),
    }
}
