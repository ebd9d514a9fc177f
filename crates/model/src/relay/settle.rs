//! What an answer does to an envelope, and what the upstream's word on its key does.

use super::{Ending, Outcome, Status};

/// What came back for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 2xx.
    Committed,
    /// It clashes: the key carries another request, or the resource changed since.
    Conflict,
    /// The key is so old that the record of an earlier copy may be forgotten.
    KeyExpired,
    /// Another 4xx.
    Refused,
    /// The upstream asks for patience, or stumbled: 408, 425, 429, 5xx, a copy of it under way.
    Busy,
    /// 401 or 403: the relay's own credential is bad.
    Unauthorized,
    /// The connection was never made: no byte left.
    NotSent,
    /// It left, and nothing came back.
    Lost,
}

/// What to do with the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// It is done.
    Done,
    /// A person withdrew it before; that it was committed after all is recorded.
    LateAck,
    /// It goes back, with a delay, and its outcome is at least this.
    Again(Outcome),
    /// It goes back without having used up anything, and nothing is replayed until a person looked.
    Pause,
    /// It is known that it never left before, and it was refused for its age: it ends as expired, and was not committed.
    Expire,
    /// It is to end so; the upstream is asked about its key first.
    Ask(Ending),
    /// The answer is stale.
    Nothing,
}

/// The upstream's word on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fenced {
    /// It committed a request under it.
    Committed,
    /// It did not, and now never will.
    Retired,
    /// It committed another request under it, and this one was not and never will be.
    AnotherRequest,
    /// It cannot say: its memory does not reach back, or it has none.
    Unknown,
}

/// What `answer` does to an envelope of that `outcome` before the attempt. `holds_lease`: the answer is for the attempt that
/// is under way.
pub fn settle(status: Status, holds_lease: bool, outcome: Outcome, answer: Answer) -> Move {
    if answer == Answer::Committed {
        return match status {
            Status::Queued | Status::Inflight | Status::Expired | Status::Rejected | Status::Conflict => {
                Move::Done
            }
            Status::Cancelled | Status::Superseded => Move::LateAck,
            Status::Done => Move::Nothing,
        };
    }
    if status != Status::Inflight || !holds_lease {
        return Move::Nothing;
    }
    match answer {
        Answer::Committed => unreachable!("a commit was judged above"),
        Answer::Conflict => Move::Ask(Ending::Conflict),
        Answer::KeyExpired => match outcome {
            Outcome::NotSent => Move::Expire,
            Outcome::Unknown | Outcome::Committed | Outcome::NotCommitted => Move::Ask(Ending::Expired),
        },
        Answer::Refused => Move::Ask(Ending::Rejected),
        Answer::Busy | Answer::Lost => Move::Again(Outcome::Unknown),
        // An earlier attempt may have left all the same.
        Answer::NotSent => Move::Again(outcome),
        Answer::Unauthorized => Move::Pause,
    }
}

/// How an envelope that waits to end does end, now that its key was asked about.
pub fn conclude(ending: Ending, fenced: Fenced) -> (Status, Outcome) {
    match fenced {
        Fenced::Committed => (Status::Done, Outcome::Committed),
        Fenced::Retired => (ending.status(), Outcome::NotCommitted),
        Fenced::AnotherRequest => match ending {
            Ending::Conflict | Ending::Rejected | Ending::Expired => {
                (Status::Conflict, Outcome::NotCommitted)
            }
            Ending::Cancelled => (Status::Cancelled, Outcome::NotCommitted),
        },
        Fenced::Unknown => (ending.status(), Outcome::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_truth_from_any_state_without_a_lease() {
        for (status, expected) in [
            (Status::Queued, Move::Done),
            (Status::Inflight, Move::Done),
            (Status::Done, Move::Nothing),
            (Status::Conflict, Move::Done),
            (Status::Rejected, Move::Done),
            (Status::Expired, Move::Done),
            (Status::Cancelled, Move::LateAck),
            (Status::Superseded, Move::LateAck),
        ] {
            for lease in [true, false] {
                assert_eq!(
                    settle(status, lease, Outcome::Unknown, Answer::Committed),
                    expected,
                    "{status:?}"
                );
            }
        }
    }

    #[test]
    fn ce23_no_other_answer_counts_without_the_lease_or_outside_inflight() {
        use Answer::{Busy, Conflict, KeyExpired, Lost, NotSent, Refused, Unauthorized};
        for answer in [Conflict, KeyExpired, Refused, Busy, Unauthorized, NotSent, Lost] {
            assert_eq!(settle(Status::Inflight, false, Outcome::Unknown, answer), Move::Nothing);
            for status in Status::ALL.iter().filter(|status| **status != Status::Inflight) {
                assert_eq!(settle(*status, true, Outcome::Unknown, answer), Move::Nothing, "{status:?}");
            }
        }
    }

    #[test]
    fn every_answer_under_its_lease_has_its_move() {
        for (outcome, answer, expected) in [
            (Outcome::NotSent, Answer::Conflict, Move::Ask(Ending::Conflict)),
            (Outcome::Unknown, Answer::Refused, Move::Ask(Ending::Rejected)),
            (Outcome::NotSent, Answer::KeyExpired, Move::Expire),
            (Outcome::Unknown, Answer::KeyExpired, Move::Ask(Ending::Expired)),
            (Outcome::NotSent, Answer::Busy, Move::Again(Outcome::Unknown)),
            (Outcome::NotSent, Answer::Lost, Move::Again(Outcome::Unknown)),
            (Outcome::NotSent, Answer::NotSent, Move::Again(Outcome::NotSent)),
            (Outcome::Unknown, Answer::NotSent, Move::Again(Outcome::Unknown)),
            (Outcome::Unknown, Answer::Unauthorized, Move::Pause),
        ] {
            assert_eq!(settle(Status::Inflight, true, outcome, answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn ce19_an_envelope_ends_otherwise_than_done_only_when_its_key_is_retired_or_beyond_knowing() {
        for ending in Ending::ALL {
            assert_eq!(conclude(*ending, Fenced::Committed), (Status::Done, Outcome::Committed));
            assert_eq!(conclude(*ending, Fenced::Retired), (ending.status(), Outcome::NotCommitted));
            assert_eq!(conclude(*ending, Fenced::Unknown), (ending.status(), Outcome::Unknown));
        }
    }

    #[test]
    fn a_key_of_another_request_makes_a_conflict_of_everything_but_a_withdrawn_write() {
        for (ending, status) in [
            (Ending::Conflict, Status::Conflict),
            (Ending::Rejected, Status::Conflict),
            (Ending::Expired, Status::Conflict),
            (Ending::Cancelled, Status::Cancelled),
        ] {
            assert_eq!(conclude(ending, Fenced::AnotherRequest), (status, Outcome::NotCommitted));
        }
    }
}
