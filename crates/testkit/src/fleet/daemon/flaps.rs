//! A broker that dies every second and comes back, while both daemons send in many lanes.
//!
//! Invariants:
//! - The broker dies by SIGKILL, at a moment nobody chose; only a planted bug makes it die at a point.
//! - A lane's writer waits for each answer before it hands over the next, so the order it must have is known.
//! - Waiting for the end needs no quiet time: when no row waits any more, all that was taken is in a log.

use super::await_empty;
use super::log::of_topic;
use super::site::{SUBJECT, Site, WITNESS, send};
use crate::bin::Binary;
use crate::fleet::FleetError;
use crate::fleet::servers::{Broker, Node};
use crate::history::{Act, MessageKey, Outcome as End, Recorder, Verdict, check, read_folder};
use crate::kills::audience::{Place, log_of, text_of};
use crate::kills::door::{Answer, Door};
use crate::kills::told::Told;
use crate::stopwatch::Stopwatch;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// How long the broker lives.
const LIFE: Duration = Duration::from_secs(1);
/// Lanes of each daemon.
const LANES: usize = 4;
/// Messages handed over before a lane looks whether the last was accepted, so that the outbox does not run ahead.
const BURST: u64 = 16;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A binary with faults.
    pub binary: Binary,
    /// How long the broker flaps.
    pub span: Duration,
    /// What is wrong with the broker on purpose; something must be found then.
    pub planted: Vec<String>,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Deaths of the broker.
    pub deaths: u64,
    /// The history's verdict: lost, doubled, out of order.
    pub verdict: Verdict,
    /// Receipts that the logs do not bear out, a sentence each.
    pub gone: Vec<String>,
    /// Whatever else must not be.
    pub amiss: Vec<String>,
    /// Receipts compared.
    pub receipts: u64,
    /// From the last return of the broker to an outbox without waiting rows.
    pub drained_in: Duration,
    /// Real time.
    pub elapsed: Duration,
}

/// Flaps, heals, reads and judges.
///
/// # Errors
/// When the run cannot be finished; losses are no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, FleetError> {
    let watch = Stopwatch::start();
    let history = TempDir::new()?;
    let mut site = Site::open(&plan.binary, &plan.planted, &[])?;
    let (told, over) = (Told::default(), AtomicBool::new(false));
    let mut amiss = Vec::new();
    let mut deaths = 0;
    std::thread::scope(|scope| {
        let lanes = lanes(&site).into_iter().map(|(name, n, door)| {
            let (told, over, history) = (&told, &over, history.path());
            scope.spawn(move || Lane::new(name, n, door, history)?.write(told, over))
        });
        let lanes: Vec<_> = lanes.collect();
        let flapped = flap(&mut site.broker, plan, &mut deaths);
        over.store(true, Ordering::SeqCst);
        for lane in lanes {
            amiss.extend(lane.join().expect("a lane ends with an error, not with a panic")?);
        }
        flapped
    })?;
    let healed = Stopwatch::start();
    await_empty(&[&site.subject, &site.witness])?;
    let drained_in = healed.elapsed();
    let logs = read_logs(&site, history.path(), &mut amiss)?;
    let verdict = check(&read_folder(history.path())?);
    let (receipts, gone) = told.compare(&logs);
    Ok(Outcome { deaths, verdict, gone, amiss, receipts, drained_in, elapsed: watch.elapsed() })
}

impl Outcome {
    /// Nothing lost, doubled, out of order or amiss.
    pub fn holds(&self) -> bool {
        self.verdict.holds() && self.gone.is_empty() && self.amiss.is_empty()
    }

    /// Everything that must not be, a sentence each.
    pub fn findings(&self) -> Vec<String> {
        let others = self.gone.iter().chain(&self.amiss).cloned();
        self.verdict.broken.iter().map(ToString::to_string).chain(others).collect()
    }
}

