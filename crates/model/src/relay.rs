//! The rules of the edge relay: what becomes of a write that waits on this host's disk.
//!
//! - An envelope that was ever on the wire ends only after the upstream said what became of its key. Until then
//!   it is unfinished and holds its order key. One whose caller waited and heard the upstream's own refusal is forgotten,
//!   unless the caller of a copy holds a receipt for it.
//! - A 2xx is truth from any state; any other answer counts only under the lease the envelope was sent with.
//! - The precondition an envelope is first sent with stays with it on every attempt.
//! - An envelope that may have been sent is sent again only while the upstream surely remembers its key: young enough by
//!   this host's date and by the upstream's time. One that never left has no record there to be forgotten. In a file that
//!   is an older copy, nothing that waits is known to have never left.

mod breaker;
mod explain;
mod key;
mod precondition;
mod settle;
mod withdraw;

pub use breaker::{Breaker, BreakerState};
pub use explain::{Clash, Help, Hold, Life, Said, explain};
pub use key::{CommittedRequest, KeyAnswer, KeyedWrite, fenced};
pub use precondition::{Base, Precondition, effective, unchanged_since};
pub use settle::{Answer, Fenced, Move, conclude, settle};
pub use withdraw::{Cancel, Retry, cancel, retry};

use std::time::Duration;

use crate::clock::Timestamp;
use crate::limits;

/// Where an envelope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Waits for its turn, or for the upstream's word on its key.
    Queued,
    /// On the wire, or about to be.
    Inflight,
    /// The upstream committed it.
    Done,
    /// It clashes with what is there; a person decides.
    Conflict,
    /// The upstream refused it for good.
    Rejected,
    /// Older than the upstream's memory of keys; not replayed by itself.
    Expired,
    /// A person withdrew it.
    Cancelled,
    /// A successor under a new key took its place.
    Superseded,
}

/// What is known of the upstream's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// No byte of it left this host.
    NotSent,
    /// It may have been committed.
    Unknown,
    /// It was.
    Committed,
    /// It was not and never will be: its key is retired.
    NotCommitted,
}

/// How an envelope is to end once the upstream said what became of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// See [`Status::Conflict`].
    Conflict,
    /// See [`Status::Rejected`].
    Rejected,
    /// See [`Status::Expired`].
    Expired,
    /// See [`Status::Cancelled`].
    Cancelled,
}

/// How old an envelope is, as far as a person should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Age {
    /// Nothing to say.
    Fresh,
    /// Half of its time is over.
    Old,
    /// It expires within a day.
    Last,
    /// It is past the age at which it may be replayed by itself.
    Over,
}

/// One moment by the clocks that tell how old a write is; either may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// By this host's date.
    pub here: Timestamp,
    /// By the upstream's time, as it was known here.
    pub upstream: Timestamp,
}

macro_rules! words {
    ($type:ident { $($variant:ident $word:literal $code:literal)* }) => {
        impl $type {
            /// Every one, in the order of their codes.
            pub const ALL: &[$type] = &[$($type::$variant,)*];

            /// The word on the wire.
            pub const fn word(self) -> &'static str {
                match self { $($type::$variant => $word,)* }
            }

            /// The number at rest; it never changes its meaning.
            pub const fn code(self) -> i64 {
                match self { $($type::$variant => $code,)* }
            }

            /// The one of that number.
            pub const fn from_code(code: i64) -> Option<Self> {
                match code { $($code => Some($type::$variant),)* _ => None }
            }

            /// The one of that word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.word() == word)
            }
        }
    };
}

words! { Status {
    Queued "queued" 0 Inflight "inflight" 1 Done "done" 2 Conflict "conflict" 3 Rejected "rejected" 4
    Expired "expired" 5 Cancelled "cancelled" 6 Superseded "superseded" 7
} }
words! { Outcome { NotSent "not_sent" 0 Unknown "unknown" 1 Committed "committed" 2 NotCommitted "not_committed" 3 } }
words! { Ending { Conflict "conflict" 3 Rejected "rejected" 4 Expired "expired" 5 Cancelled "cancelled" 6 } }

impl Status {
    /// Whether it holds its order key.
    pub const fn is_unfinished(self) -> bool {
        match self {
            Status::Queued | Status::Inflight => true,
            Status::Done
            | Status::Conflict
            | Status::Rejected
            | Status::Expired
            | Status::Cancelled
            | Status::Superseded => false,
        }
    }
}

impl Outcome {
    /// Nothing the relay knows denies it.
    pub const fn may_be_committed(self) -> bool {
        match self {
            Outcome::NotSent | Outcome::NotCommitted => false,
            Outcome::Unknown | Outcome::Committed => true,
        }
    }
}

impl Ending {
    /// The state it leads to.
    pub const fn status(self) -> Status {
        match self {
            Ending::Conflict => Status::Conflict,
            Ending::Rejected => Status::Rejected,
            Ending::Expired => Status::Expired,
            Ending::Cancelled => Status::Cancelled,
        }
    }
}

/// How old an envelope queued at `queued_at` is.
pub fn age(queued_at: Timestamp, now: Timestamp) -> Age {
    let age = now.since(queued_at);
    if age >= limits::RELAY_AGE_MAX {
        Age::Over
    } else if age >= limits::RELAY_AGE_LAST {
        Age::Last
    } else if age >= limits::RELAY_AGE_OLD {
        Age::Old
    } else {
        Age::Fresh
    }
}

