//! What answers do to rows and lanes.

use std::time::Duration;

use mailbox::{LaneFrame, LaneKey, Leased, RowAnswer};
use model::outbox::{Answer, DeadReason, Move, OutboxState, Outcome, Patience, Status, settle};
use model::{ErrorCode, limits};

use crate::accept::one_row_in_each_state;
use crate::desk::{ANN, Desk, HOUR, fingerprint, ids, refused};

#[tokio::test]
async fn an_accepted_frame_is_done_with_its_receipt() {
    let mut desk = Desk::open();
    desk.send(ANN, "1", "@x").await;
    desk.send(ANN, "2", "@x").await;
    let frame = desk.frame().await;
    let settled = desk.deliver(&frame).await;
    assert_eq!(settled.done, [frame.rows[0].row, frame.rows[1].row]);
    assert_eq!((settled.retried, settled.buried, settled.next_attempt_at), (vec![], vec![], None));
    desk.crash();
    for row in &frame.rows {
        let stored = desk.row(ANN, row.client_message_id.as_str()).await;
        assert_eq!(stored.state, OutboxState::Done { receipt: desk.receipt(row.seq) });
    }
    assert_eq!(desk.claim().await.frames, []);
}

#[tokio::test]
async fn a_permanent_refusal_buries_its_row_and_the_lane_goes_on() {
    let desk = Desk::open();
    for id in ["1", "2", "3"] {
        desk.send(ANN, id, "@x").await;
    }
    let frame = desk.frame().await;
    let answers = [desk.accepted(1), refused(ErrorCode::MentionUnknown), desk.accepted(3)];
    let settled = desk.settle(&frame, &answers).await;
    assert_eq!(
        (settled.done.len(), settled.buried, settled.next_attempt_at),
        (2, vec![frame.rows[1].row], None)
    );
    let last_error = Some("mention_unknown".to_owned());
    let dead = OutboxState::Dead { reason: DeadReason::Rejected, outcome: Outcome::Unknown, last_error };
    assert_eq!(desk.row(ANN, "2").await.state, dead);
    desk.send(ANN, "4", "@x").await;
    assert_eq!(ids(&desk.frame().await), ["4"]);
}

#[tokio::test]
async fn a_transient_refusal_stops_the_lane_and_keeps_the_order_behind_it() {
    let mut desk = Desk::open();
    for id in ["1", "2", "3"] {
        desk.send(ANN, id, "@x").await;
    }
    let frame = desk.frame().await;
    let settled =
        desk.settle(&frame, &[desk.accepted(1), refused(ErrorCode::Unavailable), Answer::NotTried]).await;
    assert_eq!((settled.done.len(), settled.retried.len()), (1, 1));
    assert!(settled.next_attempt_at.is_some_and(|at| at > desk.now));
    let attempts: Vec<u32> =
        [desk.row(ANN, "2").await, desk.row(ANN, "3").await].map(|row| row.attempts).into();
    assert_eq!(attempts, [1, 0], "a row that was not tried costs no attempt");
    desk.advance(Duration::from_secs(1));
    let head = desk.frame().await;
    assert_eq!(ids(&head), ["2"]);
    desk.deliver(&head).await;
    assert_eq!(ids(&desk.frame().await), ["3"]);
}

#[tokio::test]
async fn a_retry_after_is_kept_by_the_lane() {
    let desk = Desk::open();
    desk.send(ANN, "1", "@x").await;
    let frame = desk.frame().await;
    let answer = RowAnswer {
        seq: 1,
        fingerprint: frame.rows[0].fingerprint,
        answer: refused(ErrorCode::RateLimited),
        error_text: Some("429 rate_limited: slow down".into()),
        retry_after: Some(Duration::from_secs(17)),
    };
    let settled = desk.settle_rows(&frame, vec![answer]).await;
    assert_eq!(settled.next_attempt_at, Some(desk.now + Duration::from_secs(17)));
    let row = desk.row(ANN, "1").await;
    assert_eq!(row.next_attempt_at, settled.next_attempt_at);
    assert_eq!(row.last_error.as_deref(), Some("429 rate_limited: slow down"));
}

