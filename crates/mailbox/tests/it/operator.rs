//! A person retires rows and gives them successors.

use std::time::Duration;

use mailbox::{Asking, Doubt, Held, OperatorError, Requeue, Requeued, RowStatus, Word};
use model::admission::StatusAnswer;
use model::outbox::{AbortedBy, OutboxState, Outcome, Status, Verdict};
use model::{ErrorCode, limits};

use crate::accept::one_row_in_each_state;
use crate::desk::{ANN, Desk, client_id, fingerprint, ids, refused};

async fn hold(desk: &Desk, id: &str) -> Held {
    desk.mailbox.hold(desk.row(ANN, id).await.row, desk.now).await.unwrap()
}

/// The held row's words under a new id.
fn again(desk: &Desk, held: &Held, id: &str, word: Word) -> Requeue {
    Requeue {
        row: held.row.row,
        lease: held.lease,
        word,
        doubt: Doubt::Refuse,
        successor: desk.row_id(),
        client_message_id: client_id(id),
        fingerprint: held.row.fingerprint,
        payload: held.payload.clone(),
        deliver_by: held.row.deliver_by,
        now: desk.now,
    }
}

/// Ann's row `a` in lane `@x` was tried once and is pending again, with row `b` behind it.
async fn tried() -> Desk {
    let desk = Desk::open();
    desk.send(ANN, "a", "@x").await;
    let frame = desk.frame().await;
    desk.settle(&frame, &[refused(ErrorCode::Internal)]).await;
    desk.send(ANN, "b", "@x").await;
    desk
}

#[tokio::test]
async fn a_row_that_never_left_is_replaced_without_asking_in_one_step() {
    let mut desk = Desk::open();
    desk.send(ANN, "a", "@x").await;
    let held = hold(&desk, "a").await;
    assert_eq!((held.asking, held.payload.as_slice()), (Asking::NotNeeded, &b"a"[..]));
    let requeue = again(&desk, &held, "a2", Word::Silence);
    let requeued = desk.mailbox.requeue(requeue.clone()).await.unwrap();
    assert_eq!(requeued, Requeued::Replaced { outcome: Outcome::NotSent });
    desk.crash();
    let (old, new) = (desk.row(ANN, "a").await, desk.row(ANN, "a2").await);
    let by = AbortedBy::Operator;
    let successor = Some(requeue.successor);
    assert_eq!(old.state, OutboxState::Aborted { by, outcome: Outcome::NotSent, successor });
    assert_eq!((new.row, &new.to_asked, &new.lane), (requeue.successor, &old.to_asked, &old.lane));
    assert_eq!(ids(&desk.frame().await), ["a2"]);
    let reused = desk.mailbox.accept(desk.draft(ANN, "a", "@x", "a")).await.unwrap();
    assert!(matches!(reused.verdict, Verdict::Conflict(_)), "the old id is never free again");
}

#[tokio::test]
async fn a_chain_of_requeues_is_told_from_any_of_its_rows() {
    let desk = Desk::open();
    desk.send(ANN, "a", "@x").await;
    for (old, new) in [("a", "b"), ("b", "c")] {
        let held = hold(&desk, old).await;
        desk.mailbox.requeue(again(&desk, &held, new, Word::Silence)).await.unwrap();
    }
    for id in ["a", "b", "c"] {
        let chain = desk.mailbox.outbox_chain(desk.row(ANN, id).await.row).await.unwrap();
        let told: Vec<_> = chain.iter().map(|row| row.client_message_id.as_str()).collect();
        assert_eq!(told, ["a", "b", "c"], "asked from {id}");
    }
    assert_eq!(desk.mailbox.outbox_chain(desk.row_id()).await.unwrap(), []);
}

#[tokio::test]
async fn a_tried_row_is_replaced_only_on_the_brokers_word_or_by_force() {
    for (word, doubt, expected) in [
        (Word::Silence, Doubt::Refuse, Requeued::Doubtful),
        (Word::Told(StatusAnswer::Unknown), Doubt::Refuse, Requeued::Doubtful),
        (Word::Silence, Doubt::Force, Requeued::Replaced { outcome: Outcome::Unknown }),
        (Word::Told(StatusAnswer::Unknown), Doubt::Force, Requeued::Replaced { outcome: Outcome::Unknown }),
        (
            Word::Told(StatusAnswer::Absent),
            Doubt::Refuse,
            Requeued::Replaced { outcome: Outcome::NotAccepted },
        ),
    ] {
        let desk = tried().await;
        let held = hold(&desk, "a").await;
        let first_attempt_at = desk.broker_now;
        assert_eq!(held.asking, Asking::Needed { first_attempt_at });
        let requeue = Requeue { doubt, ..again(&desk, &held, "a2", word) };
        assert_eq!(desk.mailbox.requeue(requeue).await.unwrap(), expected, "{word:?} {doubt:?}");
        let status = if expected == Requeued::Doubtful { Status::Pending } else { Status::Aborted };
        let row = desk.row(ANN, "a").await;
        assert_eq!((row.state.status(), row.held_until), (status, None), "{word:?} {doubt:?}");
    }
}

