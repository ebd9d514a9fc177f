//! How far a store may forget. Whatever ends by age waits for a clock, and a clock may be wrong: one that stands ahead
//! by the dedupe window for an hour would end everything in that hour.
//!
//! - The wall clock is believed as far as time that was seen to pass bears it out: what this process counted since its
//!   last look, on a clock that no date moves.
//! - What the wall clock stands ahead of that is in doubt: a wrong date, or time in which no process ran. It is
//!   believed once it has stood so for [`CLOCK_DOUBT`] of running time, and only the least of it.
//! - The record is durable. A restart bears nothing out and takes nothing back.
//! - A clock may also stand behind and be set right later. What is stored meanwhile is kept for its time counted from the
//!   latest instant ever borne out.
//! - What was forgotten is recorded, so that a late copy of it is refused after the clock was set back.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::Malformed;
use crate::limits::{CLOCK_DOUBT, CLOCK_STEP_MAX, FIRST_ATTEMPT_ERROR_MAX};
use crate::outbox::{DedupeWindow, max_age};

const BEFORE_ALL: Timestamp = Timestamp::from_micros(i64::MIN);

/// What a store has seen of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgeingRecord {
    /// The wall clock as far as it is borne out.
    pub borne_out: Timestamp,
    /// The latest instant that [`AgeingRecord::borne_out`] ever was.
    pub reached: Timestamp,
    /// Set while the wall clock stands ahead of what is borne out.
    pub doubt: Option<ClockDoubt>,
}

/// A wall clock ahead of what is borne out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDoubt {
    /// What was borne out when it was first seen: running time is counted from here.
    pub since: Timestamp,
    /// The least that it stood ahead since.
    pub least: Duration,
}

impl AgeingRecord {
    /// The record of a store that begins at `at`.
    pub const fn new(at: Timestamp) -> Self {
        Self { borne_out: at, reached: at, doubt: None }
    }

    /// The record after a look at the wall clock. `counted` is what this process bears out by itself: what was borne
    /// out at its last look, and the running time since; several processes may share a record.
    pub fn look(self, wall: Timestamp, counted: Option<Timestamp>) -> Self {
        let passed = counted.map_or(self.borne_out, |counted| self.borne_out.max(counted));
        if wall <= passed + CLOCK_STEP_MAX {
            return self.at(wall, None);
        }
        let ahead = wall.since(passed);
        let doubt = match self.doubt {
            Some(doubt) => ClockDoubt { least: doubt.least.min(ahead), ..doubt },
            None => ClockDoubt { since: passed, least: ahead },
        };
        if passed.since(doubt.since) < CLOCK_DOUBT {
            return self.at(passed, Some(doubt));
        }
        let believed = passed + doubt.least;
        let rest = ahead.saturating_sub(doubt.least);
        let doubt = (rest > CLOCK_STEP_MAX).then_some(ClockDoubt { since: believed, least: rest });
        self.at(believed, doubt)
    }

    fn at(self, borne_out: Timestamp, doubt: Option<ClockDoubt>) -> Self {
        Self { borne_out, reached: self.reached.max(borne_out), doubt }
    }
}

/// What a store has forgotten by age, for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForgottenRecord {
    /// The newest instant at which the first copy of a forgotten id may have been made.
    pub ids_tried_upto: Timestamp,
    /// The latest send deadline that a copy of a forgotten id may have.
    pub ids_deadline_upto: Timestamp,
    /// [`ForgottenRecord::ids_tried_upto`] for the hub's keys.
    pub keys_made_upto: Timestamp,
}

impl ForgottenRecord {
    /// The record of a store that has forgotten nothing.
    pub const EMPTY: Self =
        Self { ids_tried_upto: BEFORE_ALL, ids_deadline_upto: BEFORE_ALL, keys_made_upto: BEFORE_ALL };

    /// With an id that was first seen at `seen_at` and kept until `expires_at`. The mesh may have changed its window
    /// meanwhile, so the id's own tells which deadlines its copies have.
    #[must_use]
    pub fn with_id(self, seen_at: Timestamp, expires_at: Timestamp) -> Self {
        let days = expires_at.since(seen_at).as_secs().div_ceil(24 * 3_600);
        let window = DedupeWindow::Days(u32::try_from(days).unwrap_or(u32::MAX / 24));
        let begun_at = seen_at + FIRST_ATTEMPT_ERROR_MAX;
        Self {
            ids_tried_upto: self.ids_tried_upto.max(begun_at),
            ids_deadline_upto: self.ids_deadline_upto.max(begun_at + max_age(window)),
            ..self
        }
    }

    /// With a key that was first used at `seen_at`.
    #[must_use]
    pub fn with_key(self, seen_at: Timestamp) -> Self {
        Self { keys_made_upto: self.keys_made_upto.max(seen_at + FIRST_ATTEMPT_ERROR_MAX), ..self }
    }

