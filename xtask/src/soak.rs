//! `cargo xtask soak`: the proofs again and again, each time with a new seed, until the time is up.
//!
//! It writes no page: a soak's result is that nothing broke, or the one command that breaks it again.

use crate::Ending;
use crate::prove::{self, PROOFS, Proof};
use crate::workspace::Workspace;
use std::time::Duration;
use testkit::seeded::Seeded;
use testkit::stopwatch::Stopwatch;

/// Runs `name`, or every proof in turn.
pub fn run(workspace: &Workspace, name: Option<&str>, minutes: u64, seed: u64) -> anyhow::Result<Ending> {
    let chosen: Vec<&Proof> = match (name, prove::find(name)) {
        (None, _) => PROOFS.iter().collect(),
        (Some(_), Some(proof)) => vec![proof],
        (Some(_), None) => return Ok(prove::unknown(name)),
    };
    let bound = Duration::from_secs(minutes * 60);
    let watch = Stopwatch::start();
    let mut seeds = Seeded::new(seed);
    let mut rounds = 0_u64;
    while rounds == 0 || watch.elapsed() < bound {
        rounds += 1;
        for proof in &chosen {
            let report = proof.report(workspace, proof.scale, seeds.next_u64())?;
            let (acked, spent) = (report.findings.acked, watch.elapsed().as_secs());
            println!(
                "{spent:>6} s  round {rounds}  {}  seed {}  {acked} acknowledged",
                proof.name, report.seed
            );
            if !report.holds() {
                println!("{report}\nit breaks again with: {}", report.again());
                return Ok(Ending::Broken);
            }
        }
    }
    println!("{rounds} rounds held, {} s", watch.elapsed().as_secs());
    Ok(Ending::Holds)
}
