//! A client that sends numbered messages, and asks again what was not answered.

use super::KillsError;
use super::audience::{Destination, Member, Place, text_of};
use super::door::{Answer, Door};
use super::stage::{Phase, Stage};
use crate::history::{Act, Outcome, Recorder};
use crate::seeded::Seeded;
use serde_json::json;

/// Messages between two waits for the last one's rung: enough for frames of several, few enough that the outbox
/// does not run ahead of the kills.
const BURST_MAX: u64 = 6;
/// How long such a wait lasts; a lost one costs nothing.
const WAIT_S: u64 = 2;
/// How many lives are asked for the same rung.
const LIVES_ASKED: usize = 2;
/// Of a hundred calls without an answer, so many are never asked again: their outcome stays unknown.
const ABANDON_PERCENT: u64 = 10;
/// A door that refuses this often in a row is not about to take the message.
const REFUSALS_MAX: u32 = 200;

/// How a writer reaches the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Socket,
    CommandLine,
}

pub(super) struct Writer<'stage> {
    stage: &'stage Stage<'stage>,
    proc: String,
    member: &'stage Member,
    way: Way,
    door: Door,
    pen: Recorder,
    seeded: Seeded,
}

/// What one call came to.
enum Called {
    /// Durable, says the answer.
    Taken(Option<Place>),
    /// Not taken, says the answer; it may be asked again.
    Busy,
    /// Not taken, and asking again will not change it.
    Refused(String),
    /// No answer, or half of one.
    Unanswered,
}

impl<'stage> Writer<'stage> {
    pub(super) fn new(
        stage: &'stage Stage<'stage>,
        number: usize,
        member: &'stage Member,
        way: Way,
        seed: u64,
    ) -> Result<Self, KillsError> {
        let proc = format!("writer-{number}");
        let (door, pen) = (stage.door(member), stage.pen(&proc)?);
        let seeded = Seeded::new(seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        Ok(Self { stage, proc, member, way, door, pen, seeded })
    }

    /// One message after the other, each brought to an answer before the next is begun, until the killing ends.
    pub(super) fn write(mut self) -> Result<(), KillsError> {
        let mut until_wait = 0;
        for n in 0_u64.. {
            if self.stage.phase() != Phase::Killing {
                break;
            }
            let destination = Destination::ALL[self.seeded.index(Destination::ALL.len())];
            let id = format!("{}.{n}", self.proc);
            let taken = self.bring(&id, destination)?;
            if until_wait > 0 {
                until_wait -= 1;
            } else if taken {
                self.wait_for_rung(&id, destination)?;
                until_wait = self.seeded.below(BURST_MAX);
            }
        }
        Ok(())
    }

    /// Asks until there is an answer; false when it was given up without one.
    pub(super) fn bring(&mut self, id: &str, destination: Destination) -> Result<bool, KillsError> {
        let mut refusals = 0;
        loop {
            if !self.stage.await_listening(&mut self.door)? {
                return Ok(false);
            }
            self.note(Outcome::Invoke, id, destination)?;
            match self.call(id, destination)? {
                Called::Taken(place) => {
                    self.note(Outcome::Ok, id, destination)?;
                    self.stage.tally.note_acked();
                    if let Some(place) = place {
                        self.stage.told.note(&self.member.name, id, place);
                    }
                    return Ok(true);
                }
                Called::Unanswered => {
                    self.note(Outcome::Info, id, destination)?;
                    self.stage.tally.note_unanswered();
                    if self.seeded.chance(ABANDON_PERCENT) {
                        return Ok(false);
                    }
                    self.stage.tally.note_asked_again();
                }
                Called::Busy if refusals < REFUSALS_MAX => {
                    refusals += 1;
                    self.note(Outcome::Fail, id, destination)?;
                }
                Called::Busy => {
                    let sentence = format!("refused: {id} was put off {refusals} times in a row");
                    self.stage.note_amiss(sentence);
                    return Ok(false);
                }
                Called::Refused(answer) => {
                    self.note(Outcome::Fail, id, destination)?;
                    self.stage.note_amiss(format!("refused: {id}, whose text never changed: {answer}"));
                    return Ok(false);
                }
            }
        }
    }

    fn call(&mut self, id: &str, destination: Destination) -> Result<Called, KillsError> {
        match self.way {
            Way::Socket => Ok(self.call_socket(id, destination)),
            Way::CommandLine => self.call_command_line(id, destination),
        }
    }

    fn call_socket(&mut self, id: &str, destination: Destination) -> Called {
        let request = json!({ "to": destination.to(), "body": text_of(id), "client_message_id": id });
        match self.door.post("/v1/send", &request) {
            Ok(Answer { status: 200..=299, body }) => Called::Taken(Place::told_by(&body)),
            // One that leaves it open whether the message is stored is as good as no answer.
            Ok(answer @ Answer { status: 429 | 503 | 507, .. }) if answer.denies_storage() => Called::Busy,
            Ok(Answer { status: 503, .. }) => Called::Unanswered,
            Ok(Answer { status, body }) => Called::Refused(format!("{status} {body}")),
            Err(_) => Called::Unanswered,
        }
    }

    fn call_command_line(&self, id: &str, destination: Destination) -> Result<Called, KillsError> {
        let (to, text) = (destination.to(), text_of(id));
        let ended = self.stage.home.cli(&["--json", "send", &to, &text, "--id", id])?;
        Ok(match ended.code() {
            Some(0) => Called::Taken(ended.json().first().and_then(Place::told_by)),
            // Nobody answered, or not to the end.
            Some(3) => Called::Unanswered,
            _ => Called::Refused(format!("{ended:?}")),
        })
    }

    /// Looks on until the message came as far as its sender can see, and keeps what it is told. After a death in
    /// between the next life is asked: what it says before it has heard from its broker is a receipt too.
    fn wait_for_rung(&mut self, id: &str, destination: Destination) -> Result<(), KillsError> {
        let path = format!("/v1/messages/{id}?rung={}&wait={WAIT_S}", destination.last_rung());
        for _ in 0..LIVES_ASKED {
            if !self.stage.await_listening(&mut self.door)? {
                break;
            }
            let Ok(answer) = self.door.get(&path) else { continue };
            if let Some(place) = Place::told_by(&answer.body) {
                self.stage.told.note(&self.member.name, id, place);
            }
            break;
        }
        Ok(())
    }

    fn note(&self, outcome: Outcome, id: &str, destination: Destination) -> Result<(), KillsError> {
        let readers = destination.readers(self.member, &self.stage.members);
        let act = Act::Send { sender: self.member.name.clone(), readers };
        Ok(self.pen.note(outcome, id, None, Some(&destination.to()), act)?)
    }
}