/// Whether a write of that outcome, stored at `stored`, must not be sent again: it may have been committed, and by one of
/// the clocks the upstream may have forgotten its key. What was stored by a date that lies ahead has no age that could be told, and
/// counts as old; an upstream's stamp that is no later than this host's own may be taken from it, and ages with it. Ages that only end what waits believe less ([`crate::ageing`]): a date that is wrong costs a question
/// here, and a write applied twice there.
pub fn may_be_forgotten(outcome: Outcome, stored: Moment, now: Moment) -> bool {
    let is_over = |stored, now| age(stored, now) == Age::Over;
    let is_ahead = |stored: Timestamp, now: Timestamp| stored > now + limits::CLOCK_STEP_MAX;
    let has_no_age = is_ahead(stored.here, now.here)
        || is_ahead(stored.upstream, now.upstream) && is_ahead(stored.upstream, stored.here);
    let is_old = is_over(stored.here, now.here) || is_over(stored.upstream, now.upstream);
    outcome.may_be_committed() && (is_old || has_no_age)
}

/// How long an envelope waits after its `attempts`-th try; the upstream's own wish counts within a bound.
pub fn delay(attempts: u32, retry_after: Option<Duration>, random: u64) -> Duration {
    let ceiling = limits::RELAY_RETRY_DELAY_MIN
        .saturating_mul(1 << attempts.saturating_sub(1).min(16))
        .min(limits::RELAY_RETRY_DELAY_MAX);
    // Between half of it and all of it: a fleet of relays comes back spread out, none at once.
    let half = u64::try_from(ceiling.as_micros() / 2).expect("a delay of minutes fits 64 bits");
    let own = Duration::from_micros(half + random % (half + 1));
    own.max(retry_after.unwrap_or_default().min(limits::RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_codes_read_back() {
        for status in Status::ALL {
            assert_eq!(Status::from_code(status.code()), Some(*status));
            assert_eq!(Status::parse(status.word()), Some(*status));
        }
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_code(outcome.code()), Some(*outcome));
        }
        for ending in Ending::ALL {
            assert_eq!(Ending::from_code(ending.code()), Some(*ending));
            assert_eq!(ending.code(), ending.status().code(), "an ending is stored as the state it leads to");
        }
        assert_eq!((Status::from_code(8), Status::parse("sent")), (None, None));
    }

    #[test]
    fn an_envelope_ages_at_seven_twelve_and_thirteen_days() {
        let at = |days: i64, micros: i64| Timestamp::from_micros(days * 86_400_000_000 + micros);
        for (now, expected) in [
            (at(0, 0), Age::Fresh),
            (at(7, -1), Age::Fresh),
            (at(7, 0), Age::Old),
            (at(12, -1), Age::Old),
            (at(12, 0), Age::Last),
            (at(13, -1), Age::Last),
            (at(13, 0), Age::Over),
            (at(-1, 0), Age::Fresh),
        ] {
            assert_eq!(age(at(0, 0), now), expected, "{now}");
        }
        assert!(limits::RELAY_AGE_MAX + Duration::from_secs(86_400) <= limits::IDEMPOTENCY_KEPT);
    }

    #[test]
    fn a_write_that_may_be_committed_is_not_sent_again_once_it_is_too_old_by_any_clock() {
        let at = |here: i64, upstream: i64| Moment {
            here: Timestamp::from_micros(here * 86_400_000_000),
            upstream: Timestamp::from_micros(upstream * 86_400_000_000),
        };
        for (stored, now, expected) in [
            (at(0, 0), at(12, 12), false),
            (at(0, 0), at(13, 13), true),
            (at(0, 0), at(13, 0), true),
            (at(0, 0), at(0, 13), true),
            (at(0, 0), at(-400, 13), true),
            (at(0, 400), at(12, 412), false),
            (at(0, 400), at(12, 413), true),
            // From a date that was ahead by days, on either clock.
            (at(400, 0), at(0, 0), true),
            (at(0, 400), at(0, 0), true),
            (at(400, 400), at(0, 0), true),
            // Stored before the upstream's time was known.
            (at(400, 400), at(412, 12), false),
            (at(400, 400), at(413, 13), true),
        ] {
            for outcome in Outcome::ALL {
                let may_be_committed = matches!(outcome, Outcome::Unknown | Outcome::Committed);
                let forgotten = may_be_forgotten(*outcome, stored, now);
                assert_eq!(forgotten, expected && may_be_committed, "{outcome:?} {stored:?} {now:?}");
            }
        }
    }

    #[test]
    fn a_stored_instant_that_lies_ahead_by_no_more_than_a_small_step_is_young() {
        let now = Timestamp::from_micros(1_800_000_000_000_000);
        let (step, micro) = (limits::CLOCK_STEP_MAX, Duration::from_micros(1));
        for (stored, expected) in [(now, false), (now + step, false), (now + step + micro, true)] {
            for stored in [Moment { here: stored, upstream: now }, Moment { here: now, upstream: stored }] {
                let now = Moment { here: now, upstream: now };
                assert_eq!(may_be_forgotten(Outcome::Unknown, stored, now), expected, "{stored:?}");
                assert!(!may_be_forgotten(Outcome::NotSent, stored, now), "{stored:?}");
            }
        }
    }

    #[test]
    fn the_delay_doubles_from_a_second_to_five_minutes_and_honours_the_upstream() {
        for (attempts, ceiling) in [(0, 1), (1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (u32::MAX, 300)] {
            let ceiling = Duration::from_secs(ceiling);
            assert_eq!(delay(attempts, None, 0), ceiling / 2);
            assert!(delay(attempts, None, u64::MAX) <= ceiling);
        }
        assert_eq!(delay(1, Some(Duration::from_secs(20)), 0), Duration::from_secs(20));
        assert_eq!(delay(1, Some(Duration::from_secs(90_000)), 0), limits::RETRY_AFTER_MAX);
    }
}
