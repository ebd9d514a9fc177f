//! `prove checker`: the checker's own sensitivity, before any volume is put through it.

use super::{Control, Findings, Request};
use testkit::history::check;
use testkit::history::sample::{Plant, Sample};
use testkit::seeded::Seeded;

/// Long enough that every kind of ending and every kind of bug has room in each history.
const SENDS: u64 = 400;

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let mut seeds = Seeded::new(request.seed);
    let mut findings = Findings::default();
    let mut found = [0_u64; Plant::ALL.len()];
    let mut planted = [0_u64; Plant::ALL.len()];
    let mut events = 0;
    for _ in 0..request.scale {
        let seed = seeds.next_u64();
        let legal = Sample::legal(seed, SENDS);
        let history = legal.clone().with(None).expect("nothing is planted, so nothing lacks room");
        let verdict = check(&history);
        events += history.len();
        findings.acked += verdict.acked;
        findings.indeterminate += verdict.indeterminate;
        findings.lost += verdict.lost();
        findings.doubled += verdict.doubled();
        let named = verdict.broken.iter().map(|broken| format!("legal history of seed {seed}: {broken}"));
        findings.broken.extend(named);
        for (place, plant) in Plant::ALL.into_iter().enumerate() {
            let Some(history) = legal.clone().with(Some(plant)) else { continue };
            planted[place] += 1;
            found[place] += u64::from(check(&history).broken.iter().any(|broken| plant.is_named_by(broken)));
        }
    }
    findings.figures.push(("events in legal histories".to_owned(), events.to_string()));
    for (place, plant) in Plant::ALL.into_iter().enumerate() {
        findings.faults.insert(format!("planted bug: {}", plant.name()), planted[place]);
        let caught = planted[place] > 0 && found[place] == planted[place];
        let seen = format!("{} of {} named", found[place], planted[place]);
        findings.controls.push(Control { planted: plant.name().to_owned(), caught, seen });
    }
    Ok(findings)
}
