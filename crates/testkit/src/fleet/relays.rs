//! A relay before a hub: writes over many outages, with kill -9 of either side and days offline.
//!
//! - Writers are callers with a key for each write, who ask again with the same key until they are answered.
//! - Judged are the hub's records as a reader sees them, and what the relay's operator can list.
//! - Each life of hub and relay lives by one settable clock, so that days pass for both.

mod caller;
pub mod draws;
mod judge;
mod stage;

pub(super) use caller::Caller as RelayCaller;

use crate::bin::Binary;
use crate::fleet::FleetError;
use crate::seeded::Seeded;
use crate::stopwatch::Stopwatch;
use crate::wait::wait_for;
use stage::{Stage, StageFaults};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(super) use caller::Caller;

/// Sessions that write at once, each in its own order.
const SESSIONS: u64 = 8;
/// One in so many outages ends with somebody else's write to the same record.
const CONFLICT_EVERY: u64 = 10;
/// What the hub's own record of a key must not be: written apart from its effect.
const PLANTED: &str = "bug:ledger.idem_own_transaction";
/// Until a round has come so far, on a busy machine.
const ROUND_BOUND: Duration = Duration::from_secs(120);

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The product with faults.
    pub binary: Binary,
    /// Writes in all.
    pub writes: u64,
    /// Outages they are spread over.
    pub outages: u64,
    /// Decides when what is killed.
    pub seed: u64,
    /// With the key's record in a transaction of its own.
    pub planted: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Writes that were answered.
    pub acked: u64,
    /// Of them: with a receipt first.
    pub queued: u64,
    /// Answered, and nowhere.
    pub lost: u64,
    /// In the hub more than once.
    pub doubled: u64,
    /// Behind a later write of the same session.
    pub overtaken: u64,
    /// Somebody else's write that a late one replaced.
    pub overwritten: u64,
    /// Past their age, and listed so.
    pub expired: u64,
    /// Conflicts kept for a person.
    pub conflicts: u64,
    /// kill -9 of the hub.
    pub hub_kills: u64,
    /// kill -9 of the relay.
    pub relay_kills: u64,
    /// Whatever else must not be.
    pub broken: Vec<String>,
    /// How long it took.
    pub elapsed: Duration,
}

impl Outcome {
    /// Nothing lost, doubled, overtaken, overwritten or broken.
    pub fn holds(&self) -> bool {
        self.lost + self.doubled + self.overtaken + self.overwritten == 0 && self.broken.is_empty()
    }
}

/// Runs it.
pub fn run(plan: &Plan) -> Result<Outcome, FleetError> {
    let watch = Stopwatch::start();
    let hub = plan.planted.then(|| PLANTED.to_owned()).into_iter().collect();
    let mut stage = Stage::open(&plan.binary, StageFaults { hub, relay: Vec::new() })?;
    let mut run = Run { seeded: Seeded::new(plan.seed), outcome: Outcome::default(), answers: Vec::new() };
    let each = plan.writes / plan.outages / SESSIONS;
    for round in 0..plan.outages {
        run.outage(&mut stage, round, each)?;
        if round == plan.outages / 2 {
            run.days_offline(&mut stage)?;
        }
        if round % CONFLICT_EVERY == CONFLICT_EVERY / 2 {
            run.conflict(&mut stage, round)?;
        }
    }
    let Run { mut outcome, answers, .. } = run;
    judge::judge(&stage, &answers, &mut outcome)?;
    outcome.elapsed = watch.elapsed();
    Ok(outcome)
}

/// A write that was answered.
struct Answered {
    key: String,
    session: u64,
    queued: bool,
}

struct Run {
    seeded: Seeded,
    outcome: Outcome,
    answers: Vec<Answered>,
}