#[tokio::test]
async fn a_row_the_broker_has_is_marked_done_and_gets_no_successor() {
    let desk = tried().await;
    let held = hold(&desk, "a").await;
    let receipt = desk.receipt(1);
    let word = Word::Told(StatusAnswer::Accepted(receipt));
    let requeued = desk.mailbox.requeue(again(&desk, &held, "a2", word)).await.unwrap();
    assert_eq!(requeued, Requeued::AlreadyAccepted(receipt));
    assert_eq!(desk.row(ANN, "a").await.state, OutboxState::Done { receipt });
    assert_eq!(desk.mailbox.outbox_counts().await.unwrap().pending, 1, "only the row behind it is left");
}

#[tokio::test]
async fn a_held_row_stops_its_lane_and_nobody_elses_until_the_hold_ends() {
    let mut desk = tried().await;
    desk.send(ANN, "other", "@y").await;
    desk.advance(Duration::from_secs(1));
    let held = hold(&desk, "a").await;
    let claimed = desk.claim().await;
    assert_eq!(claimed.frames.iter().map(ids).collect::<Vec<_>>(), [["other"]], "b must not overtake a");
    assert_eq!(claimed.next_due, Some(desk.now + limits::OPERATOR_HOLD_MAX));
    let second = desk.mailbox.hold(held.row.row, desk.now).await;
    assert!(matches!(second, Err(OperatorError::HeldElsewhere { row, .. }) if row == held.row.row));
    desk.mailbox.release(held.row.row, held.lease).await.unwrap();
    assert_eq!(ids(&desk.frame().await), ["a"]);
}

#[tokio::test]
async fn a_hold_whose_holder_died_ends_by_itself_and_a_restart_ends_it_too() {
    let mut desk = tried().await;
    desk.advance(Duration::from_secs(1));
    let lost = hold(&desk, "a").await;
    desk.advance(limits::OPERATOR_HOLD_MAX);
    let taken = hold(&desk, "a").await;
    let late = desk.mailbox.requeue(again(&desk, &lost, "a2", Word::Told(StatusAnswer::Absent))).await;
    assert!(matches!(late, Err(OperatorError::HeldElsewhere { .. })), "an old hold replaces nothing");
    desk.crash();
    desk.mailbox.recover().await.unwrap();
    assert_eq!(ids(&desk.frame().await), ["a"]);
    assert!(taken.row.held_until <= Some(desk.now));
}

#[tokio::test]
async fn the_successors_id_must_be_new() {
    let desk = tried().await;
    let held = hold(&desk, "a").await;
    let word = Word::Told(StatusAnswer::Absent);
    let holder = desk.row(ANN, "b").await.row;
    let taken = desk.mailbox.requeue(again(&desk, &held, "b", word)).await.unwrap();
    assert!(matches!(&taken, Requeued::IdTaken { holder: row, .. } if *row == holder), "{taken:?}");
    let row = desk.row(ANN, "a").await;
    assert_eq!(
        (row.state, row.held_until),
        (OutboxState::Pending, None),
        "nothing changed and the hold is over"
    );
}

#[tokio::test]
async fn rows_on_the_wire_accepted_or_retired_are_nobodys_to_touch() {
    let desk = Desk::open();
    one_row_in_each_state(&desk).await;
    for status in [Status::Inflight, Status::Done, Status::Aborted] {
        let row = desk.row(ANN, status.word()).await.row;
        let held = desk.mailbox.hold(row, desk.now).await.unwrap_err();
        let aborted = desk.mailbox.abort(row, AbortedBy::Operator, desk.now).await.unwrap_err();
        for refused in [held, aborted] {
            match (status, refused) {
                (Status::Inflight, OperatorError::Inflight { row: id, .. }) => assert_eq!(id, row),
                (Status::Done, OperatorError::Done { row: id, .. }) => assert_eq!(id, row),
                (Status::Aborted, OperatorError::Aborted { row: id, successor: None, .. }) => {
                    assert_eq!(id, row)
                }
                (status, refused) => panic!("{status}: {refused}"),
            }
        }
    }
    let nobody = desk.row_id();
    assert!(
        matches!(desk.mailbox.hold(nobody, desk.now).await, Err(OperatorError::NotFound(id)) if id == nobody)
    );
}