fn lanes(site: &Site) -> Vec<(&'static str, usize, Door)> {
    let of = |name, node: &Node| (0..LANES).map(|n| (name, n, node.door())).collect::<Vec<_>>();
    of(SUBJECT, &site.subject).into_iter().chain(of(WITNESS, &site.witness)).collect()
}

fn topic_of(name: &str, n: usize) -> String {
    format!("lane-{name}-{n}")
}

/// Kills and restarts until the span is over; the last life is without faults.
fn flap(broker: &mut Broker, plan: &Plan, deaths: &mut u64) -> Result<(), FleetError> {
    let watch = Stopwatch::start();
    while watch.elapsed() < plan.span {
        broker.ends_within(LIFE);
        broker.kill9();
        *deaths += 1;
        broker.restart(&plan.planted)?;
    }
    broker.kill9();
    broker.restart(&[])
}

fn read_logs(
    site: &Site,
    history: &Path,
    amiss: &mut Vec<String>,
) -> Result<BTreeMap<MessageKey, Place>, FleetError> {
    let mut places = BTreeMap::new();
    for (name, n, _) in lanes(site) {
        let topic = topic_of(name, n);
        let pen = Recorder::open(history, &log_of(&topic))?;
        for row in of_topic(&site.witness, &topic)? {
            if row.body != text_of(&row.client_message_id) {
                amiss.push(format!("changed: {:?} reads {:?}", row.client_message_id, row.body));
            }
            let act = Act::Render { sender: row.sender.clone(), seq: row.place.seq, cursor: row.cursor };
            pen.note(End::Ok, &row.client_message_id, None, Some(&row.place.conversation), act)?;
            places.insert(MessageKey { sender: row.sender, id: row.client_message_id }, row.place);
        }
    }
    Ok(places)
}

/// One lane's writer.
struct Lane {
    name: &'static str,
    topic: String,
    door: Door,
    pen: Recorder,
}

impl Lane {
    fn new(name: &'static str, n: usize, door: Door, history: &Path) -> Result<Self, FleetError> {
        let topic = topic_of(name, n);
        let pen = Recorder::open(history, &format!("writer-{topic}"))?;
        Ok(Self { name, topic, door, pen })
    }

    /// One message after the other until the flapping ends; says what must not be.
    fn write(mut self, told: &Told, over: &AtomicBool) -> Result<Vec<String>, FleetError> {
        let mut amiss = Vec::new();
        for n in 0_u64.. {
            if over.load(Ordering::SeqCst) {
                break;
            }
            let id = format!("{}.{n}", self.topic);
            self.note(End::Invoke, &id)?;
            let answer = send(&mut self.door, &id, &format!("#{}", self.topic), &text_of(&id))?;
            match answer.status {
                200..=299 => self.note(End::Ok, &id)?,
                // Seen all the same, it would be a message that nobody sent.
                429 | 503 | 507 if answer.denies_storage() => self.note(End::Fail, &id)?,
                429 | 503 | 507 => self.note(End::Info, &id)?,
                _ => amiss.push(format!("refused: {id}: {}", answer.refusal())),
            }
            if n % BURST == BURST - 1 {
                self.look_for(&id, told);
            }
        }
        Ok(amiss)
    }

    /// Looks on until the message is accepted, and keeps what it is told.
    fn look_for(&mut self, id: &str, told: &Told) {
        let path = format!("/v1/messages/{id}?rung=accepted&wait=3");
        if let Ok(Answer { status: 200, body }) = self.door.get(&path)
            && let Some(place) = Place::told_by(&body)
        {
            told.note(self.name, id, place);
        }
    }

    fn note(&self, outcome: End, id: &str) -> Result<(), FleetError> {
        let act = Act::Send { sender: self.name.to_owned(), readers: vec![log_of(&self.topic)] };
        Ok(self.pen.note(outcome, id, None, Some(&format!("#{}", self.topic)), act)?)
    }
}
