//! The receipt ladder: what is durably true of a message now.
//!
//! - A rung is written in the same transaction as the fact it names.
//! - Rungs only rise; a lower rung is never shown as success of a higher one.

use std::fmt;

use crate::envelope::words;
use crate::error::Malformed;
use std::str::FromStr;

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// Durable on this host.
    Queued,
    /// Durable at the broker.
    Accepted,
    /// In the recipient's inbox.
    Delivered,
    /// Its agent was woken.
    Notified,
    /// A turn began.
    Engaged,
    /// The turn ended.
    Processed,
}

/// How a message ended without reaching the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// The other side refused it for good and holds nothing.
    Rejected,
    /// It clashes with what is already there.
    Conflict,
    /// We gave up; it needs a person.
    Dead,
    /// A person retired it.
    Aborted,
    /// Its time ran out.
    Expired,
    /// A person withdrew it.
    Cancelled,
}

/// Where one recipient's copy is, in the order in which one fact outranks another: a copy given up
/// or expired at the broker may still turn out to be in the inbox, and then it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DeliveryRung {
    /// Held at the broker.
    Accepted = 1,
    /// Not delivered in time.
    Expired = 2,
    /// The recipient's node could not store it.
    DeadLetter = 3,
    /// In the recipient's inbox.
    Delivered = 4,
    /// Handed to the recipient.
    Notified = 5,
    /// A turn began.
    Engaged = 6,
    /// The turn ended.
    Processed = 7,
}

/// What a message's recipients have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// The lowest rung among those still under way.
    At(Rung),
    /// Nobody is under way any more.
    Ended(Ended),
}

words! { Rung "rung" "queued, accepted, delivered, notified, engaged or processed" {
    Queued "queued" Accepted "accepted" Delivered "delivered" Notified "notified" Engaged "engaged" Processed "processed"
} }
words! { Ended "receipt" "rejected, conflict, dead, aborted, expired or cancelled" {
    Rejected "rejected" Conflict "conflict" Dead "dead" Aborted "aborted" Expired "expired" Cancelled "cancelled"
} }
words! { DeliveryRung "rung" "accepted, expired, dead_letter, delivered, notified, engaged or processed" {
    Accepted "accepted" Expired "expired" DeadLetter "dead_letter" Delivered "delivered" Notified "notified" Engaged "engaged" Processed "processed"
} }

impl Rung {
    /// One sentence for people: what is true, and what is not said.
    pub const fn meaning(self) -> &'static str {
        match self {
            Rung::Queued => "Safe on this host's disk. Nobody else has confirmed it yet.",
            Rung::Accepted => "Safe at the broker, hub or receiving node, which carries it on.",
            Rung::Delivered => "In the recipient's inbox.",
            Rung::Notified => "Its agent was woken. No turn has begun.",
            Rung::Engaged => "A turn on it began.",
            Rung::Processed => "The turn ended, with a reply or a recorded end.",
        }
    }
}

impl Ended {
    /// One sentence for people: how it ended.
    pub const fn meaning(self) -> &'static str {
        match self {
            Ended::Rejected => "The other side refused it for good and holds nothing.",
            Ended::Conflict => {
                "It clashes with what is already there. Nothing was overwritten; a person decides."
            }
            Ended::Dead => "Given up. It needs a person.",
            Ended::Aborted => "A person retired it. Its id stays used.",
            Ended::Expired => "Its time ran out before the next rung.",
            Ended::Cancelled => "A person withdrew it.",
        }
    }
}

impl DeliveryRung {
    /// The stored number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The rung stored as `code`.
    pub fn from_code(code: i64) -> Option<DeliveryRung> {
        DeliveryRung::ALL.iter().copied().find(|rung| i64::from(rung.code()) == code)
    }

