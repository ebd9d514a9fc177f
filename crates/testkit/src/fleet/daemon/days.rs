//! Days without a broker: everything handed over is kept, and carried in order when it is back.
//!
//! Days pass by a clock that lives ahead of the machine's. Meanwhile the daemon is killed and started again, and is
//! never told of a network. At the end the age rules speak: a row that was never attempted has no age, one whose
//! deliver-by passed is given up, one first attempted before the outage is too old to be tried again, and one that was
//! taken before it is learnt.
//!
//! Invariants:
//! - The broker remembers ids for seven days, the least there is, so that an outage can outlast it.
//! - A lane's log must be exactly what was handed over, in that order: one comparison finds what is lost, doubled,
//!   late or out of order.

use super::log::{of_row, of_topic};
use super::site::{SUBJECT, Site, WITNESS, await_row, is_over, send, taken};
use super::{CARRY_BOUND, await_empty};
use crate::bin::Binary;
use crate::fleet::FleetError;
use crate::kills::audience::{Row, text_of};
use crate::stopwatch::Stopwatch;
use crate::wait::wait_for;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// The least the broker remembers ids for.
const REMEMBERED: [&str; 2] = ["--dedupe", "7"];
/// How long a message with a deadline is good for: the last of them are still good at the end.
const TTL: Duration = Duration::from_secs(60 * 3600);
/// Lanes that wait.
const TOPICS: [&str; 2] = ["waiting-a", "waiting-b"];
/// The lane whose rows have deadlines.
const TIMED: &str = "timed";
/// Attempted before the outage and taken; the answer was lost.
const UNHEARD: &str = "unheard";
/// Attempted before the outage and never read.
const UNREAD: &str = "unread";

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A binary with faults.
    pub binary: Binary,
    /// How long the broker is away.
    pub days: u32,
    /// Messages a lane and day.
    pub daily: u32,
    /// What is wrong with the daemon on purpose; something must be found then.
    pub planted: Option<String>,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Messages answered with 2xx.
    pub acked: u64,
    /// Starts of the daemon while it had no broker.
    pub starts: u64,
    /// Rows given up because their deliver-by had passed.
    pub expired: u64,
    /// Rows given up because they were too old.
    pub aged: u64,
    /// From the broker's return to an outbox without waiting rows.
    pub drained_in: Duration,
    /// Lanes whose log is not what was handed over, a sentence each.
    pub wrong: Vec<String>,
    /// Real time.
    pub elapsed: Duration,
}

/// Lets the days pass, heals and judges.
///
/// # Errors
/// When the run cannot be finished; losses are no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, FleetError> {
    let watch = Stopwatch::start();
    let site = Site::open(&plan.binary, &[], &REMEMBERED)?;
    let clock = site.subject.file("ahead");
    let mut faults = vec![format!("clock:{}", clock.display())];
    let ahead = faults.clone();
    faults.extend(plan.planted.clone());
    let mut run = Run { site, clock, ahead, faults, handed: Vec::new(), outcome: Outcome::default() };
    run.pass(Duration::ZERO)?;
    run.attempt()?;
    for day in 0..plan.days {
        run.spend(day, plan.daily)?;
    }
    run.pass(DAY * plan.days)?;
    run.heal()?;
    run.judge(plan.days)?;
    run.outcome.elapsed = watch.elapsed();
    Ok(run.outcome)
}

struct Run {
    site: Site,
    clock: PathBuf,
    /// Faults of a sound process.
    ahead: Vec<String>,
    /// Faults of the daemon under test.
    faults: Vec<String>,
    /// Everything answered with 2xx while the broker was away, in order: destination and id.
    handed: Vec<(String, String)>,
    outcome: Outcome,
}

impl Run {
    /// It is so much later now.
    fn pass(&self, time: Duration) -> Result<(), FleetError> {
        // Renamed into place: a reader meets the old time or the new one.
        let fresh = self.clock.with_extension("new");
        std::fs::write(&fresh, time.as_micros().to_string())?;
        Ok(std::fs::rename(fresh, &self.clock)?)
    }

    /// Two rows on the wire, then no broker: one is taken and its daemon dies of the answer, the other's broker dies
    /// of it.
    fn attempt(&mut self) -> Result<(), FleetError> {
        self.site.broker.kill9();
        self.site.broker.restart(&self.ahead)?;
        self.site.witness.restart(&self.ahead_and("crash:mailbox.settle.before_commit"))?;
        self.site.witness.await_link()?;
        taken(&send(&mut self.site.witness.door(), UNHEARD, &format!("#{UNHEARD}"), &text_of(UNHEARD))?)?;
        wait_for("a death of an answer", CARRY_BOUND, || self.site.witness.has_ended().then_some(()))?;
        self.site.broker.kill9();
        self.site.broker.restart(&self.ahead_and("crash:ledger.accept.before_commit"))?;
        self.site.subject.restart(&self.ahead)?;
        self.site.subject.await_link()?;
        taken(&send(&mut self.site.subject.door(), UNREAD, &format!("#{UNREAD}"), &text_of(UNREAD))?)?;
        self.outcome.acked += 2;
        let tried = |row: &Value| row["status"] == "pending" && row["attempts"] == 1;
        await_row(&self.site.subject, UNREAD, CARRY_BOUND, "tried once", tried)?;
        self.site.broker.kill9();
        Ok(())
    }

    fn ahead_and(&self, fault: &str) -> Vec<String> {
        self.ahead.iter().cloned().chain([fault.to_owned()]).collect()
    }