#[tokio::test]
async fn a_frame_that_was_lost_goes_back_whole_and_rows_without_an_answer_with_it() {
    let mut desk = Desk::open();
    for id in ["1", "2", "3"] {
        desk.send(ANN, id, "@x").await;
    }
    let frame = desk.frame().await;
    let settled = desk.settle(&frame, &[desk.accepted(1)]).await;
    assert_eq!((settled.done.len(), settled.retried.len()), (1, 2), "silence is a lost answer");
    let row = desk.row(ANN, "2").await;
    assert_eq!((row.state, row.last_error.as_deref()), (OutboxState::Pending, Some("no answer came")));
    desk.advance(Duration::from_secs(1));
    assert_eq!(ids(&desk.frame().await), ["2"]);
}

#[tokio::test]
async fn an_unknown_destination_is_tried_for_an_hour_then_every_row_is_buried_at_once() {
    let mut desk = Desk::open();
    for id in ["1", "2", "3"] {
        desk.send(ANN, id, "@nobody").await;
    }
    let gone = [refused(ErrorCode::MemberNotFound), Answer::NotTried, Answer::NotTried];
    let frame = desk.frame().await;
    assert_eq!(desk.settle(&frame, &gone).await.retried.len(), 1);
    desk.advance(HOUR - Duration::from_secs(1));
    // Silence is no answer: it neither ends the hour nor restarts it.
    let frame = desk.frame().await;
    desk.settle(&frame, &[Answer::Lost]).await;
    desk.advance(Duration::from_secs(1));
    for id in ["1", "2", "3"] {
        let frame = desk.frame().await;
        assert_eq!(ids(&frame), [id], "one by one");
        assert_eq!(desk.settle(&frame, &gone).await.buried.len(), 1);
    }
    let OutboxState::Dead { reason, outcome, .. } = desk.row(ANN, "3").await.state else { panic!("buried") };
    assert_eq!((reason, outcome), (DeadReason::DestinationGone, Outcome::Unknown));
    // The destination appears: the next answer frees the lane, and the hour would start anew.
    desk.send(ANN, "4", "@nobody").await;
    desk.send(ANN, "5", "@nobody").await;
    let frame = desk.frame().await;
    desk.deliver(&frame).await;
    let frame = desk.frame().await;
    assert_eq!(desk.settle(&frame, &gone).await.retried.len(), 1);
}

#[tokio::test]
async fn a_server_fault_that_stays_for_a_day_and_fifty_tries_buries_its_row() {
    let mut desk = Desk::open();
    desk.send(ANN, "1", "@x").await;
    for attempt in 1..=limits::POISON_ATTEMPTS_MIN {
        let frame = desk.frame().await;
        assert_eq!(frame.rows[0].attempts, attempt);
        let settled = desk.settle(&frame, &[refused(ErrorCode::Internal)]).await;
        assert_eq!(settled.buried.len(), usize::from(attempt == limits::POISON_ATTEMPTS_MIN), "{attempt}");
        desk.advance(HOUR / 2);
    }
    let OutboxState::Dead { reason, .. } = desk.row(ANN, "1").await.state else { panic!("buried") };
    assert_eq!(reason, DeadReason::Poison);
}

/// A frame that claims to hold the row named `id`.
async fn frame_of(desk: &Desk, id: &str, lease: model::LeaseToken) -> LaneFrame {
    let row = desk.row(ANN, id).await;
    let lane = LaneKey { sender: ANN, lane: row.lane.clone() };
    let leased = Leased {
        seq: row.seq,
        row: row.row,
        client_message_id: row.client_message_id,
        fingerprint: row.fingerprint,
        payload: Vec::new(),
        first_attempt_at: desk.broker_now,
        send_deadline: desk.broker_now,
        deliver_by: None,
        attempts: row.attempts,
    };
    LaneFrame { lane, lease, rows: vec![leased] }
}

fn status_after(before: Status, did: &Move) -> Status {
    match did {
        Move::Done(_) => Status::Done,
        Move::LateAck(_) => Status::Aborted,
        Move::Bury(..) => Status::Dead,
        Move::Retry | Move::Release => Status::Pending,
        Move::Nothing => before,
    }
}