    /// The ladder's word, or how it ended.
    pub const fn standing(self) -> Standing {
        match self {
            DeliveryRung::Accepted => Standing::At(Rung::Accepted),
            DeliveryRung::Expired => Standing::Ended(Ended::Expired),
            DeliveryRung::DeadLetter => Standing::Ended(Ended::Dead),
            DeliveryRung::Delivered => Standing::At(Rung::Delivered),
            DeliveryRung::Notified => Standing::At(Rung::Notified),
            DeliveryRung::Engaged => Standing::At(Rung::Engaged),
            DeliveryRung::Processed => Standing::At(Rung::Processed),
        }
    }
}

/// The rung after hearing `told`, when that is a rise.
pub fn rise(held: DeliveryRung, told: DeliveryRung) -> Option<DeliveryRung> {
    (told > held).then_some(told)
}

/// What an accepted message may claim: its lowest recipient's rung. Recipients that ended leave the
/// minimum; when all ended the message takes the last one's word; without any, `accepted` is final.
pub fn standing(recipients: &[DeliveryRung]) -> Standing {
    let under_way = recipients.iter().filter_map(|rung| match rung.standing() {
        Standing::At(rung) => Some(rung),
        Standing::Ended(_) => None,
    });
    match (under_way.min(), recipients.last()) {
        (Some(lowest), _) => Standing::At(lowest),
        (None, Some(ended)) => ended.standing(),
        (None, None) => Standing::At(Rung::Accepted),
    }
}

/// What a receipt's word means; nothing for a word that is none.
pub fn meaning(word: &str) -> Option<&'static str> {
    let rung = word.parse::<Rung>().map(Rung::meaning);
    let ended = || word.parse::<Ended>().map(Ended::meaning);
    let copy = || {
        word.parse::<DeliveryRung>().map(|copy| match copy.standing() {
            Standing::At(rung) => rung.meaning(),
            Standing::Ended(ended) => ended.meaning(),
        })
    };
    rung.or_else(|_| ended()).or_else(|_| copy()).ok()
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::At(rung) => rung.fmt(f),
            Standing::Ended(ended) => ended.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DeliveryRung::*;

    #[test]
    fn a_late_ack_outranks_every_end_and_nothing_falls() {
        let order = [Accepted, Expired, DeadLetter, Delivered, Notified, Engaged, Processed];
        assert_eq!(order.as_slice(), DeliveryRung::ALL);
        for (low, held) in order.iter().enumerate() {
            for (high, told) in order.iter().enumerate() {
                assert_eq!(rise(*held, *told), (high > low).then_some(*told), "{held} hears {told}");
            }
            assert_eq!(DeliveryRung::from_code(held.code().into()), Some(*held));
        }
        assert_eq!(DeliveryRung::from_code(0), None);
        assert_eq!(DeliveryRung::from_code(8), None);
    }

    #[test]
    fn a_message_stands_where_its_lowest_recipient_under_way_stands() {
        for (recipients, expected) in [
            (vec![], Standing::At(Rung::Accepted)),
            (vec![Accepted, Processed], Standing::At(Rung::Accepted)),
            (vec![Delivered, Engaged], Standing::At(Rung::Delivered)),
            (vec![Expired, Notified], Standing::At(Rung::Notified)),
            (vec![Expired], Standing::Ended(Ended::Expired)),
            (vec![Expired, DeadLetter], Standing::Ended(Ended::Dead)),
            (vec![Processed], Standing::At(Rung::Processed)),
        ] {
            assert_eq!(standing(&recipients), expected, "{recipients:?}");
        }
    }

    #[test]
    fn every_word_of_a_receipt_has_a_meaning_that_never_claims_more() {
        let words =
            Rung::ALL.iter().map(|rung| rung.word()).chain(Ended::ALL.iter().map(|ended| ended.word()));
        for word in words.chain(DeliveryRung::ALL.iter().map(|copy| copy.word())) {
            let meaning = meaning(word).unwrap_or_else(|| panic!("{word} has no meaning"));
            assert!(!meaning.contains("sent"), "{word}: {meaning}");
        }
        assert_eq!(meaning("dead_letter"), meaning("dead"));
        assert_eq!(meaning("sent"), None);
    }

    #[test]
    fn the_ladder_is_in_order() {
        assert!(Rung::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(Rung::ALL.len(), 6);
    }
}
