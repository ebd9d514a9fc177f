//! Many copies of one id at once, with one text or with two: one is accepted, and the others are told so.
//!
//! Ids come in two kinds, each sent by a member of its own, so that each kind's budget can be read apart:
//! - twins: every copy has the same text, so there is one thing to pay for;
//! - rivals: half of the copies have another text. The limiter's mark carries the text's fingerprint, so a rival
//!   that loses after it paid has paid: two units at most, one a text.
//!
//! Invariant: the budget earns one unit a second and is far from full, so in Redis a member's arrival instant
//! moves by exactly one second a unit.

mod judge;
mod setting;

use super::caller::{ANSWER_BOUND, Caller};
use super::{DEDUPE_OWN_TRANSACTION, FleetError};
use crate::bin::Binary;
use crate::kills::door::Answer;
use crate::seeded::Seeded;
use crate::stopwatch::Stopwatch;
use judge::{Copied, Text};
use serde_json::json;
use setting::Setting;
use std::collections::BTreeMap;
use std::time::Duration;

/// Copies of one id under way at once.
pub const COPIES: usize = 64;
/// Ids under way at once.
const LANES: usize = 4;
/// A copy that is put off this often in a row is not about to be answered.
const TRIES_MAX: u32 = 200;
/// Why a copy was asked again that was not put off: its connection ended.
const NO_ANSWER: &str = "no answer";

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A binary with faults.
    pub binary: Binary,
    /// How many ids.
    pub ids: u64,
    /// Decides which copy carries which text.
    pub seed: u64,
    /// Where the broker keeps its books.
    pub store: Store,
    /// Whether ids are written in a transaction of their own; something must be found then.
    pub planted: bool,
}

/// A broker's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// A file.
    Sqlite,
    /// A private server.
    Postgres,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Copies answered 201.
    pub accepted: u64,
    /// Copies answered 200.
    pub duplicates: u64,
    /// Copies answered 409.
    pub conflicts: u64,
    /// Copies put off, or without an answer, and asked again; by why.
    pub asked_again: BTreeMap<String, u64>,
    /// Ids of twins, and the units they cost.
    pub twins: Paid,
    /// Ids of rivals, and the units they cost.
    pub rivals: Paid,
    /// Ids whose message is not in the log.
    pub lost: u64,
    /// Ids with more than one message in the log.
    pub doubled: u64,
    /// Everything that must not be, a sentence each.
    pub broken: Vec<String>,
    /// Real time of the races, without the setting up.
    pub elapsed: Duration,
}

/// Ids and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paid {
    /// How many ids.
    pub ids: u64,
    /// Units spent.
    pub units: u64,
}

/// Races, reads and judges.
///
/// # Errors
/// When the run cannot be finished; a wrong answer is no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, FleetError> {
    let faults: Vec<String> = plan.planted.then(|| DEDUPE_OWN_TRANSACTION.to_owned()).into_iter().collect();
    let setting = Setting::open(&plan.binary, plan.store, &faults)?;
    let paid_before = setting.paid_until()?;
    let watch = Stopwatch::start();
    let lanes = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES as u64)
            .map(|number| {
                let mut lane = Lane::new(&setting, plan.seed ^ number)?;
                let ids = (0..plan.ids).filter(move |id| id % LANES as u64 == number);
                Ok(scope.spawn(move || lane.race(ids)))
            })
            .collect::<Result<_, FleetError>>()?;
        let ended =
            lanes.into_iter().map(|lane| lane.join().expect("a lane ends with an error, not a panic"));
        ended.collect::<Result<Vec<Outcome>, FleetError>>()
    })?;
    let mut outcome = Outcome { elapsed: watch.elapsed(), ..Outcome::default() };
    for lane in lanes {
        outcome.add(lane);
    }
    let paid = setting.paid_until()?;
    outcome.twins = Paid { ids: plan.ids.div_ceil(2), units: units(paid_before.twins, paid.twins)? };
    outcome.rivals = Paid { ids: plan.ids / 2, units: units(paid_before.rivals, paid.rivals)? };
    outcome.judge_units();
    let log = setting.log()?;
    judge::log(&mut outcome, plan.ids, &log);
    Ok(outcome)
}

impl Outcome {
    /// One accept an id, every other answer legal, no unit too many.
    pub fn holds(&self) -> bool {
        self.broken.is_empty() && self.lost == 0 && self.doubled == 0
    }