#[tokio::test]
async fn an_abort_is_recorded_at_once_and_keeps_what_is_known() {
    let desk = tried().await;
    let abort = |id: &'static str| async {
        let row = desk.row(ANN, id).await.row;
        desk.mailbox.abort(row, AbortedBy::Operator, desk.now).await.unwrap()
    };
    assert_eq!(abort("b").await, Outcome::NotSent, "it never left");
    assert_eq!(abort("a").await, Outcome::Unknown, "a copy may have been accepted");
    desk.send(ANN, "retired", "@z").await;
    let frame = desk.frame().await;
    desk.settle(&frame, &[refused(ErrorCode::IdRetired)]).await;
    let row = desk.row(ANN, "retired").await;
    let word = RowStatus { seq: row.seq, fingerprint: row.fingerprint, answer: StatusAnswer::Retired };
    desk.mailbox.learn(vec![word], desk.now).await.unwrap();
    assert_eq!(abort("retired").await, Outcome::NotAccepted);
    assert_eq!(desk.claim().await.frames, []);
}

/// Row `a`, tried, is replaced by force while the broker is away; `text` are the successor's words.
async fn forced(text: &str) -> Desk {
    let mut desk = tried().await;
    desk.mailbox.abort(desk.row(ANN, "b").await.row, AbortedBy::Operator, desk.now).await.unwrap();
    let held = hold(&desk, "a").await;
    let fingerprint = fingerprint("@x", text);
    let forced = Requeue { doubt: Doubt::Force, fingerprint, ..again(&desk, &held, "a2", Word::Silence) };
    desk.mailbox.requeue(forced).await.unwrap();
    desk.advance(Duration::from_secs(60));
    desk
}

async fn told(desk: &Desk, answer: StatusAnswer) {
    let row = desk.row(ANN, "a").await;
    let word = RowStatus { seq: row.seq, fingerprint: row.fingerprint, answer };
    desk.mailbox.learn(vec![word], desk.now).await.unwrap();
}

#[tokio::test]
async fn a_forced_successor_waits_until_the_broker_was_asked_about_the_first_id() {
    let desk = forced("a").await;
    assert_eq!(desk.claim().await.frames, []);
    told(&desk, StatusAnswer::Absent).await;
    assert_eq!(ids(&desk.frame().await), ["a2"]);
    let desk = forced("a").await;
    told(&desk, StatusAnswer::Unknown).await;
    assert_eq!(ids(&desk.frame().await), ["a2"], "when nobody will ever know, the operator's word stands");
}

#[tokio::test]
async fn a_successor_with_the_same_words_is_retired_when_the_first_id_was_accepted() {
    let desk = forced("a").await;
    told(&desk, StatusAnswer::Accepted(desk.receipt(1))).await;
    let by = AbortedBy::Policy;
    let successor = desk.row(ANN, "a2").await;
    assert_eq!(successor.state, OutboxState::Aborted { by, outcome: Outcome::NotSent, successor: None });
    let patched = forced("other words").await;
    told(&patched, StatusAnswer::Accepted(patched.receipt(1))).await;
    assert_eq!(ids(&patched.frame().await), ["a2"], "other words were not accepted and still go");
}

#[tokio::test]
async fn a_successor_that_has_left_already_is_not_retired() {
    let desk = forced("a").await;
    told(&desk, StatusAnswer::Unknown).await;
    let frame = desk.frame().await;
    desk.settle(&frame, &[refused(ErrorCode::Internal)]).await;
    told(&desk, StatusAnswer::Accepted(desk.receipt(1))).await;
    assert_eq!(desk.status(ANN, "a2").await, Status::Pending, "a copy under the new id may be accepted too");
}

#[tokio::test]
async fn only_the_holder_gives_a_row_back() {
    let desk = tried().await;
    let held = hold(&desk, "a").await;
    desk.mailbox.release(held.row.row, desk.lease()).await.unwrap();
    assert!(desk.row(ANN, "a").await.held_until.is_some());
    desk.mailbox.release(held.row.row, held.lease).await.unwrap();
    assert_eq!(desk.row(ANN, "a").await.held_until, None);
}

#[tokio::test]
async fn an_aborted_row_keeps_the_moment_the_brokers_word_on_it_became_final() {
    let mut desk = Desk::open();
    desk.send(ANN, "a", "@x").await;
    let frame = desk.frame().await;
    desk.settle(&frame, &[refused(ErrorCode::TooLarge)]).await;
    told(&desk, StatusAnswer::Unknown).await;
    let settled_at = Some(desk.now);
    desk.advance(Duration::from_secs(1));
    desk.mailbox.abort(desk.row(ANN, "a").await.row, AbortedBy::Operator, desk.now).await.unwrap();
    assert_eq!(desk.row(ANN, "a").await.outcome_settled_at, settled_at);
    assert_eq!(desk.mailbox.unsettled(0, 10).await.unwrap(), [], "nobody asks again");
}