    /// With what another record has.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            ids_tried_upto: self.ids_tried_upto.max(other.ids_tried_upto),
            ids_deadline_upto: self.ids_deadline_upto.max(other.ids_deadline_upto),
            keys_made_upto: self.keys_made_upto.max(other.keys_made_upto),
        }
    }
}

/// Which ids and keys a store may have forgotten by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForgottenUpto {
    /// What ends by age, ends by this instant.
    pub borne_out: Timestamp,
    /// What was forgotten before.
    pub record: ForgottenRecord,
}

impl ForgottenUpto {
    /// Of a store that has forgotten nothing yet.
    pub fn at(borne_out: Timestamp) -> Self {
        Self { borne_out, record: ForgottenRecord::EMPTY }
    }

    /// Whether the id of a copy with this send deadline may be forgotten.
    pub fn may_include_copy(&self, send_deadline: Timestamp, max_age: Duration) -> bool {
        self.borne_out >= send_deadline
            || self.record.ids_deadline_upto >= send_deadline
            || self.record.ids_tried_upto + max_age >= send_deadline
    }

    /// Whether an id that was first tried at `begun_at` was forgotten.
    pub fn includes_id(&self, begun_at: Timestamp) -> bool {
        self.record.ids_tried_upto >= begun_at
    }

    /// Whether a key whose request was first made at `begun_at` was forgotten.
    pub fn includes_key(&self, begun_at: Timestamp) -> bool {
        self.record.keys_made_upto >= begun_at
    }
}

/// As a line of text, for stores that keep facts by name.
impl fmt::Display for AgeingRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.borne_out.as_micros(), self.reached.as_micros())?;
        match self.doubt {
            Some(ClockDoubt { since, least }) => write!(f, " {} {}", since.as_micros(), least.as_micros()),
            None => Ok(()),
        }
    }
}