impl Run {
    /// Writers write; the hub dies somewhere in between, often the relay too; both come back.
    fn outage(&mut self, stage: &mut Stage, round: u64, each: u64) -> Result<(), FleetError> {
        let (total, count) = (each * SESSIONS, AtomicU64::new(0));
        let dies_at = total / 10 + self.seeded.below((total / 2).max(1));
        let back_at = dies_at + (total - dies_at) / 2;
        let kills_relay = self.seeded.chance(40);
        let (address, token) = (stage.relay_address, stage.local_token.clone());
        let answers = std::thread::scope(|scope| {
            let (count, token) = (&count, token.as_str());
            let writers: Vec<_> = (0..SESSIONS)
                .map(|session| {
                    scope.spawn(move || caller::write_all(address, token, round, session, each, count))
                })
                .collect();
            let reached = |mark: u64| {
                wait_for("the writers", ROUND_BOUND, || (count.load(Ordering::Relaxed) >= mark).then_some(()))
            };
            reached(dies_at)?;
            stage.hub.kill9();
            if kills_relay {
                reached(dies_at + (back_at - dies_at) / 2)?;
                stage.relay.kill9();
                stage.start_relay()?;
            }
            reached(back_at)?;
            stage.start_hub()?;
            Ok::<_, FleetError>(writers.into_iter().map(|writer| writer.join()).collect::<Vec<_>>())
        })?;
        for answered in answers {
            match answered {
                Ok(Ok(answers)) => self.answers.extend(answers),
                Ok(Err(sentence)) => self.outcome.broken.push(sentence),
                Err(_) => self.outcome.broken.push(format!("round {round}: a writer panicked")),
            }
        }
        self.outcome.hub_kills += 1;
        self.outcome.relay_kills += u64::from(kills_relay);
        stage.drain()
    }

    /// Writes wait for longer than their keys are remembered.
    fn days_offline(&mut self, stage: &mut Stage) -> Result<(), FleetError> {
        stage.hub.kill9();
        self.outcome.hub_kills += 1;
        let count = AtomicU64::new(0);
        for session in 0..SESSIONS {
            let wrote = caller::write_all(
                stage.relay_address,
                &stage.local_token,
                u64::MAX,
                SESSIONS + session,
                5,
                &count,
            );
            match wrote {
                Ok(answers) => self.answers.extend(answers),
                Err(sentence) => self.outcome.broken.push(sentence),
            }
        }
        stage.pass_days(15)?;
        stage.start_hub()?;
        stage.drain()
    }

    /// Somebody else writes to a record between a caller's write and its replay.
    fn conflict(&mut self, stage: &mut Stage, round: u64) -> Result<(), FleetError> {
        let path = format!("/tasks/t-{round}");
        stage.at_hub(
            "POST",
            "/tasks/",
            &serde_json::json!({"id": format!("t-{round}"), "title": "begun"}),
        )?;
        stage.at_relay("GET", &path, None)?;
        stage.hub.kill9();
        let mine = stage.at_relay("PATCH", &path, Some(&serde_json::json!({"title": "mine"})))?;
        if mine.status != 202 {
            self.outcome
                .broken
                .push(format!("round {round}: a write to a dead hub was answered {}", mine.status));
        }
        stage.relay.kill9();
        stage.start_hub()?;
        stage.at_hub("PATCH", &path, &serde_json::json!({"title": "theirs"}))?;
        stage.start_relay()?;
        stage.drain()?;
        let kept = stage.at_hub("GET", &path, &serde_json::Value::Null)?;
        self.outcome.overwritten += u64::from(kept.body["title"] != "theirs");
        let conflicts = stage.listed("conflict")?;
        self.outcome.conflicts += conflicts.len() as u64;
        if conflicts.len() != 1 {
            self.outcome.broken.push(format!("round {round}: {} conflicts instead of one", conflicts.len()));
        }
        for id in conflicts.iter().filter_map(|row| row["envelope_id"].as_str()) {
            stage.cli(&["relay", "outbox", "resolve", id, "--drop"])?;
        }
        self.outcome.hub_kills += 1;
        self.outcome.relay_kills += 1;
        Ok(())
    }
}
