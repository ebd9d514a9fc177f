//! What a person may do to an envelope.

use super::{Outcome, Status};

/// What `retry` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It waits already and is due now, under its own key.
    Now,
    /// It is on the wire.
    Wait,
    /// It never left, or its key is retired: a successor under a new key takes its place.
    Successor,
    /// Nobody knows whether it was committed: the upstream is asked first, and without its word only a person who
    /// accepts a possible double may go on.
    AskFirst,
    /// Nothing is left to do.
    Over,
}

/// What `cancel` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// It ends now.
    Now,
    /// It ends once the upstream said what became of its key.
    AskFirst,
    /// It is on the wire.
    Wait,
    /// It has ended already.
    Over,
}

/// What `retry` of an envelope does. `is_over_age`: the upstream's memory of its key may end.
pub fn retry(status: Status, outcome: Outcome, is_over_age: bool) -> Retry {
    match (status, outcome) {
        (Status::Inflight, _) => Retry::Wait,
        (Status::Queued, _) if !is_over_age => Retry::Now,
        (Status::Done | Status::Superseded, _) => Retry::Over,
        (
            Status::Queued | Status::Conflict | Status::Rejected | Status::Expired | Status::Cancelled,
            Outcome::NotSent | Outcome::NotCommitted,
        ) => Retry::Successor,
        (
            Status::Queued | Status::Conflict | Status::Rejected | Status::Expired | Status::Cancelled,
            Outcome::Unknown,
        ) => Retry::AskFirst,
        (
            Status::Queued | Status::Conflict | Status::Rejected | Status::Expired | Status::Cancelled,
            Outcome::Committed,
        ) => Retry::Over,
    }
}

/// What `cancel` of an envelope does.
pub fn cancel(status: Status, outcome: Outcome) -> Cancel {
    match (status, outcome) {
        (Status::Inflight, _) => Cancel::Wait,
        (Status::Queued, Outcome::NotSent) | (Status::Conflict | Status::Rejected | Status::Expired, _) => {
            Cancel::Now
        }
        (Status::Queued, Outcome::Unknown | Outcome::Committed | Outcome::NotCommitted) => Cancel::AskFirst,
        (Status::Done | Status::Cancelled | Status::Superseded, _) => Cancel::Over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ce21_only_what_surely_was_not_committed_gets_a_successor_without_asking() {
        for status in Status::ALL {
            for outcome in Outcome::ALL {
                for old in [true, false] {
                    let did = retry(*status, *outcome, old);
                    let sure = matches!(outcome, Outcome::NotSent | Outcome::NotCommitted);
                    assert!(did != Retry::Successor || sure, "{status:?} {outcome:?}");
                }
            }
        }
        assert_eq!(retry(Status::Expired, Outcome::Unknown, true), Retry::AskFirst);
        assert_eq!(retry(Status::Expired, Outcome::NotSent, true), Retry::Successor);
        assert_eq!(retry(Status::Conflict, Outcome::NotCommitted, false), Retry::Successor);
        assert_eq!(retry(Status::Queued, Outcome::Unknown, false), Retry::Now, "under the same key");
        assert_eq!(retry(Status::Queued, Outcome::Unknown, true), Retry::AskFirst);
        assert_eq!(retry(Status::Inflight, Outcome::Unknown, false), Retry::Wait);
        assert_eq!(retry(Status::Done, Outcome::Committed, false), Retry::Over);
    }

    #[test]
    fn ce20_a_cancelled_envelope_that_may_have_left_is_asked_about_first() {
        for (status, outcome, expected) in [
            (Status::Queued, Outcome::NotSent, Cancel::Now),
            (Status::Queued, Outcome::Unknown, Cancel::AskFirst),
            (Status::Inflight, Outcome::Unknown, Cancel::Wait),
            (Status::Conflict, Outcome::NotCommitted, Cancel::Now),
            (Status::Rejected, Outcome::NotCommitted, Cancel::Now),
            (Status::Expired, Outcome::Unknown, Cancel::Now),
            (Status::Done, Outcome::Committed, Cancel::Over),
            (Status::Cancelled, Outcome::NotSent, Cancel::Over),
            (Status::Superseded, Outcome::NotCommitted, Cancel::Over),
        ] {
            assert_eq!(cancel(status, outcome), expected, "{status:?} {outcome:?}");
        }
    }
}
