//! `prove agents`: two agents under the command adapter, everything killed in every chain of their conversation.

use super::{Control, Findings, Request};
use std::collections::BTreeMap;
use testkit::bin::Binary;
use testkit::parley::{Outcome, Plan};

/// Messages between two kills; an automatic chain has at most 64.
const MESSAGES_PER_KILL: u64 = 50;
/// A planted bug shows when a program dies with everything; some kills fall between two programs, more of them where
/// the messages between two kills are few.
const CONTROL_MESSAGES: u64 = 500;
const CONTROL_KILLS: u64 = 10;

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let talked = |messages, kills, faults: &[&str]| {
        let faults = faults.iter().map(|fault| (*fault).to_owned()).collect();
        testkit::parley::run(&Plan { binary: binary.clone(), messages, kills, seed: request.seed, faults })
    };
    let kills = request.scale.div_ceil(MESSAGES_PER_KILL);
    let mut findings = findings(&talked(request.scale, kills, &[])?);
    let unmarked = talked(CONTROL_MESSAGES, CONTROL_KILLS, &["bug:mailbox.turn_unmarked"])?;
    let found = unmarked.findings();
    findings.controls.push(Control {
        planted: "a rerun is handed out as if it were the first attempt".to_owned(),
        caught: !unmarked.holds(),
        seen: format!("{} findings; {}", found.len(), found.first().map_or("nothing", String::as_str)),
    });
    Ok(findings)
}

fn findings(outcome: &Outcome) -> Findings {
    let figure = |name: &str, value: u64| (name.to_owned(), value.to_string());
    Findings {
        faults: BTreeMap::from([("SIGKILL of product, adapters and programs".to_owned(), outcome.kills)]),
        acked: outcome.messages,
        indeterminate: 0,
        lost: outcome.lost.len() as u64,
        doubled: outcome.doubled.len() as u64,
        broken: outcome.findings(),
        controls: Vec::new(),
        figures: vec![
            figure("programs started", outcome.programs),
            figure("of these, for messages marked as redelivered", outcome.reruns),
            figure("messages interrupted twice, listed for a person", outcome.given_up),
            ("time".to_owned(), format!("{:.1} s", outcome.elapsed.as_secs_f64())),
        ],
    }
}
