//! A lane: one sender's messages to one destination, and what its last answers mean for the next try.
//!
//! - Only a refusal makes a lane wait; it alone waits.
//! - The hour an unknown destination is tried runs from the first such answer; any other answer ends it,
//!   silence does not.
//! - A row of the table means that the last answer was a refusal: the next frame holds the head only.

use std::time::Duration;

use model::outbox::{Answer, Move};
use model::{Class, MemberId, Timestamp, backoff, limits};
use rusqlite::{Connection, OptionalExtension, Row, named_params};

use crate::column::{Sql, get};
use crate::sql;

/// A sender and a destination as asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneKey {
    /// Who sends.
    pub sender: MemberId,
    /// Where to, as asked; `@me` as the sender's own name.
    pub lane: String,
}

/// A refused lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) next_attempt_at: Timestamp,
    pub(super) gone_since: Option<Timestamp>,
}

/// A lane while answers for its rows are heard.
pub(super) struct Hearing {
    now: Timestamp,
    broker_now: Timestamp,
    random: u64,
    stopped_until: Option<Timestamp>,
    gone_since: Option<Timestamp>,
    heard: bool,
}

/// What the answers leave behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// No answer concerned it.
    AsItWas,
    /// Its next frame may be full.
    Free,
    /// It waits, or goes on with its head only.
    Waiting(Wait),
}

impl Hearing {
    pub(super) fn of(wait: Option<Wait>, now: Timestamp, broker_now: Timestamp, random: u64) -> Hearing {
        let gone_since = wait.and_then(|wait| wait.gone_since);
        Hearing { now, broker_now, random, stopped_until: None, gone_since, heard: false }
    }

    /// Time since the first unknown-destination answer, when `answer` is another one.
    pub(super) fn gone_for(&self, answer: &Answer) -> Option<Duration> {
        let since = self.gone_since.unwrap_or(self.broker_now);
        is_gone(answer).then(|| self.broker_now.since(since))
    }

    /// Takes in what `answer` did to a row with so many `attempts`.
    pub(super) fn hear(&mut self, answer: &Answer, did: &Move, attempts: u32, retry_after: Option<Duration>) {
        match did {
            Move::Nothing | Move::Release => return,
            Move::Done(_) | Move::LateAck(_) | Move::Bury(..) => {}
            Move::Retry => {
                let wait = backoff::delay(attempts, self.random)
                    .max(retry_after.unwrap_or_default().min(limits::RETRY_AFTER_MAX));
                // The first row that stops the lane sets the pace; those behind it were not the reason.
                self.stopped_until.get_or_insert(self.now + wait);
            }
        }
        self.heard = true;
        self.gone_since = match answer {
            Answer::Refused(_) if is_gone(answer) => self.gone_since.or(Some(self.broker_now)),
            Answer::Refused(_) | Answer::Accepted(_) => None,
            Answer::NotTried | Answer::Lost => self.gone_since,
        };
    }

    pub(super) fn left(&self) -> Left {
        match (self.heard, self.stopped_until, self.gone_since) {
            (false, _, _) => Left::AsItWas,
            (true, None, None) => Left::Free,
            (true, until, gone_since) => {
                Left::Waiting(Wait { next_attempt_at: until.unwrap_or(self.now), gone_since })
            }
        }
    }
}

fn is_gone(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused(code) if code.class() == Class::Conditional)
}

pub(super) fn get_wait(conn: &Connection, lane: &LaneKey) -> rusqlite::Result<Option<Wait>> {
    let wait = |row: &Row<'_>| {
        Ok(Wait { next_attempt_at: get(row, "next_attempt_at")?, gone_since: get(row, "gone_since")? })
    };
    let mut statement = conn.prepare_cached(sql::LANE_GET)?;
    statement.query_row(named_params! {":sender": Sql(&lane.sender), ":lane": lane.lane}, wait).optional()
}

