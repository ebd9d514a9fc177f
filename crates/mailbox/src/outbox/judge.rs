//! When a row may be replaced under a new id, as a pure rule: never while the old id may still turn out
//! accepted, unless a person insists.

use model::Timestamp;
use model::admission::StatusAnswer;
use model::outbox::{BrokerReceipt, Outcome};

/// Whether the broker must be asked before a row is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// It never left this host, or the broker has retired its id.
    NotNeeded,
    /// A copy may have been accepted.
    Needed {
        /// When the first one left, in broker time.
        first_attempt_at: Timestamp,
    },
}

/// The broker's word on a row, asked with a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It was not asked, or did not answer.
    Silence,
    /// It answered.
    Told(StatusAnswer),
}

/// Whether a possible duplicate is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// No.
    Refuse,
    /// Yes: the operator insists.
    Force,
}

/// What may be done with a held row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Replace it; what is known may still change.
    Replace(Outcome),
    /// Replace it; nothing more will be known.
    ReplaceForGood(Outcome),
    /// Mark it done instead.
    Accepted(BrokerReceipt),
    /// Leave it: a copy may have been accepted.
    Doubtful,
}

/// Whether the broker must be asked about a row before it is replaced.
pub(super) fn asking(first_attempt_at: Option<Timestamp>, known: Option<Outcome>) -> Asking {
    match (first_attempt_at, known) {
        (None, _) | (Some(_), Some(Outcome::NotSent | Outcome::NotAccepted)) => Asking::NotNeeded,
        (Some(first_attempt_at), None | Some(Outcome::Unknown | Outcome::Accepted)) => {
            Asking::Needed { first_attempt_at }
        }
    }
}

/// Decides a requeue.
pub(super) fn judge(
    first_attempt_at: Option<Timestamp>,
    known: Option<Outcome>,
    word: Word,
    doubt: Doubt,
) -> Judgement {
    match (asking(first_attempt_at, known), word) {
        (Asking::NotNeeded, _) => Judgement::Replace(known.unwrap_or(Outcome::NotSent)),
        (Asking::Needed { .. }, Word::Told(StatusAnswer::Accepted(receipt))) => Judgement::Accepted(receipt),
        (
            Asking::Needed { .. },
            Word::Told(StatusAnswer::AcceptedOtherFingerprint | StatusAnswer::Retired | StatusAnswer::Absent),
        ) => Judgement::ReplaceForGood(Outcome::NotAccepted),
        (Asking::Needed { .. }, word @ (Word::Told(StatusAnswer::Unknown) | Word::Silence)) => {
            match (doubt, word) {
                (Doubt::Refuse, _) => Judgement::Doubtful,
                (Doubt::Force, Word::Silence) => Judgement::Replace(Outcome::Unknown),
                (Doubt::Force, Word::Told(_)) => Judgement::ReplaceForGood(Outcome::Unknown),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{ConversationId, MessageId};

    fn receipt() -> BrokerReceipt {
        BrokerReceipt {
            broker_message_id: MessageId::from_bytes([1; 16]),
            conversation: ConversationId::from_bytes([2; 16]),
            history_id: 3,
            accepted_at: Timestamp::from_micros(4),
        }
    }

    #[test]
    fn a_row_that_may_have_been_accepted_is_replaced_only_on_the_brokers_word_or_by_force() {
        use Judgement::{Accepted, Doubtful, Replace, ReplaceForGood};
        use Outcome::{NotAccepted, NotSent, Unknown};
        let tried = Some(Timestamp::from_micros(1));
        let accepted = Word::Told(StatusAnswer::Accepted(receipt()));
        let (retired, absent) = (Word::Told(StatusAnswer::Retired), Word::Told(StatusAnswer::Absent));
        let other = Word::Told(StatusAnswer::AcceptedOtherFingerprint);
        let unknown = Word::Told(StatusAnswer::Unknown);
        for (first, known, word, refusing, forcing) in [
            // It never left: nobody needs to be asked, whatever they say.
            (None, None, Word::Silence, Replace(NotSent), Replace(NotSent)),
            (None, Some(NotSent), unknown, Replace(NotSent), Replace(NotSent)),
            // Its id is retired: it cannot be accepted any more.
            (tried, Some(NotAccepted), Word::Silence, Replace(NotAccepted), Replace(NotAccepted)),
            // A pending row that was tried, and a dead one nobody knows of.
            (tried, None, Word::Silence, Doubtful, Replace(Unknown)),
            (tried, Some(Unknown), Word::Silence, Doubtful, Replace(Unknown)),
            (tried, None, unknown, Doubtful, ReplaceForGood(Unknown)),
            (tried, Some(Unknown), unknown, Doubtful, ReplaceForGood(Unknown)),
            (tried, None, accepted, Accepted(receipt()), Accepted(receipt())),
            (tried, Some(Unknown), accepted, Accepted(receipt()), Accepted(receipt())),
            (tried, None, absent, ReplaceForGood(NotAccepted), ReplaceForGood(NotAccepted)),
            (tried, Some(Unknown), retired, ReplaceForGood(NotAccepted), ReplaceForGood(NotAccepted)),
            (tried, None, other, ReplaceForGood(NotAccepted), ReplaceForGood(NotAccepted)),
        ] {
            assert_eq!(judge(first, known, word, Doubt::Refuse), refusing, "{first:?} {known:?} {word:?}");
            assert_eq!(
                judge(first, known, word, Doubt::Force),
                forcing,
                "{first:?} {known:?} {word:?} forced"
            );
        }
    }
}
