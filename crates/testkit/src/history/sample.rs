//! Legal histories from a seed, and bugs to plant in them: the checker must be silent on the first and must
//! name each of the second. A checker that was never seen to find anything proves nothing.

use super::{Act, Broken, Event, Outcome};
use crate::seeded::Seeded;

const SENDERS: u64 = 3;
const CONVERSATIONS: u64 = 3;
const READERS: [&str; 2] = ["reader-0", "reader-1"];

/// A bug with a known trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// An acknowledged message is nowhere.
    Lose,
    /// One reader shows a row again.
    Repeat,
    /// A message is committed a second time, at a new place.
    CommitTwice,
    /// A row comes without its cursor.
    DropCursor,
    /// A reader skips a row.
    Skip,
    /// A reader sees two rows in the wrong order.
    Turn,
    /// Two awaited sends of one lane get each other's place.
    Overtake,
    /// An id is accepted again with another fingerprint.
    Rebind,
    /// A message appears that nobody sent.
    Forge,
}

impl Plant {
    /// Every bug.
    pub const ALL: [Self; 9] = [
        Self::Lose,
        Self::Repeat,
        Self::CommitTwice,
        Self::DropCursor,
        Self::Skip,
        Self::Turn,
        Self::Overtake,
        Self::Rebind,
        Self::Forge,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lose => "lose",
            Self::Repeat => "repeat",
            Self::CommitTwice => "commit-twice",
            Self::DropCursor => "drop-cursor",
            Self::Skip => "skip",
            Self::Turn => "turn",
            Self::Overtake => "overtake",
            Self::Rebind => "rebind",
            Self::Forge => "forge",
        }
    }

    /// True when `broken` is what this bug must be called.
    pub fn is_named_by(self, broken: &Broken) -> bool {
        match self {
            Self::Lose => matches!(broken, Broken::Lost { .. }),
            Self::Repeat => matches!(broken, Broken::Doubled { .. }),
            Self::CommitTwice => matches!(broken, Broken::TwoPlaces { .. }),
            Self::DropCursor => matches!(broken, Broken::NoCursor { .. }),
            Self::Skip => matches!(broken, Broken::Gap { .. }),
            Self::Turn => matches!(broken, Broken::Backwards { .. }),
            Self::Overtake => matches!(broken, Broken::Overtaken { .. }),
            Self::Rebind => matches!(broken, Broken::Rebound { .. }),
            Self::Forge => matches!(broken, Broken::Forged { .. }),
        }
    }
}

/// A run as its clients saw it: the sends, what was committed, and who read what.
#[derive(Clone, Debug)]
pub struct Sample {
    seeded: Seeded,
    sends: Vec<Event>,
    /// Per conversation, the committed messages in order, as (sender, id).
    logs: Vec<Vec<(String, String)>>,
}

impl Sample {
    /// A legal run of `sends` sends: some refused, some without an answer (of which half happened), some ended
    /// in a terminal state, some sent without waiting for the one before.
    pub fn legal(seed: u64, sends: u64) -> Self {
        let logs = vec![Vec::new(); usize::try_from(CONVERSATIONS).expect("a handful")];
        let mut sample = Self { seeded: Seeded::new(seed), sends: Vec::new(), logs };
        let mut number = 0;
        while number < sends {
            if sample.seeded.chance(20) && number + 2 <= sends {
                sample.send_pair(number);
                number += 2;
            } else {
                sample.send_one(number);
                number += 1;
            }
        }
        sample
    }

    /// The history of the run with `plant` in it; `None` when this run is too small to hold that bug.
    pub fn with(mut self, plant: Option<Plant>) -> Option<Vec<Event>> {
        let extra = match plant {
            Some(Plant::Overtake) => self.overtake().map(|()| None)?,
            Some(Plant::CommitTwice) => self.commit_twice().map(|()| None)?,
            Some(Plant::Forge) => {
                let log = self.seeded.index(self.logs.len());
                self.logs[log].push(("sender-0".to_owned(), "never-sent".to_owned()));
                None
            }
            Some(Plant::Rebind) => Some(self.rebind()?),
            Some(Plant::Lose | Plant::Repeat | Plant::DropCursor | Plant::Skip | Plant::Turn) | None => None,
        };
        let mut views: Vec<Vec<Event>> = READERS.iter().flat_map(|reader| self.views_of(reader)).collect();
        match plant {
            Some(Plant::Lose) => self.lose(&mut views)?,
            Some(plant @ (Plant::Repeat | Plant::DropCursor | Plant::Skip | Plant::Turn)) => {
                self.bend(&mut views, plant)?;
            }
            Some(Plant::CommitTwice | Plant::Overtake | Plant::Rebind | Plant::Forge) | None => {}
        }
        let mut events = self.sends;
        events.extend(extra.into_iter().flatten());
        events.extend(views.into_iter().flatten());
        Some(events)
    }

    fn send_one(&mut self, number: u64) {
        let (sender, log) = self.pick();
        let id = format!("m{number}");
        self.call(&sender, log, &id, Outcome::Invoke);
        match self.seeded.below(100) {
            0..5 => self.call(&sender, log, &id, Outcome::Fail),
            5..15 => {
                if self.seeded.chance(50) {
                    self.logs[log].push((sender.clone(), id.clone()));
                }
                // A killed client writes no line at all; one whose call timed out writes `info`.
                if self.seeded.chance(50) {
                    self.call(&sender, log, &id, Outcome::Info);
                }
            }
            15..20 => {
                self.call(&sender, log, &id, Outcome::Ok);
                let act = Act::Listed { sender, state: "expired".into(), cause: "deliver_by".into() };
                self.push("operator", None, &id, None, Outcome::Ok, act);
            }
            _ => {
                self.logs[log].push((sender.clone(), id.clone()));
                self.call(&sender, log, &id, Outcome::Ok);
            }
        }
    }

