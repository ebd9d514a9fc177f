//! A fake agent: takes turns, notes what it was handed, dies, and comes back without memory.

use super::judge::{Note, What};
use super::stage::{Log, Phase, Stage};
use crate::kills::KillsError;
use crate::kills::door::{Answer, Door};
use crate::refusals::Refusals;
use crate::seeded::Seeded;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// How the door knows its turns.
const HOLDER: &str = "a fake agent";
/// Short, so that a life that does not ask for its open turn soon gets it back; long for a turn that does nothing.
const LEASE_S: u64 = 2;
const LEASE_TOO_LONG_S: u64 = 1_000_000;
/// Of a hundred turns, so many end their agent.
const DIES_PERCENT: u64 = 8;
/// Of a hundred lives, so many do not ask what an earlier one left open.
const FORGETFUL_PERCENT: u64 = 25;

/// Where a life ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    BeforeBegin,
    /// The turn was committed, its answer never read.
    BegunUnread,
    Inside,
    BeforeEnd,
    /// The end was committed, its answer never read.
    EndUnread,
    AfterEnd,
}

const POINTS: [(Point, &str); 6] = [
    (Point::BeforeBegin, "agent before begin"),
    (Point::BegunUnread, "agent with the turn unread"),
    (Point::Inside, "agent inside"),
    (Point::BeforeEnd, "agent before end"),
    (Point::EndUnread, "agent with the end unread"),
    (Point::AfterEnd, "agent after end"),
];

/// How a life ended.
enum Died {
    At(Point),
    /// Its call broke, and it was killed together with the product.
    WithTheProduct,
    /// The run is over.
    NotAtAll,
}

struct Life<'stage> {
    stage: &'stage Stage<'stage>,
    door: Door,
    log: Log,
    seeded: &'stage mut Seeded,
    refusals: &'stage mut Refusals,
}

/// What all lives of an agent came to.
#[derive(Default)]
pub(super) struct Lived {
    /// How they ended.
    pub deaths: BTreeMap<String, u64>,
    /// Turns that were not begun.
    pub refusals: Refusals,
}