#[tokio::test]
async fn every_state_meets_every_answer_as_the_rule_says() {
    let answers = [
        desk_answer(),
        refused(ErrorCode::TooLarge),
        refused(ErrorCode::IdRetired),
        refused(ErrorCode::RateLimited),
        refused(ErrorCode::MemberNotFound),
        Answer::NotTried,
        Answer::Lost,
    ];
    for answer in answers {
        for status in Status::ALL {
            for holds_lease in [true, false] {
                let desk = Desk::open();
                one_row_in_each_state(&desk).await;
                let before = desk.row(ANN, status.word()).await;
                let held = match before.state {
                    OutboxState::Inflight { lease } if holds_lease => lease,
                    _ => desk.lease(),
                };
                let holds_lease = matches!(before.state, OutboxState::Inflight { lease } if lease == held);
                let frame = frame_of(&desk, status.word(), held).await;
                desk.settle(&frame, &[answer]).await;
                let patience =
                    Patience { attempts: 1, tried_for: Duration::ZERO, gone_for: Some(Duration::ZERO) };
                let did = settle(*status, holds_lease, answer, patience);
                let after = desk.row(ANN, status.word()).await;
                let case = format!("{status}, lease {holds_lease}, {answer:?}");
                assert_eq!(after.state.status(), status_after(*status, &did), "{case}");
                match did {
                    Move::Nothing => assert_eq!(after, before, "{case}"),
                    Move::Release => assert_eq!(after.attempts + 1, before.attempts, "{case}"),
                    Move::LateAck(_) => assert_eq!(after.late_ack_at, Some(desk.now), "{case}"),
                    Move::Done(receipt) => assert_eq!(after.state, OutboxState::Done { receipt }, "{case}"),
                    Move::Bury(reason, outcome) => {
                        let OutboxState::Dead { reason: r, outcome: o, .. } = after.state else {
                            panic!("{case}")
                        };
                        assert_eq!((r, o), (reason, outcome), "{case}");
                    }
                    Move::Retry => assert_eq!(after.attempts, before.attempts, "{case}"),
                }
            }
        }
    }
}

fn desk_answer() -> Answer {
    Desk::open().accepted(99)
}

#[tokio::test]
async fn an_acceptance_for_other_words_under_the_same_row_is_not_believed() {
    let desk = Desk::open();
    desk.send(ANN, "1", "@x").await;
    let mut frame = desk.frame().await;
    frame.rows[0].fingerprint = fingerprint("@x", "something else");
    let settled = desk.deliver(&frame).await;
    assert_eq!(settled.done, []);
    assert_eq!(desk.status(ANN, "1").await, Status::Pending, "the row got no answer of its own");
}

#[tokio::test]
async fn a_late_acceptance_of_a_dead_row_is_noted_with_its_time() {
    let mut desk = Desk::open();
    desk.send(ANN, "1", "@x").await;
    let frame = desk.frame().await;
    desk.settle(&frame, &[refused(ErrorCode::TooLarge)]).await;
    assert_eq!(desk.status(ANN, "1").await, Status::Dead);
    desk.advance(HOUR);
    desk.deliver(&frame).await;
    let row = desk.row(ANN, "1").await;
    assert_eq!(row.state, OutboxState::Done { receipt: desk.receipt(1) });
    assert_eq!(row.late_ack_at, Some(desk.now));
}

#[tokio::test]
async fn a_refusal_under_an_old_lease_touches_neither_row_nor_lane() {
    let mut desk = Desk::open();
    desk.send(ANN, "1", "@x").await;
    let old = desk.frame().await;
    desk.crash();
    desk.mailbox.recover().await.unwrap();
    let new = desk.frame().await;
    let settled = desk.settle(&old, &[refused(ErrorCode::TooLarge)]).await;
    assert_eq!((settled.buried.len(), settled.retried.len(), settled.next_attempt_at), (0, 0, None));
    assert_eq!(desk.row(ANN, "1").await.state, OutboxState::Inflight { lease: new.lease });
    assert_eq!(desk.deliver(&new).await.done.len(), 1);
}

#[tokio::test]
async fn a_long_refusal_is_cut_between_characters() {
    let desk = Desk::open();
    desk.send(ANN, "1", "@x").await;
    let frame = desk.frame().await;
    let answer = RowAnswer {
        seq: 1,
        fingerprint: frame.rows[0].fingerprint,
        answer: refused(ErrorCode::TooLarge),
        error_text: Some("ä".repeat(limits::LAST_ERROR_BYTES_MAX)),
        retry_after: None,
    };
    desk.settle_rows(&frame, vec![answer]).await;
    let text = desk.row(ANN, "1").await.last_error.unwrap();
    assert_eq!(text.len(), limits::LAST_ERROR_BYTES_MAX);
    assert!(text.chars().all(|c| c == 'ä'));
}
