//! `prove daemon`: one daemon killed in every state of a row, kept from its broker for days, and with a broker that
//! flaps, judged by what callers were told, what the logs hold and what the inbox hands out.

use super::{Control, Findings, Request};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::bin::Binary;
use testkit::fleet::daemon::{cells, days, flaps};

/// A healed row ends within this, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// A row that a planted bug keeps from ending is given so long to end all the same.
const CONTROL_PATIENCE: Duration = Duration::from_secs(5);
/// Visits of one point in one state that a long run dies at; the usual one dies at the first.
const VISITS_MAX: u64 = 3;
/// From so many seconds of flapping on, a run is a long one.
const ALL_VISITS_FROM: u64 = 600;
/// How many states share a home; homes run beside each other.
const STATES_PER_HOME: usize = 3;
const DAYS: u32 = 8;
const DAILY: u32 = 40;

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let span = Duration::from_secs(request.scale);
    let visits_max = if request.scale < ALL_VISITS_FROM { 1 } else { VISITS_MAX };
    // A life is mostly waiting; several homes at once, and the flapping beside them, keep the cores busy.
    let (flapped, killed) = std::thread::scope(|scope| {
        let plan = flaps::Plan { binary: binary.clone(), span, planted: Vec::new() };
        let flapped = scope.spawn(move || flaps::run(&plan));
        let homes = cells::State::ALL.chunks(STATES_PER_HOME).map(|states| {
            let plan = cells::Plan {
                binary: binary.clone(),
                states: states.to_vec(),
                points: cells::Points::All { visits_max },
                planted: None,
                patience: PATIENCE,
            };
            scope.spawn(move || cells::run(&plan))
        });
        let homes: Vec<_> = homes.collect();
        let ended = "a run ends with an error, not with a panic";
        let killed = homes.into_iter().map(|home| home.join().expect(ended)).collect::<Result<Vec<_>, _>>();
        (flapped.join().expect(ended), killed)
    });
    let killed = killed?.into_iter().fold(cells::Outcome::default(), cells::Outcome::and);
    let waited = days::run(&days::Plan { binary: binary.clone(), days: DAYS, daily: DAILY, planted: None })?;
    let mut findings = findings(&killed, &waited, &flapped?);
    findings.controls = controls(&binary)?;
    Ok(findings)
}

fn findings(killed: &cells::Outcome, waited: &days::Outcome, flapped: &flaps::Outcome) -> Findings {
    let broken = [killed.amiss.clone(), waited.wrong.clone(), flapped.amiss.clone()];
    let order = flapped.verdict.broken.iter().map(ToString::to_string);
    let mut faults = BTreeMap::from([
        ("kill -9 of the broker, a second after its start".to_owned(), flapped.deaths),
        ("day without a broker".to_owned(), u64::from(DAYS)),
        ("kill -9 of the daemon without a broker".to_owned(), waited.starts),
    ]);
    for (point, states) in killed.matrix() {
        let words: Vec<String> = states.iter().map(ToString::to_string).collect();
        let times = killed.died.iter().filter(|cell| cell.point == point).count() as u64;
        faults.insert(format!("crash at {point}: {}", words.join("; ")), times);
    }
    Findings {
        faults,
        acked: killed.acked + waited.acked + flapped.verdict.acked,
        indeterminate: killed.unanswered + flapped.verdict.indeterminate,
        lost: killed.lost.len() as u64 + flapped.verdict.lost() + flapped.gone.len() as u64,
        doubled: killed.doubled.len() as u64 + flapped.verdict.doubled(),
        broken: broken.into_iter().flatten().chain(order).chain(killed.lost.clone()).collect(),
        controls: Vec::new(),
        figures: figures(killed, waited, flapped),
    }
}

fn figures(
    killed: &cells::Outcome,
    waited: &days::Outcome,
    flapped: &flaps::Outcome,
) -> Vec<(String, String)> {
    let figure = |name: &str, value: String| (name.to_owned(), value);
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    vec![
        figure("states of a row", cells::State::ALL.len().to_string()),
        figure("crash points of the daemon", killed.matrix().len().to_string()),
        figure("cells (state, point, visit) died in", killed.died.len().to_string()),
        figure("cells whose point that life did not reach", killed.missed.len().to_string()),
        figure("time of the cells", seconds(killed.elapsed)),
        figure("handed over in 8 days without a broker", waited.acked.to_string()),
        figure("of these, given up past their deliver-by", waited.expired.to_string()),
        figure("attempted before the outage, given up for their age", waited.aged.to_string()),
        figure("drained after the broker's return in", seconds(waited.drained_in)),
        figure("deaths of the flapping broker", flapped.deaths.to_string()),
        figure("acknowledged meanwhile, in 8 lanes of 2 daemons", flapped.verdict.acked.to_string()),
        figure("receipts compared with the logs", flapped.receipts.to_string()),
        figure("outboxes empty after the last return in", seconds(flapped.drained_in)),
        figure("time of the flapping", seconds(flapped.elapsed)),
    ]
}

fn controls(binary: &Binary) -> anyhow::Result<Vec<Control>> {
    let cell = |state, (point, visit): (&str, u64), bug: &str, patience| {
        let points = cells::Points::Only(vec![(point.to_owned(), visit)]);
        let (states, planted) = (vec![state], Some(bug.to_owned()));
        cells::run(&cells::Plan { binary: binary.clone(), states, points, planted, patience })
    };
    let before = |job: &str| format!("bug:{}:{job}", sqlite::fault::ANSWER_BEFORE_COMMIT);
    let outbox =
        cell(cells::State::Late, ("mailbox.accept.before_commit", 2), &before("mailbox.accept"), PATIENCE)?;
    let wire = cell(
        cells::State::Unread,
        ("mailbox.recover.after_commit", 1),
        "bug:mailbox.inflight_stays",
        CONTROL_PATIENCE,
    )?;
    let planted = Some("bug:mailbox.age_of_unattempted".to_owned());
    let age = days::run(&days::Plan { binary: binary.clone(), days: DAYS, daily: 2, planted })?;
    let faults = vec![before("ledger.accept"), "crash:ledger.accept.before_commit:5".to_owned()];
    let span = Duration::from_secs(10);
    let ledger = flaps::run(&flaps::Plan { binary: binary.clone(), span, planted: faults })?;
    Ok(vec![
        control("the answer before the commit of mailbox.accept", &outbox.lost),
        control("a start leaves rows inflight", &wire.lost),
        control("rows never attempted have an age", &age.wrong),
        control("the answer before the commit of ledger.accept, under flapping", &ledger.findings()),
    ])
}

fn control(planted: &str, found: &[String]) -> Control {
    Control {
        planted: planted.to_owned(),
        caught: !found.is_empty(),
        seen: format!("{} findings; {}", found.len(), found.first().map_or("nothing", String::as_str)),
    }
}