impl FromStr for AgeingRecord {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let numbers: Option<Vec<i64>> = text.split(' ').map(|number| number.parse().ok()).collect();
        let at = Timestamp::from_micros;
        match numbers.as_deref() {
            Some([borne_out, reached]) => {
                Ok(Self { borne_out: at(*borne_out), reached: at(*reached), doubt: None })
            }
            Some([borne_out, reached, since, least]) => {
                let least = Duration::from_micros(least.unsigned_abs());
                let doubt = Some(ClockDoubt { since: at(*since), least });
                Ok(Self { borne_out: at(*borne_out), reached: at(*reached), doubt })
            }
            Some(_) | None => Err(Malformed::new("ageing record", "two or four whole numbers")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const DAY: Duration = Duration::from_secs(24 * 3_600);
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
    const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    /// One process with a look each `every`; its wall clock stands off the true time by what `off` says.
    struct Life {
        record: AgeingRecord,
        true_time: Timestamp,
        counted_from: Option<Timestamp>,
    }

    impl Life {
        fn begin() -> Self {
            Self { record: AgeingRecord::new(START), true_time: START, counted_from: None }
        }

        fn restart(&mut self, away: Duration) {
            (self.true_time, self.counted_from) = (self.true_time + away, None);
        }

        fn run(&mut self, span: Duration, every: Duration, ahead: Duration) {
            let end = self.true_time + span;
            while self.true_time < end {
                self.true_time = self.true_time + every;
                let counted = self.counted_from.map(|at| at + every);
                self.record = self.record.look(self.true_time + ahead, counted);
                self.counted_from = Some(self.record.borne_out);
            }
        }

        fn behind(&self) -> Duration {
            self.true_time.since(self.record.borne_out)
        }
    }

    #[test]
    fn a_forgotten_id_covers_its_copies_under_any_window_and_nothing_that_began_later() {
        let (seen, later) = (START + DAY, START + DAY + FIRST_ATTEMPT_ERROR_MAX * 2);
        let window = |days| max_age(DedupeWindow::Days(days));
        for (kept, promised, now) in [(7, 7, 7), (365, 365, 365), (365, 365, 7), (7, 365, 365), (30, 30, 90)]
        {
            let record = ForgottenRecord::EMPTY.with_id(seen, seen + DAY * kept).with_key(seen);
            // Wherever the clock is set to.
            let forgotten = ForgottenUpto { borne_out: START, record };
            let case = format!("kept {kept}, promised {promised}, now {now}");
            let shrunk = now < promised;
            assert!(forgotten.may_include_copy(seen + window(promised), window(now)), "{case}");
            assert!(forgotten.includes_id(seen) && forgotten.includes_key(seen), "{case}");
            assert!(!forgotten.includes_id(later) && !forgotten.includes_key(later), "{case}");
            assert_eq!(forgotten.may_include_copy(later + window(now), window(now)), shrunk, "{case}");
        }
        let nothing = ForgottenUpto::at(START);
        assert!(!nothing.may_include_copy(START + DAY, DAY * 400) && nothing.may_include_copy(START, DAY));
    }

    #[test]
    fn each_look_has_its_record() {
        let step = Duration::from_secs(CLOCK_STEP_MAX.as_secs());
        let doubt = |since, least| Some(ClockDoubt { since, least });
        for (case, record, wall, counted, borne_out, expected) in [
            ("as time passes", None, START + HOUR, Some(START + HOUR), START + HOUR, None),
            ("a small step", None, START + step, None, START + step, None),
            (
                "a jump",
                None,
                START + YEAR,
                Some(START + HOUR),
                START + HOUR,
                doubt(START + HOUR, YEAR - HOUR),
            ),
            ("a restart after a while", None, START + DAY, None, START, doubt(START, DAY)),
            ("another process counted more", None, START, Some(START + HOUR), START, None),
            ("the date set back", None, START, Some(START + DAY), START, None),
            (
                "doubt goes on, the least counts",
                doubt(START, YEAR),
                START + DAY,
                Some(START + HOUR),
                START + HOUR,
                doubt(START, DAY - HOUR),
            ),
            (
                "the date is right again",
                doubt(START, YEAR),
                START + HOUR,
                Some(START + HOUR),
                START + HOUR,
                None,
            ),
            (
                "it stood for the whole doubt",
                doubt(START, DAY),
                START + CLOCK_DOUBT + DAY,
                Some(START + CLOCK_DOUBT),
                START + CLOCK_DOUBT + DAY,
                None,
            ),
            (
                "what came later stands for itself",
                doubt(START, DAY),
                START + CLOCK_DOUBT + YEAR,
                Some(START + CLOCK_DOUBT),
                START + CLOCK_DOUBT + DAY,
                doubt(START + CLOCK_DOUBT + DAY, YEAR - DAY),
            ),
        ] {
            let record = AgeingRecord { doubt: record, ..AgeingRecord::new(START) };
            let next = record.look(wall, counted);
            assert_eq!((next.borne_out, next.doubt), (borne_out, expected), "{case}");
            assert!(next.borne_out <= wall && next.reached >= next.borne_out, "{case}");
        }
    }

    #[test]
    fn a_clock_ahead_for_less_than_the_doubt_moves_nothing_and_one_that_stays_is_believed() {
        for every in [Duration::from_secs(60), HOUR] {
            let mut life = Life::begin();
            life.run(DAY, HOUR, Duration::ZERO);
            life.run(CLOCK_DOUBT - HOUR, every, YEAR);
            assert!(life.record.reached <= life.true_time, "nothing younger than the window is forgotten");
            life.run(HOUR, every, Duration::ZERO);
            assert_eq!((life.record.borne_out, life.record.doubt), (life.true_time, None));
            life.run(CLOCK_DOUBT + HOUR, every, YEAR);
            assert_eq!(life.record.borne_out, life.true_time + YEAR);
        }
    }

    #[test]
    fn restarts_bear_nothing_out() {
        let mut life = Life::begin();
        for _ in 0..10_000 {
            life.restart(Duration::from_millis(1));
            life.run(Duration::from_secs(2), Duration::from_secs(1), YEAR);
        }
        assert!(life.record.reached <= life.true_time);
    }

    #[test]
    fn a_machine_that_runs_a_third_of_each_day_keeps_up_within_days() {
        let mut life = Life::begin();
        let mut furthest = Duration::ZERO;
        for _ in 0..400 {
            life.restart(HOUR * 16);
            life.run(HOUR * 8, HOUR, Duration::ZERO);
            furthest = furthest.max(life.behind());
        }
        assert!(furthest < DAY * 6, "{furthest:?}");
        life.run(CLOCK_DOUBT - HOUR, HOUR, YEAR);
        assert!(life.record.reached <= life.true_time, "its nights hide no jump");
    }

    #[test]
    fn two_processes_on_one_record_bear_out_no_more_than_passed() {
        let (mut record, mut seen) = (AgeingRecord::new(START), [None::<Timestamp>; 2]);
        for minute in 1..=60_u64 {
            let passed = Duration::from_secs(60 * minute);
            for process in &mut seen {
                let counted = process.map(|at| at + Duration::from_secs(60));
                record = record.look(START + YEAR + passed, counted);
                *process = Some(record.borne_out);
            }
            assert!(record.borne_out <= START + passed, "{minute}");
        }
    }

    #[test]
    fn a_record_is_read_back_from_its_text() {
        let doubt = Some(ClockDoubt { since: START, least: YEAR });
        for record in [AgeingRecord::new(START), AgeingRecord { doubt, ..AgeingRecord::new(START + HOUR) }] {
            assert_eq!(record.to_string().parse(), Ok(record));
        }
        for forged in ["", "1", "1 2 3", "a b", "1 2 3 4 5"] {
            assert!(forged.parse::<AgeingRecord>().is_err(), "{forged}");
        }
    }
}
