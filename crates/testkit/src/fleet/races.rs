//! Many copies of one id at once, with one text or with two: one is accepted, and the others are told so.
//!
//! Ids come in three kinds, each sent by a member of its own, so that each kind's budget can be read apart:
//! - twins: every copy has the same text, so there is one thing to pay for;
//! - rivals: half of the copies have another text. The limiter's mark carries the text's fingerprint, so a rival
//!   that loses after it paid has paid: two units at most, one a text;
//! - unpaid ones: their member's budget is spent for a day, so every copy is refused and nothing may be stored.
//!
//! Invariant: the budget earns one unit a second and is far from full, so in Redis a member's arrival instant
//! moves by exactly one second a unit.

mod judge;
mod setting;

use super::caller::{ANSWER_BOUND, Caller, TRIES_MAX};
use super::{DEDUPE_OWN_TRANSACTION, FleetError, REFUSED_AND_STORED};
use crate::bin::Binary;
use crate::kills::door::Answer;
use crate::refusals::{Refusals, Refused};
use crate::seeded::Seeded;
use crate::stopwatch::Stopwatch;
use judge::{Copied, Copies, Text};
use serde_json::json;
use setting::Setting;
use std::collections::BTreeMap;
use std::time::Duration;

/// Copies of one id under way at once.
pub const COPIES: usize = 64;
/// Ids under way at once.
const LANES: usize = 4;
/// Of so many ids, one of each lane has an unpaid id before it.
const UNPAID_EVERY: u64 = 20;
/// Copies of an unpaid id.
const UNPAID_COPIES: usize = 8;
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
    /// What is wrong with the broker on purpose.
    pub planted: Planted,
}

/// A bug for the run to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// None: nothing may be found.
    Nothing,
    /// Ids are written in a transaction of their own.
    DedupeApart,
    /// Messages are refused and stored; on a file only.
    RefusedAndStored,
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
    /// What copies were refused.
    pub refused: Refused,
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
    let faults: Vec<String> = plan.planted.fault().map(str::to_owned).into_iter().collect();
    let mut setting = Setting::open(&plan.binary, plan.store, &faults)?;
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
        ended.collect::<Result<Vec<(Outcome, Refusals)>, FleetError>>()
    })?;
    let mut outcome = Outcome { elapsed: watch.elapsed(), ..Outcome::default() };
    let mut refusals = Refusals::default();
    for (lane, refused) in lanes {
        outcome.add(lane);
        refusals.add(refused);
    }
    let paid = setting.paid_until()?;
    outcome.twins = Paid { ids: plan.ids.div_ceil(2), units: units(paid_before.twins, paid.twins)? };
    outcome.rivals = Paid { ids: plan.ids / 2, units: units(paid_before.rivals, paid.rivals)? };
    outcome.judge_units();
    setting.kill_and_restart()?;
    let mut unpaid = setting.paying_again()?;
    outcome.refused.add(refusals.judge(|id| unpaid.is_known(id))?);
    let log = setting.log()?;
    judge::log(&mut outcome, plan.ids, &log);
    Ok(outcome)
}

impl Planted {
    fn fault(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::DedupeApart => Some(DEDUPE_OWN_TRANSACTION),
            Self::RefusedAndStored => Some(REFUSED_AND_STORED),
        }
    }
}

impl Outcome {
    /// One accept an id, every other answer legal, no unit too many, nothing stored that was refused.
    pub fn holds(&self) -> bool {
        let counted = self.lost + self.doubled;
        counted == 0 && self.broken.is_empty() && self.refused.stored.is_empty()
    }

