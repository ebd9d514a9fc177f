//! `cargo xtask tidy`: what the tree must look like, checked also as an ordinary test.
//!
//! Figures of size fail only on their ratchet: what is within the project's taste passes, what is beyond it today
//! may shrink and not grow.

mod figures;
mod graph;
mod ratchet;
mod rules;
mod source;

use crate::prove::{self, Standing};
use crate::workspace::Workspace;
use crate::{Ending, docs, page};

pub use figures::Figure;
pub use source::rust_files;

/// Prints the figures and everything that is wrong.
pub fn run(workspace: &Workspace) -> anyhow::Result<Ending> {
    let (figures, findings) = look(workspace)?;
    for figure in &figures {
        println!("{figure}");
    }
    // Told and no fault: a page is measured by whoever has the hours for it.
    for (proof, standing) in prove::standings(workspace)? {
        if standing != Standing::Current {
            println!("old proof: {}: {standing}", proof.name);
        }
    }
    for finding in &findings {
        println!("untidy: {finding}");
    }
    Ok(if findings.is_empty() { Ending::Holds } else { Ending::Broken })
}

/// Everything that is wrong, a sentence each.
pub fn findings(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    Ok(look(workspace)?.1)
}

/// Writes today's figures down as limits, where they are better than the limits of before.
pub fn tighten(workspace: &Workspace) -> anyhow::Result<Ending> {
    let figures = figures::measure(&source::read(workspace)?);
    ratchet::tighten(workspace, &figures)?;
    run(workspace)
}

fn look(workspace: &Workspace) -> anyhow::Result<(Vec<Figure>, Vec<String>)> {
    let sources = source::read(workspace)?;
    let figures = figures::measure(&sources);
    let mut findings = graph::check(&workspace.packages);
    findings.extend(rules::check(&sources));
    findings.extend(ratchet::check(workspace, &figures)?);
    findings.extend(docs::stale(workspace));
    findings.extend(page::stale(&workspace.root.join("web"))?);
    Ok((figures, findings))
}
