//! Bodies go after a while; ids stay.

use mailbox::{InboxPlace, InboxQuery, InboxShow};
use model::admission::days_long;
use model::limits;
use model::outbox::{Status, Verdict};

use crate::accept::one_row_in_each_state;
use crate::desk::{ANN, BOB, Desk, HOUR, message};

#[tokio::test]
async fn payloads_of_done_and_aborted_rows_are_scrubbed_and_their_ids_stay_refused() {
    let mut desk = Desk::open();
    one_row_in_each_state(&desk).await;
    desk.advance(days_long(limits::OUTBOX_PAYLOAD_KEPT_DAYS));
    assert_eq!(desk.mailbox.scrub_outbox(desk.now).await.unwrap(), 0, "kept to the last day");
    desk.advance(2 * HOUR);
    assert_eq!(desk.mailbox.scrub_outbox(desk.now).await.unwrap(), 2);
    assert_eq!(desk.mailbox.scrub_outbox(desk.now).await.unwrap(), 0);
    desk.crash();
    for status in Status::ALL {
        let row = desk.row(ANN, status.word()).await;
        let scrubbed = matches!(status, Status::Done | Status::Aborted);
        assert_eq!(row.scrubbed_at.is_some(), scrubbed, "{status}");
        assert_eq!(desk.mailbox.outbox_payload(row.row).await.unwrap().is_none(), scrubbed, "{status}");
        let other = desk.mailbox.accept(desk.draft(ANN, status.word(), "@x", "other")).await.unwrap();
        assert!(matches!(other.verdict, Verdict::Conflict(_)), "{status}: the id is used for ever");
    }
    let same = desk.mailbox.accept(desk.draft(ANN, "done", "@done", "done")).await.unwrap();
    assert!(matches!(same.verdict, Verdict::Duplicate(_)), "a tombstone still knows its receipt");
    assert_eq!(desk.mailbox.newest_done(64, desk.broker_now, days_long(365)).await.unwrap(), []);
}

fn newest(limit: usize) -> InboxQuery {
    InboxQuery { recipient: None, place: InboxPlace::Newest, show: InboxShow::All, from: None, limit }
}

#[tokio::test]
async fn old_mail_is_scrubbed_and_still_known_as_a_duplicate() {
    let mut desk = Desk::open();
    let many = u64::try_from(limits::SWEEP_ROWS_MAX).unwrap() + 5;
    let mail = (1..=many).map(|n| desk.mail(n, if n % 100 == 0 { ANN } else { BOB })).collect();
    desk.mailbox.record(mail, desk.now, desk.broker_now).await.unwrap();
    desk.advance(days_long(limits::INBOX_RETENTION_DAYS) + HOUR);
    desk.mailbox.record(vec![desk.mail(9999, BOB)], desk.now, desk.broker_now).await.unwrap();
    let scrubbed = desk.mailbox.scrub_inbox(desk.now).await.unwrap();
    assert_eq!(scrubbed, usize::try_from(many).unwrap());
    desk.crash();
    let kept = desk.mailbox.inbox(newest(10)).await.unwrap();
    assert_eq!(kept.iter().map(|row| row.id).collect::<Vec<_>>(), [message(9999)]);
    let tombstone = desk.mailbox.inbox_by_id(message(1)).await.unwrap().remove(0);
    assert_eq!(tombstone.envelope, None);
    let again = desk.mailbox.record(vec![desk.mail(1, BOB)], desk.now, desk.broker_now).await.unwrap();
    assert!(matches!(again[0].arrival, mailbox::Arrival::Duplicate { .. }), "no second wake");
    assert_eq!(desk.mailbox.inbox(newest(10)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn mail_received_by_a_wrong_clock_is_kept_and_stops_no_scrub() {
    let mut desk = Desk::open();
    let future = desk.now + days_long(1000);
    desk.mailbox.record(vec![desk.mail(1, BOB)], future, desk.broker_now).await.unwrap();
    desk.mailbox.record(vec![desk.mail(2, BOB)], desk.now, desk.broker_now).await.unwrap();
    desk.advance(days_long(limits::INBOX_RETENTION_DAYS) + HOUR);
    assert_eq!(desk.mailbox.scrub_inbox(desk.now).await.unwrap(), 1);
    let kept = desk.mailbox.inbox(newest(10)).await.unwrap();
    assert_eq!(kept.iter().map(|row| row.id).collect::<Vec<_>>(), [message(1)]);
}

#[tokio::test]
async fn bytes_in_use_grow_with_bodies_and_fall_when_they_are_scrubbed() {
    let mut desk = Desk::open();
    let empty = desk.mailbox.bytes_in_use().await.unwrap();
    for n in 0..64 {
        let draft = desk.draft(ANN, &format!("{n}"), "@x", &format!("{n}"));
        let payload = vec![b'x'; limits::BODY_BYTES_MAX / 8];
        desk.mailbox.accept(mailbox::NewRow { payload, ..draft }).await.unwrap();
    }
    let full = desk.mailbox.bytes_in_use().await.unwrap();
    assert!(full > empty + 64 * 8192, "{empty} → {full}");
    let frame = desk.frame().await;
    desk.deliver(&frame).await;
    desk.advance(days_long(limits::OUTBOX_PAYLOAD_KEPT_DAYS) + 2 * HOUR);
    assert_eq!(desk.mailbox.scrub_outbox(desk.now).await.unwrap(), 64);
    assert!(desk.mailbox.bytes_in_use().await.unwrap() < full / 2);
}

#[tokio::test]
async fn a_clock_ahead_for_an_hour_takes_no_body_and_one_that_stays_takes_what_is_old() {
    let mut desk = Desk::open();
    one_row_in_each_state(&desk).await;
    desk.mailbox.record(vec![desk.mail(1, BOB)], desk.now, desk.broker_now).await.unwrap();
    let ahead = days_long(400);
    let mut aged = desk.mailbox.look_at_clock(desk.now, None).await.unwrap();
    let scrubbed = async |desk: &Desk, aged| {
        (desk.mailbox.scrub_outbox(aged).await.unwrap(), desk.mailbox.scrub_inbox(aged).await.unwrap())
    };
    for _ in 0..2 {
        aged = desk.mailbox.look_at_clock(desk.now + ahead, Some(aged)).await.unwrap();
        assert_eq!(scrubbed(&desk, aged).await, (0, 0));
        desk.advance(HOUR);
        aged = desk.mailbox.look_at_clock(desk.now + ahead, Some(aged + HOUR)).await.unwrap();
        assert_eq!(scrubbed(&desk, aged).await, (0, 0));
        desk.crash();
        aged = desk.mailbox.look_at_clock(desk.now + ahead, None).await.unwrap();
        assert_eq!(scrubbed(&desk, aged).await, (0, 0), "a restart bears nothing out");
    }
    assert_eq!(
        desk.mailbox.look_at_clock(desk.now, None).await.unwrap(),
        desk.now,
        "the date is right again"
    );
    let day = limits::CLOCK_DOUBT;
    desk.advance(HOUR);
    aged = desk.mailbox.look_at_clock(desk.now + ahead, Some(desk.now)).await.unwrap();
    aged = desk.mailbox.look_at_clock(desk.now + ahead + day, Some(aged + day)).await.unwrap();
    assert_eq!(scrubbed(&desk, aged).await, (2, 1));
}
