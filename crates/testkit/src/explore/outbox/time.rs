//! Days, and the instants and receipts the rules are given for them.

use std::num::NonZeroU8;
use std::time::Duration;

use model::outbox::{BrokerReceipt, DedupeWindow, max_age};
use model::{ConversationId, Fingerprint, MessageId, Timestamp};

/// The broker's memory.
pub(super) const WINDOW: DedupeWindow = DedupeWindow::Days(7);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A day somebody wrote down; one byte, also when it may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct At(NonZeroU8);

impl At {
    pub(super) const fn day(day: u8) -> At {
        match NonZeroU8::new(day + 1) {
            Some(number) => At(number),
            None => panic!("a world lasts for some weeks"),
        }
    }

    pub(super) fn instant(self) -> Timestamp {
        instant(self.0.get() - 1)
    }

    /// The day of an instant that a rule made from days.
    pub(super) fn of(instant: Timestamp) -> At {
        let seconds = Duration::from_micros(instant.as_micros().unsigned_abs()).as_secs();
        assert!(seconds.is_multiple_of(DAY.as_secs()), "ages and windows are whole days");
        At::day(u8::try_from(seconds / DAY.as_secs()).expect("a world lasts for some weeks"))
    }
}

pub(super) fn instant(day: u8) -> Timestamp {
    Timestamp::from_micros(0) + DAY * u32::from(day)
}

/// How old an attempted row may get.
pub(super) fn age_max() -> Duration {
    max_age(WINDOW)
}

/// The fingerprint of the words `words`.
pub(super) const fn fingerprint(words: u8) -> Fingerprint {
    Fingerprint::from_bytes([words; 32])
}

/// The receipt of a message accepted then.
pub(super) fn receipt(accepted_at: At) -> BrokerReceipt {
    BrokerReceipt {
        broker_message_id: MessageId::from_bytes([1; 16]),
        conversation: ConversationId::from_bytes([2; 16]),
        history_id: 1,
        accepted_at: accepted_at.instant(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::admission::days_long;

    #[test]
    fn an_attempted_row_lives_for_six_days_and_the_broker_remembers_for_seven() {
        assert_eq!(age_max(), DAY * 6);
        assert_eq!(days_long(7), DAY * 7);
        for day in 0..30 {
            assert_eq!(At::of(instant(day)), At::day(day));
            assert_eq!(At::day(day).instant(), instant(day));
        }
    }
}
