//! A standby of PostgreSQL takes the place of a server that died under load, and the brokers are pointed at it.
//!
//! Invariants:
//! - A synchronous standby is judged as any run of brokers: all that was acknowledged is there, once.
//! - One that lagged lacks what was acknowledged last. `broker check` names it before; what daemons sent is there all the
//!   same, once, since they send it again; what callers were told over HTTP is theirs to send again, and counted.

use super::closing;
use super::stage::{NODES, Servers, Stage};
use crate::bin::Binary;
use crate::fleet::FleetError;
use crate::history::{self, Act, Event, MessageKey};
use crate::postgres::Private;
use crate::stopwatch::Stopwatch;
use crate::wait::wait_for;
use std::collections::BTreeMap;
use std::time::Duration;
use tempfile::TempDir;

/// What the standby is called.
const NAME: &str = "standby1";
/// Two brokers take so many messages within this, on a busy machine.
const LOAD_BOUND: Duration = Duration::from_secs(120);

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A binary with faults.
    pub binary: Binary,
    /// What the standby has.
    pub standby: Standby,
    /// Receipts before the lag, before the death and after the promotion, each.
    pub receipts: usize,
    /// Decides what writers do.
    pub seed: u64,
    /// Whether brokers do not look at what daemons know to be accepted; something must be found then.
    pub planted: bool,
}

/// What a standby has when it is promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standby {
    /// All that was acknowledged.
    Synchronous,
    /// What was acknowledged up to some moment.
    Lagging,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Messages that were acknowledged.
    pub acked: u64,
    /// Acknowledged by a daemon, or under a synchronous standby by a broker, and not there.
    pub lost: u64,
    /// There more than once.
    pub doubled: u64,
    /// Acknowledged over HTTP and lost with the server, as `broker check` had warned.
    pub gone_over_http: u64,
    /// Receipts of messages that daemons sent again, which stand at another place now.
    pub sent_again: u64,
    /// Whatever must not be, a sentence each.
    pub broken: Vec<String>,
    /// Real time.
    pub elapsed: Duration,
}

/// Fails over, reads and judges.
///
/// # Errors
/// When the run cannot be finished; losses are no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, FleetError> {
    let watch = Stopwatch::start();
    let (history, primary) = (TempDir::new()?, Private::start()?);
    let standby = primary.standby(NAME)?;
    if plan.standby == Standby::Synchronous {
        primary.wait_for_standby(NAME)?;
    }
    let (stage, mut servers) = Stage::open(&plan.binary, primary, history.path())?;
    let mut outcome = Outcome { broken: warned(plan, &servers)?, ..Outcome::default() };
    let log = std::thread::scope(|scope| {
        let writers: Vec<_> =
            stage.writers(plan.seed)?.into_iter().map(|writer| scope.spawn(|| writer.write())).collect();
        let failed_over = fail_over(plan, &stage, &mut servers, standby);
        stage.end();
        for writer in writers {
            writer.join().expect("a writer ends with an error, not with a panic")?;
        }
        failed_over?;
        closing::close(&stage)
    })?;
    closing::audit(&stage, &mut servers)?;
    outcome.broken.extend(stage.amiss());
    let events = history::read_folder(history.path())?;
    let (_, moved) = stage.told.compare(&log);
    match plan.standby {
        Standby::Synchronous => {
            let verdict = history::check(&events);
            outcome.acked = verdict.acked;
            (outcome.lost, outcome.doubled) = (verdict.lost() + moved.len() as u64, verdict.doubled());
            outcome.broken.extend(verdict.broken.iter().map(ToString::to_string).chain(moved));
        }
        Standby::Lagging => {
            outcome.sent_again = stage.told.moved(&log);
            judge_lagging(&mut outcome, &events);
        }
    }
    outcome.elapsed = watch.elapsed();
    Ok(outcome)
}

impl Outcome {
    /// Nothing lost, nothing doubled, nothing else that must not be.
    pub fn holds(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.broken.is_empty()
    }
}

/// `broker check` names a standby that no commit waits for, and no other.
fn warned(plan: &Plan, servers: &Servers) -> Result<Vec<String>, FleetError> {
    let (_, said) = servers.brokers[0].check(&servers.postgres.url())?;
    let is_named = said.contains("synchronous_standby_names") && said.contains(NAME);
    let is_as_expected = is_named == (plan.standby == Standby::Lagging);
    Ok((!is_as_expected)
        .then(|| format!("broker check of a {:?} standby said {said}", plan.standby))
        .into_iter()
        .collect())
}

/// Load, a lag when that is the plan, the server's death under load, the promotion, and load again.
fn fail_over(plan: &Plan, stage: &Stage, servers: &mut Servers, standby: Private) -> Result<(), FleetError> {
    await_receipts(stage, plan.receipts, &[])?;
    match plan.standby {
        Standby::Synchronous => await_receipts(stage, plan.receipts, &[])?,
        Standby::Lagging => {
            standby.stop_streaming()?;
            await_receipts(stage, plan.receipts, &NODES)?;
        }
    }
    servers.postgres.kill9();
    standby.promote()?;
    for (which, broker) in servers.brokers.iter_mut().enumerate() {
        let mut faults = vec![servers.clocks.set(which)?];
        faults.extend(plan.planted.then(|| "bug:ledger.no_witnesses".to_owned()));
        broker.kill9();
        broker.point_at(&standby.url());
        broker.restart(&faults)?;
    }
    servers.postgres = standby;
    await_receipts(stage, plan.receipts, &[])
}

/// So many more than there are, some of each of `senders` among them.
fn await_receipts(stage: &Stage, more: usize, senders: &[&str]) -> Result<(), FleetError> {
    let before = stage.told.counts();
    let enough = before.values().sum::<usize>() + more;
    let look = || {
        let counts = stage.told.counts();
        let has_more = |name: &&str| counts.get(*name) > before.get(*name);
        (counts.values().sum::<usize>() >= enough && senders.iter().all(has_more)).then_some(())
    };
    Ok(wait_for("receipts of callers and daemons", LOAD_BOUND, look)?)
}

fn judge_lagging(outcome: &mut Outcome, events: &[Event]) {
    let mut seen: BTreeMap<(&str, MessageKey), u64> = BTreeMap::new();
    let mut acked: BTreeMap<MessageKey, &[String]> = BTreeMap::new();
    for event in events {
        match &event.act {
            Act::Send { readers, .. } if event.outcome == history::Outcome::Ok => {
                acked.insert(event.key(), readers);
            }
            Act::Render { .. } | Act::Receive { .. } => {
                *seen.entry((&event.proc, event.key())).or_default() += 1;
            }
            Act::Send { .. } | Act::Listed { .. } => {}
        }
    }
    outcome.acked = acked.len() as u64;
    for (key, readers) in acked {
        let lacks = |reader: &&String| !seen.contains_key(&(reader.as_str(), key.clone()));
        let Some(reader) = readers.iter().find(lacks) else { continue };
        if NODES.contains(&key.sender.as_str()) {
            outcome.lost += 1;
            outcome
                .broken
                .push(format!("lost: {key} was acknowledged by its daemon and never reached {reader}"));
        } else {
            outcome.gone_over_http += 1;
        }
    }
    for ((reader, key), times) in seen.iter().filter(|(_, times)| **times > 1) {
        outcome.doubled += 1;
        outcome.broken.push(format!("doubled: {reader} saw {key} {times} times"));
    }
    if outcome.gone_over_http == 0 || outcome.sent_again == 0 {
        outcome.broken.push("the standby had everything: it did not lag".to_owned());
    }
}