pub(super) fn leave(conn: &Connection, lane: &LaneKey, left: &Left) -> rusqlite::Result<()> {
    match left {
        Left::AsItWas => {}
        Left::Free => {
            conn.prepare_cached(sql::LANE_FREE)?
                .execute(named_params! {":sender": Sql(&lane.sender), ":lane": lane.lane})?;
        }
        Left::Waiting(wait) => {
            conn.prepare_cached(sql::LANE_PUT)?.execute(named_params! {
                ":sender": Sql(&lane.sender), ":lane": lane.lane,
                ":next_attempt_at": Sql(&wait.next_attempt_at), ":gone_since": Sql(&wait.gone_since),
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::outbox::{BrokerReceipt, DeadReason, Outcome};
    use model::{ConversationId, ErrorCode, MessageId};

    const GONE: Answer = Answer::Refused(ErrorCode::MemberNotFound);
    const BUSY: Answer = Answer::Refused(ErrorCode::RateLimited);
    const WRONG: Answer = Answer::Refused(ErrorCode::TooLarge);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn accepted() -> Answer {
        Answer::Accepted(BrokerReceipt {
            broker_message_id: MessageId::from_bytes([1; 16]),
            conversation: ConversationId::from_bytes([2; 16]),
            history_id: 3,
            accepted_at: at(4),
        })
    }

    fn done() -> Move {
        let Answer::Accepted(receipt) = accepted() else { unreachable!("built as accepted") };
        Move::Done(receipt)
    }

    /// At 1000 s here and 5000 s at the broker, in a lane whose destination is unknown since `gone`.
    fn left_by(gone: Option<i64>, heard: &[(Answer, Move)]) -> Left {
        let wait = gone.map(|gone| Wait { next_attempt_at: at(1), gone_since: Some(at(gone)) });
        let mut hearing = Hearing::of(wait, at(1000), at(5000), 0);
        for (answer, did) in heard {
            hearing.hear(answer, did, 1, Some(Duration::from_secs(2)));
        }
        hearing.left()
    }

    fn waits(next: i64, gone: Option<i64>) -> Left {
        Left::Waiting(Wait { next_attempt_at: at(next), gone_since: gone.map(at) })
    }

    #[test]
    fn each_answer_leaves_the_lane_free_waiting_or_as_it_was() {
        let bury = |reason| Move::Bury(reason, Outcome::Unknown);
        let gone = bury(DeadReason::DestinationGone);
        for (before, heard, expected) in [
            (None, vec![], Left::AsItWas),
            (Some(4000), vec![(accepted(), Move::Nothing)], Left::AsItWas),
            (Some(4000), vec![(Answer::NotTried, Move::Release)], Left::AsItWas),
            (None, vec![(accepted(), done())], Left::Free),
            (Some(4000), vec![(accepted(), done())], Left::Free),
            (Some(4000), vec![(WRONG, bury(DeadReason::TooLarge))], Left::Free),
            (None, vec![(BUSY, Move::Retry)], waits(1002, None)),
            (Some(4000), vec![(BUSY, Move::Retry)], waits(1002, None)),
            (None, vec![(GONE, Move::Retry)], waits(1002, Some(5000))),
            (Some(4000), vec![(GONE, Move::Retry)], waits(1002, Some(4000))),
            (Some(1000), vec![(GONE, gone)], waits(1000, Some(1000))),
            (Some(4000), vec![(Answer::Lost, Move::Retry)], waits(1002, Some(4000))),
            (None, vec![(accepted(), done()), (BUSY, Move::Retry)], waits(1002, None)),
            (None, vec![(BUSY, Move::Retry), (accepted(), done())], waits(1002, None)),
        ] {
            assert_eq!(left_by(before, &heard), expected, "{before:?} {heard:?}");
        }
    }

    #[test]
    fn the_hour_runs_from_the_first_unknown_destination_and_only_for_such_answers() {
        let fresh = Hearing::of(None, at(0), at(5000), 0);
        assert_eq!(fresh.gone_for(&GONE), Some(Duration::ZERO));
        let wait = Wait { next_attempt_at: at(0), gone_since: Some(at(1400)) };
        let hour = Hearing::of(Some(wait), at(0), at(5000), 0);
        assert_eq!(hour.gone_for(&GONE), Some(Duration::from_secs(3600)));
        for other in [BUSY, WRONG, accepted(), Answer::Lost, Answer::NotTried] {
            assert_eq!(hour.gone_for(&other), None, "{other:?}");
        }
    }

    #[test]
    fn a_retry_after_is_honoured_up_to_its_bound_and_never_shortens_the_wait() {
        for (retry_after, random, expected) in [
            (None, 400_000, Duration::from_millis(400)),
            (Some(Duration::from_millis(10)), 400_000, Duration::from_millis(400)),
            (Some(Duration::from_secs(7)), 400_000, Duration::from_secs(7)),
            (Some(Duration::from_secs(86_400)), 0, limits::RETRY_AFTER_MAX),
        ] {
            let mut hearing = Hearing::of(None, at(0), at(0), random);
            hearing.hear(&BUSY, &Move::Retry, 1, retry_after);
            let expected = Left::Waiting(Wait { next_attempt_at: at(0) + expected, gone_since: None });
            assert_eq!(hearing.left(), expected, "{retry_after:?}");
        }
    }

    #[test]
    fn the_first_row_that_stops_the_lane_sets_the_pace() {
        let mut hearing = Hearing::of(None, at(0), at(0), 900_000);
        hearing.hear(&Answer::Lost, &Move::Retry, 3, None);
        hearing.hear(&Answer::Lost, &Move::Retry, 1, None);
        let wait = Wait { next_attempt_at: at(0) + Duration::from_micros(900_000), gone_since: None };
        assert_eq!(hearing.left(), Left::Waiting(wait));
    }
}
