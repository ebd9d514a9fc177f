//! Every cell of the operator's tables.

use super::*;
use crate::id::{ConversationId, LeaseToken, MessageId};
use crate::outbox::{AbortedBy, DeadReason};

const TRIED: Option<Timestamp> = Some(Timestamp::from_micros(1));

fn receipt() -> BrokerReceipt {
    BrokerReceipt {
        broker_message_id: MessageId::from_bytes([1; 16]),
        conversation: ConversationId::from_bytes([2; 16]),
        history_id: 3,
        accepted_at: Timestamp::from_micros(4),
    }
}

fn dead(outcome: Outcome) -> OutboxState {
    OutboxState::Dead { reason: DeadReason::Rejected, outcome, last_error: None }
}

fn words() -> [Word; 6] {
    [
        Word::Silence,
        Word::Told(StatusAnswer::Accepted(receipt())),
        Word::Told(StatusAnswer::AcceptedOtherFingerprint),
        Word::Told(StatusAnswer::Retired),
        Word::Told(StatusAnswer::Absent),
        Word::Told(StatusAnswer::Unknown),
    ]
}

#[test]
fn a_row_on_the_wire_accepted_or_retired_is_nobodys_to_touch() {
    let successor = Some(RowId::from_bytes([5; 16]));
    let aborted =
        |successor| OutboxState::Aborted { by: AbortedBy::Operator, outcome: Outcome::Unknown, successor };
    for (state, expected) in [
        (OutboxState::Inflight { lease: LeaseToken::from_bytes([9; 16]) }, Untouchable::Inflight),
        (OutboxState::Done { receipt: receipt() }, Untouchable::Accepted(receipt())),
        (aborted(successor), Untouchable::Aborted { successor }),
        (aborted(None), Untouchable::Aborted { successor: None }),
    ] {
        for first in [None, TRIED] {
            assert_eq!(known(&state), Err(expected));
            assert_eq!(asking(&state, first), Err(expected));
            assert_eq!(abort(&state, first), Err(expected));
            for word in words() {
                for doubt in [Doubt::Refuse, Doubt::Force] {
                    assert_eq!(requeue(&state, first, word, doubt), Err(expected), "{state:?} {word:?}");
                }
            }
        }
    }
}

#[test]
fn the_broker_is_asked_about_every_row_that_may_have_left_and_is_not_known_to_be_retired() {
    let needed = Asking::Needed { first_attempt_at: Timestamp::from_micros(1) };
    for (state, tried) in [
        (OutboxState::Pending, needed),
        (dead(Outcome::Unknown), needed),
        (dead(Outcome::Accepted), needed),
        (dead(Outcome::NotSent), Asking::NotNeeded),
        (dead(Outcome::NotAccepted), Asking::NotNeeded),
    ] {
        assert_eq!(asking(&state, None), Ok(Asking::NotNeeded), "{state:?}");
        assert_eq!(asking(&state, TRIED), Ok(tried), "{state:?}");
    }
}

#[test]
fn a_row_that_need_not_be_asked_about_is_replaced_whatever_anybody_says() {
    for (state, first, outcome) in [
        (OutboxState::Pending, None, Outcome::NotSent),
        (dead(Outcome::NotSent), None, Outcome::NotSent),
        (dead(Outcome::NotSent), TRIED, Outcome::NotSent),
        (dead(Outcome::NotAccepted), TRIED, Outcome::NotAccepted),
    ] {
        for word in words() {
            for doubt in [Doubt::Refuse, Doubt::Force] {
                let expected = Requeue::Replace { outcome, finality: Finality::Settled };
                assert_eq!(requeue(&state, first, word, doubt), Ok(expected), "{state:?} {word:?} {doubt:?}");
            }
        }
    }
}

#[test]
fn a_row_that_may_have_been_accepted_is_replaced_only_on_the_brokers_word_or_by_force() {
    let replace = |outcome, finality| Requeue::Replace { outcome, finality };
    let fenced = replace(Outcome::NotAccepted, Finality::Settled);
    let accepted = Requeue::AlreadyAccepted(receipt());
    let unreachable = Requeue::NeedsForce(Uncertainty::Unreachable);
    let forgotten = Requeue::NeedsForce(Uncertainty::WindowPassed);
    let expected = [
        (unreachable, replace(Outcome::Unknown, Finality::Open)),
        (accepted, accepted),
        (fenced, fenced),
        (fenced, fenced),
        (fenced, fenced),
        (forgotten, replace(Outcome::Unknown, Finality::Settled)),
    ];
    for state in [OutboxState::Pending, dead(Outcome::Unknown)] {
        for (word, (refusing, forcing)) in words().into_iter().zip(expected) {
            assert_eq!(requeue(&state, TRIED, word, Doubt::Refuse), Ok(refusing), "{state:?} {word:?}");
            assert_eq!(requeue(&state, TRIED, word, Doubt::Force), Ok(forcing), "{state:?} {word:?} forced");
        }
    }
}

#[test]
fn an_abort_claims_no_more_than_is_known() {
    assert_eq!(abort(&OutboxState::Pending, None), Ok(Outcome::NotSent));
    assert_eq!(abort(&OutboxState::Pending, TRIED), Ok(Outcome::Unknown));
    for outcome in Outcome::ALL {
        assert_eq!(abort(&dead(*outcome), TRIED), Ok(*outcome), "what a dead row knows stays");
    }
}

#[test]
fn a_successor_waits_while_the_row_it_replaces_may_turn_out_accepted() {
    for outcome in Outcome::ALL {
        assert_eq!(waits_for(*outcome, Finality::Open), *outcome == Outcome::Unknown, "{outcome}");
        assert!(!waits_for(*outcome, Finality::Settled), "{outcome}");
    }
}

#[test]
fn only_the_same_words_that_never_left_are_retired_with_a_late_acceptance() {
    for status in Status::ALL {
        let waiting = *status == Status::Pending;
        assert_eq!(retires_successor(*status, None, true), waiting, "{status}");
        for (first, same_words) in [(None, false), (TRIED, true), (TRIED, false)] {
            assert!(!retires_successor(*status, first, same_words), "{status} {first:?} {same_words}");
        }
    }
}
