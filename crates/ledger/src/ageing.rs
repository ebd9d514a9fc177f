//! What this process has seen of its store's clock, beside the durable record (`model::ageing`).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::ageing::{AgeingRecord, ForgottenRecord, ForgottenUpto};
use model::{Timestamp, limits};

/// A look at the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockLook {
    /// The store's wall clock.
    pub wall: Timestamp,
    /// The wall clock as far as time that was seen to pass bears it out: what ends by age, ends by this.
    pub borne_out: Timestamp,
    /// How far the wall clock stands ahead of that. Zero: it is not in doubt.
    pub ahead: Duration,
    /// How far the wall clock jumped ahead since this process looked last, if it did by more than
    /// [`limits::CLOCK_AHEAD_MIN`].
    pub jumped: Option<Duration>,
}

/// The looks of one process.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    clock: SeenClock,
    forgotten: ForgottenRecord,
}

/// What this process bears out by itself starts from here.
#[derive(Clone, Copy, Debug)]
enum SeenClock {
    /// The store was opened at this running time, and its record stood so; it had none, or was not read.
    Opened(Option<(AgeingRecord, Duration)>),
    Look(LastLook),
}

#[derive(Clone, Copy, Debug)]
struct LastLook {
    record: AgeingRecord,
    ahead: Duration,
    at: Duration,
}

impl ClockWatch {
    /// Of a store whose records were not read yet.
    pub(crate) const fn new() -> Self {
        let forgotten = ForgottenRecord::EMPTY;
        Self { seen: Mutex::new(Seen { clock: SeenClock::Opened(None), forgotten }) }
    }

    /// The records of a store as they were found when it was opened, at the running time `running`.
    pub(crate) fn found(&self, record: AgeingRecord, forgotten: ForgottenRecord, running: Duration) {
        *self.seen() = Seen { clock: SeenClock::Opened(Some((record, running))), forgotten };
    }

    /// The record after a look at `wall`, at the running time `running`. `stored` is the durable one, of which the
    /// caller keeps what comes back. The next step is [`ClockWatch::keep`].
    pub(crate) fn look(&self, stored: AgeingRecord, wall: Timestamp, running: Duration) -> AgeingRecord {
        let since = |record: AgeingRecord, at| record.borne_out + running.saturating_sub(at);
        let counted = match self.seen().clock {
            SeenClock::Opened(found) => found.map(|(record, at)| since(record, at)),
            SeenClock::Look(last) => Some(since(last.record, last.at)),
        };
        stored.look(wall, counted)
    }

    /// The record was kept; the store's other one was found so.
    pub(crate) fn keep(
        &self,
        record: AgeingRecord,
        forgotten: ForgottenRecord,
        wall: Timestamp,
        running: Duration,
    ) -> ClockLook {
        let ahead = wall.since(record.borne_out);
        let grown = self.last().map(|last| ahead.saturating_sub(last.ahead));
        let mut seen = self.seen();
        seen.clock = SeenClock::Look(LastLook { record, ahead, at: running });
        seen.forgotten = seen.forgotten.and(forgotten);
        drop(seen);
        ClockLook {
            wall,
            borne_out: record.borne_out,
            ahead,
            jumped: grown.filter(|grown| *grown > limits::CLOCK_AHEAD_MIN),
        }
    }

    /// What a look moments ago bore out; nothing when there was none.
    pub(crate) fn recent(&self, wall: Timestamp, running: Duration) -> Option<Timestamp> {
        let recent = self.last().filter(|last| running.saturating_sub(last.at) < limits::CLOCK_LOOK_KEPT);
        recent.map(|last| last.record.borne_out.min(wall))
    }

    /// These are forgotten, or will be when the transaction under way commits. What is forgotten by now comes back.
    pub(crate) fn forget(&self, more: ForgottenRecord) -> ForgottenRecord {
        let mut seen = self.seen();
        seen.forgotten = seen.forgotten.and(more);
        seen.forgotten
    }

    /// Which ids may be forgotten by now; before the first look the wall clock is believed.
    pub(crate) fn forgotten_upto(&self, wall: Timestamp, running: Duration) -> ForgottenUpto {
        let passed = self.last().map(|last| last.record.borne_out + running.saturating_sub(last.at));
        let borne_out = passed.map_or(wall, |passed| passed.min(wall));
        ForgottenUpto { borne_out, record: self.seen().forgotten }
    }

