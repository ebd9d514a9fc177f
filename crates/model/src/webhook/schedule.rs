//! When a call that was not taken comes again, and when it never does.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::limits::{WEBHOOK_ATTEMPTS_MAX, WEBHOOK_RETRY_AFTER_MAX};

/// What an endpoint made of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It took it.
    Taken,
    /// It says that nobody is there any more.
    Gone,
    /// It refused, or nobody answered in time; perhaps it named a time.
    NotTaken {
        /// How long it asked to be left alone.
        retry_after: Option<Duration>,
    },
}

/// What becomes of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is delivered.
    Delivered,
    /// It is tried again.
    Again {
        /// After this long.
        after: Duration,
    },
    /// It was tried often enough.
    GiveUp,
    /// It waits, with all others, until the owner starts the webhook again.
    Disable,
}

const fn minutes(n: u64) -> Duration {
    Duration::from_secs(n * 60)
}

const fn hours(n: u64) -> Duration {
    minutes(n * 60)
}

/// After the first, the second … attempt; from then on the last.
const DELAYS: [Duration; 9] = [
    Duration::from_secs(5),
    minutes(5),
    minutes(30),
    hours(2),
    hours(5),
    hours(10),
    hours(14),
    hours(20),
    hours(24),
];

/// Up to this part of a delay is added, so that rows refused together do not come back together.
const JITTER_PART: u32 = 5;

/// `attempts` counts the calls so far, this one included; `random` is any uniform number.
pub fn judge(heard: Heard, attempts: u32, random: u64) -> Verdict {
    match heard {
        Heard::Taken => Verdict::Delivered,
        Heard::Gone => Verdict::Disable,
        Heard::NotTaken { .. } if attempts >= WEBHOOK_ATTEMPTS_MAX => Verdict::GiveUp,
        Heard::NotTaken { retry_after } => {
            let asked = retry_after.unwrap_or_default().min(WEBHOOK_RETRY_AFTER_MAX);
            Verdict::Again { after: delay(attempts, random).max(asked) }
        }
    }
}

/// How long a `Retry-After` asks to wait: seconds, or an instant after `now`.
pub fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit are a time without end.
        return Some(text.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let instant = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Timestamp::from_micros(instant.as_microsecond()).since(now))
}

fn delay(attempts: u32, random: u64) -> Duration {
    let place = usize::try_from(attempts.max(1) - 1).unwrap_or(usize::MAX).min(DELAYS.len() - 1);
    let base = DELAYS[place];
    let spread = u64::try_from((base / JITTER_PART).as_micros()).expect("a day of microseconds fits 64 bits");
    base + Duration::from_micros(random % (spread + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::UNDELIVERED_DAYS_MAX;

    const REFUSED: Heard = Heard::NotTaken { retry_after: None };

    #[test]
    fn the_delays_are_the_schedules_with_at_most_a_fifth_more() {
        let seconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400, 86_400, 86_400];
        for (attempts, seconds) in (1..).zip(seconds) {
            let least = Duration::from_secs(seconds);
            let most = least + least / 5;
            let micros = u64::try_from((least / 5).as_micros()).unwrap();
            assert_eq!(judge(REFUSED, attempts, 0), Verdict::Again { after: least }, "{attempts}");
            assert_eq!(judge(REFUSED, attempts, micros), Verdict::Again { after: most }, "{attempts}");
            assert_eq!(judge(REFUSED, attempts, micros + 1), Verdict::Again { after: least }, "it wraps");
        }
        assert_eq!(seconds.len() + 1, WEBHOOK_ATTEMPTS_MAX as usize, "one delay between two attempts");
    }

    #[test]
    fn the_last_attempt_is_the_last_and_comes_before_the_bound_of_undelivered_rows() {
        for attempts in [WEBHOOK_ATTEMPTS_MAX, WEBHOOK_ATTEMPTS_MAX + 1, u32::MAX] {
            assert_eq!(judge(REFUSED, attempts, 0), Verdict::GiveUp);
        }
        let whole: Duration = (1..WEBHOOK_ATTEMPTS_MAX).map(|attempts| delay(attempts, u64::MAX)).sum();
        assert!(whole < crate::admission::days_long(UNDELIVERED_DAYS_MAX), "{whole:?}");
    }

    #[test]
    fn an_endpoint_may_ask_for_more_time_and_never_for_less() {
        let after = |seconds| {
            let heard = Heard::NotTaken { retry_after: Some(Duration::from_secs(seconds)) };
            judge(heard, 1, 0)
        };
        assert_eq!(after(1), Verdict::Again { after: Duration::from_secs(5) });
        assert_eq!(after(90), Verdict::Again { after: Duration::from_secs(90) });
        assert_eq!(after(u64::MAX), Verdict::Again { after: WEBHOOK_RETRY_AFTER_MAX });
    }

    #[test]
    fn success_delivers_and_gone_disables_at_any_attempt() {
        for attempts in [1, WEBHOOK_ATTEMPTS_MAX, u32::MAX] {
            assert_eq!(judge(Heard::Taken, attempts, 7), Verdict::Delivered);
            assert_eq!(judge(Heard::Gone, attempts, 7), Verdict::Disable);
        }
    }

    #[test]
    fn a_retry_after_is_seconds_or_a_date() {
        // 1994-11-06T08:49:37Z, the example of the HTTP standard.
        let now = Timestamp::from_micros(784_111_777_000_000);
        for (text, wait) in [
            ("120", Some(Duration::from_secs(120))),
            (" 0 ", Some(Duration::ZERO)),
            ("99999999999999999999999", Some(Duration::MAX)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some(Duration::from_secs(120))),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(Duration::ZERO)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(retry_after(text, now), wait, "{text:?}");
        }
    }
}
