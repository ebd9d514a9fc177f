//! `prove upgrade`: teams that work under the binary of each commit whose state is stored, and go on under this
//! checkout's, on each store and in each order; and the stored state itself.

use super::{Control, Findings, Request};
use crate::build::Profile;
use crate::revision::Revision;
use crate::stored::{stored, stored_below};
use std::collections::BTreeMap;
use testkit::bin::Binary;
use testkit::fleet::races::Store;
use testkit::fleet::upgrade::{Damage, Order, Outcome, Plan, StoredTeam, run as upgraded};

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let workspace = request.workspace;
    let new = Binary::at(request.faulted_binary()?);
    let (mut findings, mut changes) = (Findings::default(), 0);
    let commits = stored(&workspace.root)?;
    for (commit, _) in &commits {
        let revision = Revision::find(&workspace.root, commit)?;
        let old = Binary::at(revision.product(workspace, Profile::Release)?);
        for (name, folder, store) in
            [("SQLite", "sqlite", Store::Sqlite), ("PostgreSQL", "postgres", Store::Postgres)]
        {
            for order in Order::ALL {
                let plan = Plan {
                    old: old.clone(),
                    new: new.clone(),
                    store,
                    order,
                    messages: request.scale,
                    damage: None,
                };
                let outcome = upgraded(&plan)?;
                changes += outcome.changes;
                note(&mut findings, &format!("{commit} on {name}, {}", order.name()), &outcome);
            }
            let folder = stored_below(&workspace.root).join(commit).join(folder);
            let outcome = StoredTeam::read(&folder)?.go_on(&new, None)?;
            note(&mut findings, &format!("{commit} on {name}, as it was stored"), &outcome);
        }
        findings.controls.extend(controls(&old, &new)?);
    }
    findings.faults =
        BTreeMap::from([("kill -9 of a part, the next life of another version".to_owned(), changes)]);
    let names: Vec<&str> = commits.iter().map(|(commit, _)| commit.as_str()).collect();
    findings.figures.insert(0, ("old commits".to_owned(), names.join(", ")));
    Ok(findings)
}

fn note(findings: &mut Findings, what: &str, outcome: &Outcome) {
    findings.acked += outcome.acked;
    findings.broken.extend(outcome.broken.iter().map(|sentence| format!("{what}: {sentence}")));
    let told = format!("{} answers kept, {:.1} s", outcome.acked, outcome.elapsed.as_secs_f64());
    findings.figures.push((what.to_owned(), told));
}

/// Something is taken out of the old state; the judge must say what is missing.
fn controls(old: &Binary, new: &Binary) -> anyhow::Result<Vec<Control>> {
    let planted = |damage: Damage| {
        let outcome = upgraded(&Plan {
            old: old.clone(),
            new: new.clone(),
            store: Store::Sqlite,
            order: Order::AllAtOnce,
            messages: 3,
            damage: Some(damage),
        })?;
        let seen = outcome.broken.first().cloned().unwrap_or_else(|| "nothing".to_owned());
        Ok(Control { planted: damage.name().to_owned(), caught: !outcome.broken.is_empty(), seen })
    };
    Damage::ALL.into_iter().map(planted).collect()
}