    fn add(&mut self, lane: Outcome) {
        self.accepted += lane.accepted;
        self.duplicates += lane.duplicates;
        self.conflicts += lane.conflicts;
        for (why, times) in lane.asked_again {
            *self.asked_again.entry(why).or_default() += times;
        }
        self.broken.extend(lane.broken);
    }

    fn judge_units(&mut self) {
        for (kind, paid, texts) in [("twins", self.twins, 1), ("rivals", self.rivals, 2)] {
            if paid.units > texts * paid.ids {
                self.broken.push(format!("{} ids of {kind} cost {} units", paid.ids, paid.units));
            }
        }
    }
}

/// Units between two arrival instants in microseconds.
fn units(before: u64, after: u64) -> Result<u64, FleetError> {
    let moved = after.saturating_sub(before);
    if moved.is_multiple_of(1_000_000) {
        return Ok(moved / 1_000_000);
    }
    Err(FleetError::Unreadable {
        asked: "units spent".to_owned(),
        answered: format!("the arrival instant moved by {moved} µs: the budget was full in between"),
    })
}

/// Ids with an odd number are rivals.
fn is_rival(id: u64) -> bool {
    id % 2 == 1
}

/// One thread with as many connections as there are copies, for each kind of id.
struct Lane {
    twins: Vec<Caller>,
    rivals: Vec<Caller>,
    seeded: Seeded,
}

impl Lane {
    /// Every connection proves who it is before the next opens: a broker keeps few strangers of one address.
    fn new(setting: &Setting, seed: u64) -> Result<Self, FleetError> {
        let callers = |token: &str| {
            let proven = |_| {
                let mut caller = Caller::new(vec![setting.address()], 0, token);
                setting::prove_who(&mut caller).map(|()| caller)
            };
            (0..COPIES).map(proven).collect::<Result<Vec<_>, _>>()
        };
        let (twins, rivals) = (callers(&setting.twins)?, callers(&setting.rivals)?);
        Ok(Self { twins, rivals, seeded: Seeded::new(seed) })
    }

    fn race(&mut self, ids: impl Iterator<Item = u64>) -> Result<Outcome, FleetError> {
        let mut outcome = Outcome::default();
        for id in ids {
            let copies = self.volley(id, &mut outcome)?;
            judge::copies(&mut outcome, id, &copies);
        }
        Ok(outcome)
    }

    /// Asks all copies, then reads all answers; what was put off is asked again.
    fn volley(&mut self, id: u64, outcome: &mut Outcome) -> Result<Vec<Copied>, FleetError> {
        // Which half goes first is chance, so that either text may win.
        let flip = usize::from(self.seeded.chance(50));
        let text = |copy: usize| match is_rival(id) && (copy + flip) % 2 == 1 {
            true => Text::Other,
            false => Text::One,
        };
        let callers = if is_rival(id) { &mut self.rivals } else { &mut self.twins };
        let (mut open, mut copies): (Vec<usize>, Vec<Copied>) = ((0..COPIES).collect(), Vec::new());
        for _ in 0..TRIES_MAX {
            let asked: Vec<bool> =
                open.iter().map(|copy| ask(&mut callers[*copy], id, text(*copy))).collect();
            let mut again = Vec::new();
            for (copy, asked) in open.into_iter().zip(asked) {
                let why = match asked.then(|| callers[copy].answer(ANSWER_BOUND)) {
                    Some(Ok(Answer { status: status @ (429 | 503), body })) => {
                        format!("{status} {}", body["error"].as_str().unwrap_or_default())
                    }
                    Some(Err(_)) | None => NO_ANSWER.to_owned(),
                    Some(Ok(answer)) => {
                        copies.push(Copied { text: text(copy), answer });
                        continue;
                    }
                };
                *outcome.asked_again.entry(why).or_default() += 1;
                again.push(copy);
            }
            open = again;
            if open.is_empty() {
                return Ok(copies);
            }
        }
        let asked = format!("{} copies of id {id}, {TRIES_MAX} times", open.len());
        Err(FleetError::Unreadable { asked, answered: "put off every time".to_owned() })
    }
}

fn ask(caller: &mut Caller, id: u64, text: Text) -> bool {
    let message = json!({"to": setting::TO, "body": text.body(), "client_message_id": format!("r{id}")});
    caller.ask(&message).is_ok()
}