/// One life after the other until the run is over.
pub(super) fn live(stage: &Stage<'_>, number: usize, seed: u64) -> Result<Lived, KillsError> {
    let mut seeded = Seeded::new(seed ^ (number as u64 + 11).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let name = stage.agents()[number];
    let mut lived = Lived::default();
    loop {
        let (door, log) = (stage.door(Some(name)), stage.log(name)?);
        let life = Life { stage, door, log, seeded: &mut seeded, refusals: &mut lived.refusals };
        let kind = match life.work()? {
            Died::NotAtAll => return Ok(lived),
            Died::WithTheProduct => "agent with the product",
            Died::At(point) => {
                POINTS.iter().find(|(known, _)| *known == point).map_or("agent", |(_, name)| name)
            }
        };
        *lived.deaths.entry(kind.to_owned()).or_default() += 1;
    }
}

impl Life<'_> {
    fn work(mut self) -> Result<Died, KillsError> {
        let forgetful = self.seeded.chance(FORGETFUL_PERCENT);
        if !forgetful && let Some(died) = self.give_back()? {
            return Ok(died);
        }
        self.begin_for_too_long();
        loop {
            let fatal = self.seeded.chance(DIES_PERCENT) && self.stage.phase() == Phase::Killing;
            let point = fatal.then(|| POINTS[self.seeded.index(POINTS.len())].0);
            if let Some(died) = self.take_turn(point)? {
                return Ok(died);
            }
        }
    }

    /// Asks what an earlier life left open, and gives it back.
    fn give_back(&mut self) -> Result<Option<Died>, KillsError> {
        let page = match self.ask(|door| door.get("/v1/turns"))? {
            Ok(page) => page,
            Err(died) => return Ok(Some(died)),
        };
        if page.body["open"].is_null() {
            return Ok(None);
        }
        let path =
            format!("/v1/turns/{}/interrupt", page.body["open"]["turn_id"].as_str().unwrap_or_default());
        if let Err(died) = self.ask(|door| door.post(&path, &json!({})))? {
            return Ok(Some(died));
        }
        Ok(None)
    }

    fn take_turn(&mut self, point: Option<Point>) -> Result<Option<Died>, KillsError> {
        if self.stage.phase() == Phase::Over {
            return Ok(Some(Died::NotAtAll));
        }
        if point == Some(Point::BeforeBegin) {
            return Ok(Some(Died::At(Point::BeforeBegin)));
        }
        let answer = match self.begin()? {
            Ok(answer) => answer,
            Err(died) => return Ok(Some(died)),
        };
        match answer.status {
            201 if point == Some(Point::BegunUnread) => return Ok(Some(Died::At(Point::BegunUnread))),
            201 => {}
            // Left open by a life before this one; its lease will end it.
            _ => return Ok(None),
        }
        let begun = note(What::Begun, &answer.body);
        if begun.attempt > 1
            && let Some(died) = self.note_interrupted(&answer.body["message"]["id"])?
        {
            return Ok(Some(died));
        }
        self.log.note(&begun)?;
        if point == Some(Point::Inside) {
            return Ok(Some(Died::At(Point::Inside)));
        }
        self.end(&begun, point)
    }

    /// Asks for a turn until there is an answer. Refused in words that deny its storage, it is asked for under another id,
    /// unless an earlier call may have stored it.
    fn begin(&mut self) -> Result<Result<Answer, Died>, KillsError> {
        let (mut turn_id, mut may_be_there) = (self.turn_id(), false);
        loop {
            if !self.stage.await_listening(&mut self.door)? {
                return Ok(Err(Died::NotAtAll));
            }
            let request = json!({"wait": 1, "turn_id": turn_id, "lease": LEASE_S, "holder": HOLDER});
            match self.door.post("/v1/turns", &request) {
                Ok(answer @ Answer { status: 429 | 503 | 507, .. }) => {
                    may_be_there |= !answer.denies_storage();
                    if !may_be_there {
                        self.refusals.give_up(turn_id, &answer);
                        turn_id = self.turn_id();
                    }
                }
                Ok(answer) => return Ok(Ok(answer)),
                Err(_) if self.stage.is_mortal() => return Ok(Err(Died::WithTheProduct)),
                Err(_) => may_be_there = true,
            }
        }
    }

    /// Asks for a turn with a lease that no door gives; judged when it was refused.
    fn begin_for_too_long(&mut self) {
        let turn_id = self.turn_id();
        let request = json!({"turn_id": turn_id, "lease": LEASE_TOO_LONG_S, "holder": HOLDER});
        match self.door.post("/v1/turns", &request) {
            Ok(answer) if answer.denies_storage() => self.refusals.give_up(turn_id, &answer),
            Ok(_) | Err(_) => {}
        }
    }

    fn end(&mut self, begun: &Note, point: Option<Point>) -> Result<Option<Died>, KillsError> {
        if point == Some(Point::BeforeEnd) {
            return Ok(Some(Died::At(Point::BeforeEnd)));
        }
        let path = format!("/v1/turns/{}/end", begun.turn);
        let request = json!({"outcome": "processed", "reply": {"body": format!("re {}", begun.message)}});
        let answer = match self.ask(|door| door.post(&path, &request))? {
            Ok(answer) => answer,
            Err(died) => return Ok(Some(died)),
        };
        if point == Some(Point::EndUnread) {
            return Ok(Some(Died::At(Point::EndUnread)));
        }
        if answer.status == 200 {
            self.log.note(&Note { what: What::Ended, ..begun.clone() })?;
            self.stage.ended.fetch_add(1, Ordering::SeqCst);
        }
        Ok((point == Some(Point::AfterEnd)).then_some(Died::At(Point::AfterEnd)))
    }

    /// Asks how the turns before this one ended, and notes those that were interrupted.
    fn note_interrupted(&mut self, message: &Value) -> Result<Option<Died>, KillsError> {
        let path = format!("/v1/turns?message_id={}", message.as_str().unwrap_or_default());
        let page = match self.ask(|door| door.get(&path))? {
            Ok(page) => page,
            Err(died) => return Ok(Some(died)),
        };
        for turn in page.body["attempts"].as_array().into_iter().flatten() {
            if turn["state"] == "interrupted" {
                self.log.note(&note(What::Interrupted, turn))?;
            }
        }
        Ok(None)
    }

    /// Asks until there is an answer, with the same words; a mortal agent dies at the first call that breaks.
    fn ask(
        &mut self,
        ask: impl Fn(&mut Door) -> std::io::Result<Answer>,
    ) -> Result<Result<Answer, Died>, KillsError> {
        loop {
            if !self.stage.await_listening(&mut self.door)? {
                return Ok(Err(Died::NotAtAll));
            }
            match ask(&mut self.door) {
                Ok(Answer { status: 429 | 503 | 507, .. }) => {}
                Ok(answer) => return Ok(Ok(answer)),
                Err(_) if self.stage.is_mortal() => return Ok(Err(Died::WithTheProduct)),
                Err(_) => {}
            }
        }
    }

    fn turn_id(&mut self) -> String {
        let mut bytes = [0; 16];
        self.seeded.fill(&mut bytes);
        model::TurnId::from_bytes(bytes).to_string()
    }
}

fn note(what: What, turn: &Value) -> Note {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Note {
        what,
        message: text(&turn["message"]["client_message_id"]),
        turn: text(&turn["turn_id"]),
        attempt: turn["attempt"].as_u64().unwrap_or_default(),
        redelivered: turn["redelivered"] == true,
    }
}