    fn add(&mut self, lane: Outcome) {
        self.accepted += lane.accepted;
        self.duplicates += lane.duplicates;
        self.conflicts += lane.conflicts;
        for (why, times) in lane.asked_again {
            *self.asked_again.entry(why).or_default() += times;
        }
        self.refused.add(lane.refused);
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
    unpaid: Vec<Caller>,
    seeded: Seeded,
}

impl Lane {
    /// Every connection proves who it is before the next opens: a broker keeps few strangers of one address.
    fn new(setting: &Setting, seed: u64) -> Result<Self, FleetError> {
        let callers = |token: &str, copies| {
            let proven = |_| {
                let mut caller = Caller::new(vec![setting.address()], 0, token);
                setting::prove_who(&mut caller).map(|()| caller)
            };
            (0..copies).map(proven).collect::<Result<Vec<_>, _>>()
        };
        let (twins, rivals) = (callers(&setting.twins, COPIES)?, callers(&setting.rivals, COPIES)?);
        let unpaid = callers(&setting.unpaid, UNPAID_COPIES)?;
        Ok(Self { twins, rivals, unpaid, seeded: Seeded::new(seed) })
    }

    fn race(&mut self, ids: impl Iterator<Item = u64>) -> Result<(Outcome, Refusals), FleetError> {
        let (mut outcome, mut refusals) = (Outcome::default(), Refusals::default());
        for id in ids {
            if id % UNPAID_EVERY < LANES as u64 {
                self.ask_unpaid(&format!("unpaid{id}"), &mut outcome, &mut refusals);
            }
            let copies = self.volley(id, &mut outcome)?;
            judge::copies(&mut outcome, id, &copies);
        }
        Ok((outcome, refusals))
    }

    /// Copies of an id whose member has nothing to pay with; judged when all of them were refused.
    fn ask_unpaid(&mut self, id: &str, outcome: &mut Outcome, refusals: &mut Refusals) {
        let message = json!({"to": setting::TO, "body": "x", "client_message_id": id});
        let asked: Vec<bool> = self.unpaid.iter_mut().map(|caller| caller.ask(&message).is_ok()).collect();
        let answers = self.unpaid.iter_mut().zip(asked);
        let answers: Vec<Option<Answer>> = answers
            .map(|(caller, asked)| asked.then(|| caller.answer(ANSWER_BOUND).ok()).flatten())
            .collect();
        if let Some(taken) = answers.iter().flatten().find(|answer| answer.status < 429) {
            outcome.broken.push(format!("{id}, which nobody paid for, was answered {}", taken.refusal()));
        }
        if answers.iter().all(|answer| answer.as_ref().is_some_and(Answer::denies_storage)) {
            answers.into_iter().flatten().for_each(|answer| refusals.give_up(id.to_owned(), &answer));
        }
    }

    /// Asks all copies, then reads all answers; what was put off is asked again.
    fn volley(&mut self, id: u64, outcome: &mut Outcome) -> Result<Copies, FleetError> {
        // Which half goes first is chance, so that either text may win.
        let flip = usize::from(self.seeded.chance(50));
        let text = |copy: usize| match is_rival(id) && (copy + flip) % 2 == 1 {
            true => Text::Other,
            false => Text::One,
        };
        let callers = if is_rival(id) { &mut self.rivals } else { &mut self.twins };
        let (mut open, mut copies): (Vec<usize>, _) = ((0..COPIES).collect(), Copies::default());
        for _ in 0..TRIES_MAX {
            let asked: Vec<bool> =
                open.iter().map(|copy| ask(&mut callers[*copy], id, text(*copy))).collect();
            let mut again = Vec::new();
            for (copy, asked) in open.into_iter().zip(asked) {
                let why = match asked.then(|| callers[copy].answer(ANSWER_BOUND)) {
                    Some(Ok(answer @ Answer { status: 429 | 503 | 507, .. })) => {
                        copies.note(&answer);
                        let error = answer.body["error"].as_str().unwrap_or_default();
                        format!("{} {error}", answer.status)
                    }
                    Some(Err(_)) | None => {
                        copies.is_open = true;
                        NO_ANSWER.to_owned()
                    }
                    Some(Ok(answer)) => {
                        copies.answered.push(Copied { text: text(copy), answer });
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
