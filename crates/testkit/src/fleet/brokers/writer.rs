//! A client that writes numbered messages to the topic, and asks again, under the same id, what was not answered.

use super::stage::{LAST, Stage, TOPIC, readers};
use crate::fleet::FleetError;
use crate::fleet::caller::{ANSWER_BOUND, Caller};
use crate::history::{Act, Outcome, Recorder};
use crate::kills::audience::{Place, text_of};
use crate::kills::door::{Answer, Door};
use crate::seeded::Seeded;
use crate::wait::wait_for;
use serde_json::{Value, json};
use std::time::Duration;

/// How long a client looks for somebody who listens: a start of the database and both brokers, on a busy machine.
const LISTEN_BOUND: Duration = Duration::from_secs(120);
/// Messages a home hands over before it looks whether the last was accepted, so that its outbox does not run ahead.
const BURST: u64 = 8;
/// Of a hundred calls without an answer, so many are never asked again: their outcome stays unknown.
const ABANDON_PERCENT: u64 = 10;
/// How long a message is good for: longer than any run, shorter than most distances between the brokers' clocks.
const TTL_S: u32 = 7_000;
/// The longest wait of a hasty caller.
const PATIENCE_MAX_MS: u64 = 50;

/// How a writer reaches the mesh.
pub(super) enum Way {
    /// Through the daemon of its home.
    Home(Door),
    /// At a broker's door.
    Direct(Caller),
    /// At a broker's door, and gone within milliseconds.
    Hasty(Caller),
}

pub(super) struct Writer<'stage> {
    stage: &'stage Stage,
    name: &'static str,
    way: Way,
    pen: Recorder,
    seeded: Seeded,
}

impl<'stage> Writer<'stage> {
    pub(super) fn new(
        stage: &'stage Stage,
        name: &'static str,
        way: Way,
        seed: u64,
    ) -> Result<Self, FleetError> {
        Ok(Self { stage, name, way, pen: stage.pen(name)?, seeded: Seeded::new(seed) })
    }

    /// One message after the other until the faults end, then the last one.
    pub(super) fn write(mut self) -> Result<(), FleetError> {
        for n in 0_u64.. {
            if self.stage.is_over() {
                break;
            }
            let id = format!("{}.{n}", self.name);
            self.bring(&id, ABANDON_PERCENT)?;
            if n % BURST == BURST - 1 {
                self.look_for(&id);
            }
        }
        if let Way::Hasty(caller) = self.way {
            self.way = Way::Direct(caller);
        }
        self.bring(&format!("{LAST}{}", self.name), 0)
    }

    /// Asks until there is an answer, or until it is given up without one.
    fn bring(&mut self, id: &str, abandon_percent: u64) -> Result<(), FleetError> {
        loop {
            self.await_listening()?;
            self.note(Outcome::Invoke, id)?;
            let message = json!({"to": format!("#{TOPIC}"), "body": text_of(id), "client_message_id": id,
                "ttl": TTL_S});
            match self.call(&message) {
                Ok(Answer { status: 200..=299, body }) => {
                    self.note(Outcome::Ok, id)?;
                    if let Some(place) = Place::told_by(&body) {
                        self.stage.told.note(self.name, id, place);
                    }
                    return Ok(());
                }
                // What a busy or half-started broker says: not taken by this call.
                Ok(answer @ Answer { status: 429 | 503 | 507, .. }) => {
                    let outcome = if answer.denies_storage() { Outcome::Fail } else { Outcome::Info };
                    self.note(outcome, id)?;
                }
                Ok(Answer { status, body }) => {
                    self.note(Outcome::Info, id)?;
                    self.stage
                        .note_amiss(format!("refused: {id}, whose text never changed: {status} {body}"));
                    return Ok(());
                }
                Err(_) => {
                    self.note(Outcome::Info, id)?;
                    match self.way {
                        Way::Hasty(_) => self.stage.note_hung_up(),
                        Way::Home(_) | Way::Direct(_) => self.stage.note_unanswered(),
                    }
                    if self.seeded.chance(abandon_percent) {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn await_listening(&mut self) -> Result<(), FleetError> {
        let way = &mut self.way;
        let connect = || match way {
            Way::Home(door) => door.connect().ok(),
            Way::Direct(caller) | Way::Hasty(caller) => caller.connect().ok(),
        };
        Ok(wait_for("somebody to listen", LISTEN_BOUND, connect)?)
    }

    fn call(&mut self, message: &Value) -> std::io::Result<Answer> {
        let patience = Duration::from_millis(1 + self.seeded.below(PATIENCE_MAX_MS));
        match &mut self.way {
            Way::Home(door) => door.post("/v1/send", message),
            Way::Direct(caller) => caller.ask(message).and_then(|()| caller.answer(ANSWER_BOUND)),
            Way::Hasty(caller) => caller.ask(message).and_then(|()| caller.answer(patience)),
        }
    }

    /// A home looks on until its message is accepted, and keeps what it is told.
    fn look_for(&mut self, id: &str) {
        let Way::Home(door) = &mut self.way else { return };
        let path = format!("/v1/messages/{id}?rung=accepted&wait=2");
        if let Ok(Answer { status: 200, body }) = door.get(&path)
            && let Some(place) = Place::told_by(&body)
        {
            self.stage.told.note(self.name, id, place);
        }
    }

    fn note(&self, outcome: Outcome, id: &str) -> Result<(), FleetError> {
        let act = Act::Send { sender: self.name.to_owned(), readers: readers(self.name) };
        Ok(self.pen.note(outcome, id, None, Some(&format!("#{TOPIC}")), act)?)
    }
}