    /// A day without a broker: a start, and something for every lane.
    fn spend(&mut self, day: u32, daily: u32) -> Result<(), FleetError> {
        self.pass(DAY * day)?;
        if day.is_multiple_of(2) {
            self.site.subject.kill9();
            self.site.subject.restart(&self.faults)?;
            self.outcome.starts += 1;
        }
        for n in 0..daily {
            for topic in TOPICS {
                self.hand_over(&format!("{topic}.{day}.{n}"), &format!("#{topic}"), None)?;
            }
            self.hand_over(&format!("direct.{day}.{n}"), &format!("@{WITNESS}"), None)?;
        }
        self.hand_over(&format!("{TIMED}.{day}"), &format!("#{TIMED}"), Some(TTL))
    }

    fn hand_over(&mut self, id: &str, to: &str, ttl: Option<Duration>) -> Result<(), FleetError> {
        let mut message = json!({"to": to, "body": text_of(id), "client_message_id": id});
        if let Some(ttl) = ttl {
            message["ttl"] = ttl.as_secs().into();
        }
        taken(&self.site.subject.door().post("/v1/send", &message)?)?;
        self.handed.push((to.to_owned(), id.to_owned()));
        self.outcome.acked += 1;
        Ok(())
    }

    /// The broker is back.
    fn heal(&mut self) -> Result<(), FleetError> {
        self.site.broker.restart(&self.ahead)?;
        let back = Stopwatch::start();
        // Who has knocked in vain for days knocks seldom; a person who knows better says so.
        self.site.subject.door().post("/v1/meshes/home/resume", &json!({}))?;
        await_empty(&[&self.site.subject])?;
        self.outcome.drained_in = back.elapsed();
        self.site.witness.restart(&self.ahead)?;
        self.site.witness.await_link()?;
        Ok(())
    }

    fn judge(&mut self, days: u32) -> Result<(), FleetError> {
        for topic in TOPICS {
            let log = of_topic(&self.site.witness, topic)?;
            self.compare(&format!("#{topic}"), &log, |_| true);
        }
        let newest = self.handed.iter().rev().find(|(to, _)| to.starts_with('@')).cloned();
        if let Some((to, id)) = newest {
            let row = await_row(&self.site.subject, &id, CARRY_BOUND, "at its end", is_over)?;
            let log = of_row(&self.site.subject, &row)?;
            self.compare(&to, &log, |_| true);
        }
        self.judge_timed(days)?;
        self.judge_attempted()
    }

    /// Rows with a deadline: the old ones are given up and say so, the others stand in their log.
    fn judge_timed(&mut self, days: u32) -> Result<(), FleetError> {
        let good = |day: u32| DAY * day + TTL > DAY * days;
        for day in (0..days).filter(|day| !good(*day)) {
            let id = format!("{TIMED}.{day}");
            let row = await_row(&self.site.subject, &id, CARRY_BOUND, "at its end", is_over)?;
            let expected = [("status", "dead"), ("dead_reason", "deliver_by"), ("outcome", "not_sent")];
            if expected.iter().all(|(field, word)| row[field] == *word) && row["receipt"]["rung"] == "expired"
            {
                self.outcome.expired += 1;
            } else {
                self.outcome.wrong.push(format!("{id}, whose time was over, ended as {row}"));
            }
        }
        let log = of_topic(&self.site.witness, TIMED)?;
        let lived: Vec<String> =
            (0..days).filter(|day| good(*day)).map(|day| format!("{TIMED}.{day}")).collect();
        self.compare(&format!("#{TIMED}"), &log, |id| lived.iter().any(|lived| lived == id));
        Ok(())
    }

    /// Rows of before. One that was never taken is too old to be tried again. The other was taken, and a broker that did
    /// not run forgot nothing meanwhile, whatever the date is: it is learnt and not tried again.
    fn judge_attempted(&mut self) -> Result<(), FleetError> {
        let unread =
            await_row(&self.site.subject, UNREAD, CARRY_BOUND, "given up", |row| row["status"] == "dead")?;
        if unread["dead_reason"] == "max_age" {
            self.outcome.aged += 1;
        } else {
            self.outcome.wrong.push(format!("{UNREAD}, attempted before the outage, ended as {unread}"));
        }
        let unheard = await_row(&self.site.witness, UNHEARD, CARRY_BOUND, "at its end", is_over)?;
        if unheard["status"] != "done" || !unheard["broker_message_id"].is_string() {
            self.outcome.wrong.push(format!("{UNHEARD}, taken before the outage, ended as {unheard}"));
        }
        for (topic, right) in [(UNHEARD, 1), (UNREAD, 0)] {
            let times = of_topic(&self.site.witness, topic)?.len();
            if times != right {
                self.outcome.wrong.push(format!("{topic} stands in its log {times} times, not {right}"));
            }
        }
        Ok(())
    }

    /// A lane's log against what was handed over for it.
    fn compare(&mut self, to: &str, log: &[Row], kept: impl Fn(&str) -> bool) {
        let handed = self.handed.iter().filter(|(lane, id)| lane == to && kept(id));
        let expected: Vec<&str> = handed.map(|(_, id)| id.as_str()).collect();
        let own = log.iter().filter(|row| row.sender == SUBJECT);
        let found: Vec<&str> = own.map(|row| row.client_message_id.as_str()).collect();
        if expected != found {
            let first = expected.iter().zip(&found).position(|(one, other)| one != other);
            let place = first.unwrap_or(expected.len().min(found.len()));
            let sentence = format!(
                "{to}: {} handed over, {} in the log; at place {} stands {:?} instead of {:?}",
                expected.len(),
                found.len(),
                place + 1,
                found.get(place),
                expected.get(place),
            );
            self.outcome.wrong.push(sentence);
        }
    }
}

impl Outcome {
    /// Every lane is as it must be.
    pub fn holds(&self) -> bool {
        self.wrong.is_empty()
    }
}
