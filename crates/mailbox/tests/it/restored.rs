//! The outbox of a file that `postrider restore` put in place: what had not left at the backup may have left since.

use std::time::Duration;

use mailbox::{Asking, Doubt, NewRow, Requeue, RowStatus, Word};
use model::admission::StatusAnswer;
use model::outbox::{AbortedBy, Answer, DeadReason, OutboxState, Outcome, Status};
use model::{ErrorCode, Timestamp};
use sqlite::{FileMark, MarkedBy};

use crate::desk::{ANN, Desk, HOUR, MAX_AGE, client_id, ids, refused};

/// The file becomes one that was restored now, from a backup begun at `backup_at`, and is opened.
fn restore(desk: &mut Desk, backup_at: Timestamp) {
    let by = MarkedBy::Restore { backup_at_us: backup_at.as_micros() };
    FileMark { place: 0, at_us: desk.now.as_micros(), by }.write(&desk.path()).unwrap();
    desk.crash();
}

/// Row `tried` was refused once, and behind it is `sorted`, which a courier has looked at; `came` nobody has. The backup is made
/// now.
async fn waiting() -> (Desk, Timestamp) {
    let mut desk = Desk::open();
    desk.send(ANN, "tried", "@x").await;
    let frame = desk.frame().await;
    desk.settle(&frame, &[refused(ErrorCode::Internal)]).await;
    desk.send(ANN, "sorted", "@x").await;
    assert_eq!(desk.claim().await.frames, []);
    desk.advance(HOUR);
    desk.send(ANN, "came", "@y").await;
    let backup_at = desk.now;
    (desk, backup_at)
}

#[tokio::test]
async fn what_waited_in_a_backup_ages_from_it_although_no_copy_had_left() {
    let (mut desk, backup_at) = waiting().await;
    let tried_at = desk.row(ANN, "tried").await.first_attempt_at;
    desk.advance(24 * HOUR);
    restore(&mut desk, backup_at);
    desk.send(ANN, "new", "@z").await;
    assert_eq!(desk.row(ANN, "tried").await.first_attempt_at, tried_at, "that is known");
    for id in ["sorted", "came"] {
        let row = desk.row(ANN, id).await;
        assert_eq!((row.first_attempt_at, row.attempts), (Some(backup_at), 0), "{id}");
    }
    let frames = desk.claim().await.frames;
    let rows: Vec<_> = frames.iter().flat_map(|frame| &frame.rows).collect();
    for (id, first) in [("came", backup_at), ("new", desk.broker_now)] {
        let row = rows.iter().find(|row| row.client_message_id == client_id(id)).unwrap();
        assert_eq!((row.first_attempt_at, row.send_deadline), (first, first + MAX_AGE), "{id}");
    }
}

#[tokio::test]
async fn what_waited_in_a_backup_that_is_too_old_is_asked_about_and_not_sent() {
    let (mut desk, backup_at) = waiting().await;
    desk.advance(MAX_AGE);
    restore(&mut desk, backup_at);
    let claimed = desk.claim().await;
    assert_eq!((claimed.frames, claimed.buried), (Vec::new(), 3));
    let asked = desk.mailbox.unsettled(0, 10).await.unwrap();
    let asked: Vec<_> = asked.iter().map(|row| row.client_message_id.as_str()).collect();
    assert_eq!(asked, ["tried", "sorted", "came"]);
    let OutboxState::Dead { reason, outcome, .. } = desk.row(ANN, "came").await.state else { panic!("dead") };
    assert_eq!((reason, outcome), (DeadReason::MaxAge, Outcome::Unknown));
}

#[tokio::test]
async fn what_waited_in_a_backup_is_replaced_and_retired_as_what_may_have_left() {
    let (mut desk, backup_at) = waiting().await;
    restore(&mut desk, backup_at);
    let held = desk.mailbox.hold(desk.row(ANN, "came").await.row, desk.now).await.unwrap();
    assert!(matches!(held.asking, Asking::Needed { .. }), "{:?}", held.asking);
    let row = desk.row(ANN, "sorted").await.row;
    let outcome = desk.mailbox.abort(row, AbortedBy::Operator, desk.now).await.unwrap();
    assert_eq!(outcome, Outcome::Unknown);
}

