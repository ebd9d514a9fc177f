//! What is learnt later: of rows that ended unknown, and of a broker that came back from a backup.

use mailbox::{NewRow, RowStatus, Witness};
use model::admission::StatusAnswer;
use model::outbox::{AbortedBy, Learnt, OutboxState, Outcome, Redrive, Status, learn, redrive};
use model::{ErrorCode, limits};

use crate::accept::one_row_in_each_state;
use crate::desk::{ANN, BOB, Desk, HOUR, MAX_AGE, client_id, ids, message, refused};

/// Ann's rows `dead` and `aborted` were both tried and nobody knows how far they came.
async fn two_unknown() -> Desk {
    let mut desk = Desk::open();
    for (id, answer) in [("dead", ErrorCode::TooLarge), ("aborted", ErrorCode::Internal)] {
        desk.send(ANN, id, &format!("@{id}")).await;
        let frame = desk.frame().await;
        desk.settle(&frame, &[refused(answer)]).await;
    }
    let outcome = desk.mailbox.abort(desk.row(ANN, "aborted").await.row, AbortedBy::Session, desk.now).await;
    assert_eq!(outcome.unwrap(), Outcome::Unknown);
    desk.crash();
    desk
}

async fn tell(desk: &Desk, id: &str, answer: StatusAnswer) -> mailbox::Learned {
    let row = desk.row(ANN, id).await;
    let word = RowStatus { seq: row.seq, fingerprint: row.fingerprint, answer };
    desk.mailbox.learn(vec![word], desk.now).await.unwrap()
}

#[tokio::test]
async fn rows_that_ended_unknown_are_asked_about_and_no_others() {
    let desk = two_unknown().await;
    desk.send(ANN, "never-tried", "@x").await;
    let unsettled = desk.mailbox.unsettled(0, 10).await.unwrap();
    let asked: Vec<_> = unsettled.iter().map(|row| row.client_message_id.as_str()).collect();
    assert_eq!(asked, ["dead", "aborted"]);
    assert_eq!((unsettled[0].sender, unsettled[0].first_attempt_at), (ANN, desk.broker_now));
    let behind = desk.mailbox.unsettled(unsettled[0].seq, 10).await.unwrap();
    assert_eq!(behind, unsettled[1..]);
}

#[tokio::test]
async fn every_state_learns_every_word_as_the_rule_says() {
    let desk = Desk::open();
    let words = [
        StatusAnswer::Accepted(desk.receipt(99)),
        StatusAnswer::AcceptedOtherFingerprint,
        StatusAnswer::Retired,
        StatusAnswer::Absent,
        StatusAnswer::Unknown,
    ];
    for word in words {
        for status in Status::ALL {
            let ended = matches!(status, Status::Dead | Status::Aborted);
            let desk = if ended { two_unknown().await } else { Desk::open() };
            if !ended {
                one_row_in_each_state(&desk).await;
            }
            let before = desk.row(ANN, status.word()).await;
            let learned = tell(&desk, status.word(), word).await;
            let after = desk.row(ANN, status.word()).await;
            let case = format!("{status} hears {word:?}");
            match learn(*status, word) {
                Learnt::Nothing => assert_eq!(after, before, "{case}"),
                Learnt::Done(receipt) => {
                    assert_eq!(after.state, OutboxState::Done { receipt }, "{case}");
                    assert_eq!(
                        (after.late_ack_at, learned.accepted),
                        (Some(desk.now), vec![before.row]),
                        "{case}"
                    );
                }
                Learnt::LateAck(_) => {
                    let OutboxState::Aborted { outcome, .. } = after.state else { panic!("{case}") };
                    assert_eq!((outcome, after.late_ack_at), (Outcome::Accepted, Some(desk.now)), "{case}");
                }
                Learnt::NotAccepted => assert_eq!(learned.not_accepted, [before.row], "{case}"),
                Learnt::Final => {
                    assert_eq!(learned.unknown_for_good, [before.row], "{case}");
                    assert_eq!(after.outcome_settled_at, Some(desk.now), "{case}");
                }
            }
            let left = desk.mailbox.unsettled(0, 10).await.unwrap();
            assert!(left.iter().all(|row| row.row != before.row), "{case}: nobody asks twice");
        }
    }
}

#[tokio::test]
async fn a_word_about_other_text_is_not_this_rows() {
    let desk = two_unknown().await;
    let row = desk.row(ANN, "dead").await;
    let other = desk.row(ANN, "aborted").await.fingerprint;
    let word = RowStatus { seq: row.seq, fingerprint: other, answer: StatusAnswer::Absent };
    assert_eq!(desk.mailbox.learn(vec![word], desk.now).await.unwrap(), mailbox::Learned::default());
    assert_eq!(desk.row(ANN, "dead").await, row);
}