    /// Two sends in flight at once may take their places in either order.
    fn send_pair(&mut self, number: u64) {
        let (sender, log) = self.pick();
        let ids = [format!("m{number}"), format!("m{}", number + 1)];
        for id in &ids {
            self.call(&sender, log, id, Outcome::Invoke);
        }
        let turned = self.seeded.chance(50);
        for id in if turned { [&ids[1], &ids[0]] } else { [&ids[0], &ids[1]] } {
            self.logs[log].push((sender.clone(), id.clone()));
        }
        for id in &ids {
            self.call(&sender, log, id, Outcome::Ok);
        }
    }

    fn pick(&mut self) -> (String, usize) {
        let sender = format!("sender-{}", self.seeded.below(SENDERS));
        (sender, self.seeded.index(self.logs.len()))
    }

    fn call(&mut self, sender: &str, log: usize, id: &str, outcome: Outcome) {
        let readers = READERS.iter().map(|reader| (*reader).to_owned()).collect();
        let act = Act::Send { sender: sender.to_owned(), readers };
        self.push(sender, Some(log), id, Some(format!("fp-{id}")), outcome, act);
    }

    fn push(
        &mut self,
        proc: &str,
        log: Option<usize>,
        id: &str,
        fp: Option<String>,
        outcome: Outcome,
        act: Act,
    ) {
        let t_mono = self.sends.len() as u64;
        let conv = log.map(|log| format!("conv-{log}"));
        self.sends.push(Event { t_mono, proc: proc.to_owned(), id: id.to_owned(), fp, conv, outcome, act });
    }

    fn views_of(&self, reader: &str) -> Vec<Vec<Event>> {
        let row = |log: usize, place: usize, (sender, id): &(String, String)| {
            let seq = place as u64 + 1;
            let act = Act::Render { sender: sender.clone(), seq, cursor: format!("{log}:{seq}") };
            Event {
                t_mono: seq,
                proc: reader.to_owned(),
                id: id.clone(),
                fp: None,
                conv: Some(format!("conv-{log}")),
                outcome: Outcome::Ok,
                act,
            }
        };
        let view = |(log, rows): (usize, &Vec<(String, String)>)| {
            rows.iter().enumerate().map(|(place, key)| row(log, place, key)).collect()
        };
        self.logs.iter().enumerate().map(view).collect()
    }

    fn is_acked(&self, sender: &str, id: &str) -> bool {
        self.sends.iter().any(|event| event.id == id && event.proc == sender && event.outcome == Outcome::Ok)
    }

    /// Takes one acknowledged last row from every view, so that no gap gives the loss away.
    fn lose(&mut self, views: &mut [Vec<Event>]) -> Option<()> {
        let ends_acked =
            |view: &&Vec<Event>| view.last().is_some_and(|row| self.is_acked(&row.key().sender, &row.id));
        let lost = views.iter().find(ends_acked)?.last()?.key();
        for view in views {
            view.retain(|row| row.key() != lost);
        }
        Some(())
    }

    fn bend(&mut self, views: &mut [Vec<Event>], plant: Plant) -> Option<()> {
        let long: Vec<usize> = (0..views.len()).filter(|view| views[*view].len() >= 3).collect();
        if long.is_empty() {
            return None;
        }
        let view = &mut views[long[self.seeded.index(long.len())]];
        let inner = 1 + self.seeded.index(view.len() - 2);
        match plant {
            Plant::Repeat => view.insert(inner, view[inner].clone()),
            Plant::Skip => drop(view.remove(inner)),
            Plant::Turn => view.swap(inner, inner + 1),
            Plant::DropCursor => {
                if let Act::Render { cursor, .. } = &mut view[inner].act {
                    cursor.clear();
                }
            }
            Plant::Lose | Plant::CommitTwice | Plant::Overtake | Plant::Rebind | Plant::Forge => {
                unreachable!("these are planted in the run, not in a view")
            }
        }
        Some(())
    }

    fn commit_twice(&mut self) -> Option<()> {
        let log = (0..self.logs.len()).find(|log| !self.logs[*log].is_empty())?;
        let row = self.seeded.index(self.logs[log].len());
        let again = self.logs[log][row].clone();
        self.logs[log].push(again);
        Some(())
    }

    /// Swaps the places of two sends of one lane where the second began after the first was acknowledged.
    fn overtake(&mut self) -> Option<()> {
        let at = |events: &[Event], id: &str, outcome| {
            events.iter().position(|event| event.id == id && event.outcome == outcome)
        };
        for log in &mut self.logs {
            for later in 1..log.len() {
                let [first, second] = [&log[later - 1], &log[later]];
                let acked = at(&self.sends, &first.1, Outcome::Ok);
                let begun = at(&self.sends, &second.1, Outcome::Invoke);
                if first.0 == second.0 && acked.is_some() && acked < begun {
                    log.swap(later - 1, later);
                    return Some(());
                }
            }
        }
        None
    }

    fn rebind(&mut self) -> Option<Vec<Event>> {
        let acked: Vec<&Event> =
            self.sends.iter().filter(|event| event.outcome == Outcome::Ok && event.fp.is_some()).collect();
        let first = (*acked.get(self.seeded.index(acked.len().max(1)))?).clone();
        let again = |outcome| Event { outcome, fp: Some("fp-other".to_owned()), ..first.clone() };
        Some(vec![again(Outcome::Invoke), again(Outcome::Ok)])
    }
}