    /// The latest instant that was ever borne out: ages of what is stored now are counted from it at the earliest.
    pub(crate) fn reached(&self) -> Timestamp {
        match self.seen().clock {
            SeenClock::Opened(found) => found.map(|(record, _)| record.reached).unwrap_or_default(),
            SeenClock::Look(last) => last.record.reached,
        }
    }

    fn last(&self) -> Option<LastLook> {
        match self.seen().clock {
            SeenClock::Opened(_) => None,
            SeenClock::Look(last) => Some(last),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
    const DAY: Duration = Duration::from_secs(24 * 3_600);

    fn opened(running: Duration) -> (ClockWatch, AgeingRecord) {
        let stored = AgeingRecord::new(START);
        let watch = ClockWatch::new();
        watch.found(stored, ForgottenRecord::EMPTY, running);
        (watch, stored)
    }

    fn look(watch: &ClockWatch, stored: &mut AgeingRecord, wall: Timestamp, running: Duration) -> ClockLook {
        *stored = watch.look(*stored, wall, running);
        watch.keep(*stored, ForgottenRecord::EMPTY, wall, running)
    }

    #[test]
    fn a_jump_while_the_process_runs_is_told_once_and_one_over_a_restart_is_not() {
        let (watch, mut stored) = opened(DAY);
        let restarted = look(&watch, &mut stored, START + DAY * 30, DAY);
        assert_eq!((restarted.ahead, restarted.jumped), (DAY * 30, None));
        let minute = Duration::from_secs(60);
        let jumped = look(&watch, &mut stored, START + DAY * 400, DAY + minute);
        assert_eq!(jumped.jumped, Some(DAY * 370 - minute));
        assert_eq!(look(&watch, &mut stored, START + DAY * 400 + minute, DAY + minute * 2).jumped, None);
    }

    #[test]
    fn of_a_shared_store_only_time_since_its_record_was_read_is_borne_out() {
        let (unread, stored) = (ClockWatch::new(), AgeingRecord::new(START));
        assert_eq!(unread.look(stored, START + DAY, DAY).borne_out, START, "nothing was read at the opening");
        let (watch, _) = opened(DAY);
        let by_another = AgeingRecord::new(START + DAY / 2);
        assert_eq!(watch.look(by_another, START + DAY, DAY * 2).borne_out, START + DAY);
        assert_eq!(watch.look(by_another, START + DAY * 9, DAY * 2).borne_out, START + DAY);
    }

    #[test]
    fn time_since_the_opening_is_borne_out_and_a_recent_look_stands_for_a_new_one() {
        let (watch, mut stored) = opened(DAY);
        let wall = START + DAY;
        assert_eq!(watch.recent(wall, DAY * 2), None);
        assert_eq!(watch.forgotten_upto(wall, DAY * 2).borne_out, wall);
        let seen = look(&watch, &mut stored, wall, DAY * 2);
        assert_eq!((seen.borne_out, seen.ahead), (wall, Duration::ZERO));
        let soon = DAY * 2 + limits::CLOCK_LOOK_KEPT / 2;
        assert_eq!(watch.recent(START + DAY * 400, soon), Some(wall));
        assert_eq!(watch.recent(START, soon), Some(START), "a clock set back forgets less");
        assert_eq!(watch.recent(wall, DAY * 2 + limits::CLOCK_LOOK_KEPT), None);
        assert_eq!(watch.forgotten_upto(START + DAY * 400, DAY * 3).borne_out, wall + DAY);
        assert_eq!(watch.forgotten_upto(START, DAY * 3).borne_out, START);
        assert_eq!(watch.reached(), wall, "also of a clock that is set back");
    }

    #[test]
    fn what_is_forgotten_stays_so_under_any_clock() {
        let (watch, _) = opened(DAY);
        let one = ForgottenRecord::EMPTY.with_id(START, START + DAY * 7);
        let both = one.with_key(START + DAY);
        assert_eq!((watch.forget(one), watch.forget(both)), (one, both));
        assert_eq!(watch.forgotten_upto(START, DAY).record, both);
    }
}