/// Three rows done an hour apart, the last one with a deadline an hour ahead.
async fn three_done() -> Desk {
    let mut desk = Desk::open();
    for id in ["1", "2", "3"] {
        desk.advance(HOUR);
        let deliver_by = (id == "3").then(|| desk.broker_now + HOUR);
        desk.mailbox.accept(NewRow { deliver_by, ..desk.draft(ANN, id, "@x", id) }).await.unwrap();
        let frame = desk.frame().await;
        desk.deliver(&frame).await;
    }
    desk
}

#[tokio::test]
async fn the_newest_accepted_rows_are_named_while_the_broker_must_know_them() {
    let desk = three_done().await;
    let witness = |n: u64| Witness {
        sender: ANN,
        client_message_id: client_id(&n.to_string()),
        broker_message_id: message(n),
        accepted_at: model::Timestamp::from_micros(
            desk.broker_now.as_micros() - (3 - n.cast_signed()) * 3_600_000_000,
        ),
    };
    let all = desk.mailbox.newest_done(64, desk.broker_now, MAX_AGE).await.unwrap();
    assert_eq!(all, [witness(3), witness(2), witness(1)]);
    assert_eq!(desk.mailbox.newest_done(1, desk.broker_now, MAX_AGE).await.unwrap(), [witness(3)]);
    let young = desk.mailbox.newest_done(64, desk.broker_now, 2 * HOUR).await.unwrap();
    assert_eq!(young, [witness(3), witness(2)], "what the broker may have forgotten is no witness");
}

#[tokio::test]
async fn after_a_restore_accepted_rows_go_again_under_their_ids_with_a_new_first_attempt() {
    let mut desk = three_done().await;
    desk.send(ANN, "4", "@x").await;
    desk.advance(2 * HOUR);
    assert_eq!(desk.mailbox.redrive(desk.broker_now, MAX_AGE).await.unwrap(), 2);
    desk.crash();
    assert_eq!(desk.status(ANN, "3").await, Status::Done, "past its own deadline it is not said again");
    let frame = desk.frame().await;
    assert_eq!(ids(&frame), ["1", "2", "4"], "before what was handed over later");
    for (row, accepted_ago) in frame.rows.iter().zip([4, 3, 0]) {
        let age = desk.broker_now.since(row.first_attempt_at);
        assert_eq!(age, accepted_ago * HOUR, "the broker may have kept it, and counts from then");
        assert_eq!(row.send_deadline, row.first_attempt_at + MAX_AGE);
    }
    desk.deliver(&frame).await;
    assert_eq!(desk.mailbox.outbox_counts().await.unwrap().done, 4);
    assert_eq!(desk.mailbox.redrive(desk.broker_now, HOUR / 2).await.unwrap(), 3, "only those young enough");
}

#[tokio::test]
async fn a_row_that_goes_again_is_one_the_rule_drives_again() {
    for age in [HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR, 5 * HOUR] {
        let mut desk = three_done().await;
        desk.advance(HOUR / 2);
        let rows = [desk.row(ANN, "1").await, desk.row(ANN, "2").await, desk.row(ANN, "3").await];
        desk.mailbox.redrive(desk.broker_now, age).await.unwrap();
        for before in rows {
            let OutboxState::Done { receipt } = before.state else { panic!("accepted before the restore") };
            let after = desk.row(ANN, before.client_message_id.as_str()).await;
            match redrive(receipt.accepted_at, before.deliver_by, desk.broker_now, age) {
                Redrive::Again { first_attempt_at } => {
                    let driven = (after.state, after.first_attempt_at);
                    assert_eq!(driven, (OutboxState::Pending, Some(first_attempt_at)));
                }
                Redrive::Leave => assert_eq!(after, before),
            }
        }
    }
}

#[tokio::test]
async fn a_redrive_of_many_rows_leaves_none_out() {
    let desk = Desk::open();
    let rows = limits::SWEEP_ROWS_MAX + 7;
    for n in 0..rows {
        desk.send(if n % 2 == 0 { ANN } else { BOB }, &format!("{n}"), "@x").await;
    }
    loop {
        let frames = desk.claim().await.frames;
        if frames.is_empty() {
            break;
        }
        for frame in &frames {
            desk.deliver(frame).await;
        }
    }
    assert_eq!(desk.mailbox.redrive(desk.broker_now, MAX_AGE).await.unwrap(), rows);
    assert_eq!(desk.mailbox.outbox_counts().await.unwrap().done, 0);
}