/// The instant of a backup is this host's, and the age of a row is counted in the broker's.
#[tokio::test]
async fn a_clock_that_stood_ahead_makes_no_first_attempt_later_than_it_can_have_been() {
    let first_attempt = async |ahead: Duration, borne_out: Option<Timestamp>| {
        let mut desk = Desk::open();
        desk.now = desk.broker_now + ahead;
        desk.send(ANN, "done", "@x").await;
        let frame = desk.frame().await;
        desk.deliver(&frame).await;
        desk.send(ANN, "waits", "@y").await;
        if let Some(at) = borne_out {
            desk.mailbox.look_at_clock(at, None).await.unwrap();
        }
        let (backup_at, broker_then) = (desk.now, desk.broker_now);
        desk.advance(HOUR);
        restore(&mut desk, backup_at);
        (desk.row(ANN, "waits").await.first_attempt_at.unwrap(), broker_then, backup_at)
    };
    let (first, broker_then, backup_at) = first_attempt(48 * HOUR, None).await;
    assert_eq!(first, broker_then, "the rows that were accepted show how far it stood ahead: {backup_at}");
    let borne_out = Desk::open().now;
    let (first, _, backup_at) = first_attempt(Duration::ZERO, Some(borne_out)).await;
    assert_eq!(first, borne_out, "what is not borne out is not believed: {backup_at}");
    // Set right between the two, and nothing was ever accepted.
    let mut desk = Desk::open();
    desk.send(ANN, "waits", "@y").await;
    let wrong = desk.now + 1000 * HOUR;
    restore(&mut desk, wrong);
    assert_eq!(desk.row(ANN, "waits").await.first_attempt_at, Some(desk.now));
}

/// Row `a` was tried and replaced by force while the broker was away, and its successor waits in the backup.
async fn forced() -> Desk {
    let mut desk = Desk::open();
    desk.send(ANN, "a", "@x").await;
    let frame = desk.frame().await;
    desk.settle(&frame, &[Answer::Lost]).await;
    let held = desk.mailbox.hold(desk.row(ANN, "a").await.row, desk.now).await.unwrap();
    let NewRow { row: successor, client_message_id, .. } = desk.draft(ANN, "a2", "@x", "a");
    let requeue = Requeue {
        row: held.row.row,
        lease: held.lease,
        word: Word::Silence,
        doubt: Doubt::Force,
        successor,
        client_message_id,
        fingerprint: held.row.fingerprint,
        payload: held.payload,
        deliver_by: None,
        now: desk.now,
    };
    desk.mailbox.requeue(requeue).await.unwrap();
    let backup_at = desk.now;
    desk.advance(HOUR);
    restore(&mut desk, backup_at);
    assert!(desk.row(ANN, "a2").await.first_attempt_at.is_some());
    desk
}

async fn told(desk: &Desk, answer: StatusAnswer) {
    let row = desk.row(ANN, "a").await;
    let word = RowStatus { seq: row.seq, fingerprint: row.fingerprint, answer };
    desk.mailbox.learn(vec![word], desk.now).await.unwrap();
}

#[tokio::test]
async fn a_restored_successor_still_waits_for_the_question_and_is_retired_by_its_answer() {
    let desk = forced().await;
    assert_eq!(desk.claim().await.frames, [], "the broker was not asked about the first id");
    told(&desk, StatusAnswer::Accepted(desk.receipt(1))).await;
    assert_eq!(desk.status(ANN, "a2").await, Status::Aborted, "the same words do not go out twice");
    let desk = forced().await;
    told(&desk, StatusAnswer::Absent).await;
    assert_eq!(ids(&desk.frame().await), ["a2"]);
}
