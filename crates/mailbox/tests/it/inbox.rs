//! Reading mail.

use mailbox::{InboxCount, InboxPlace, InboxQuery, InboxShow};
use model::{MemberId, limits};

use crate::desk::{ANN, BOB, Desk, message};

fn query(recipient: Option<MemberId>, place: InboxPlace, limit: usize) -> InboxQuery {
    InboxQuery { recipient, place, show: InboxShow::All, from: None, limit }
}

async fn seqs(desk: &Desk, query: InboxQuery) -> Vec<u64> {
    desk.mailbox.inbox(query).await.unwrap().iter().map(|row| row.seq).collect()
}

/// Rows 1 to 6; the even ones are Bob's, the odd ones Ann's.
async fn six(desk: &Desk) {
    let mail = (1..=6).map(|n| desk.mail(n, if n % 2 == 0 { BOB } else { ANN })).collect();
    desk.mailbox.record(mail, desk.now, desk.broker_now).await.unwrap();
}

#[tokio::test]
async fn pages_go_forward_and_back_oldest_first() {
    let desk = Desk::open();
    six(&desk).await;
    for (recipient, place, limit, expected) in [
        (None, InboxPlace::Newest, 4, vec![3, 4, 5, 6]),
        (None, InboxPlace::Before(3), 4, vec![1, 2]),
        (None, InboxPlace::After(0), 2, vec![1, 2]),
        (None, InboxPlace::After(4), 9, vec![5, 6]),
        (Some(BOB), InboxPlace::Newest, 2, vec![4, 6]),
        (Some(BOB), InboxPlace::Before(6), 9, vec![2, 4]),
        (Some(BOB), InboxPlace::After(2), 9, vec![4, 6]),
        (Some(MemberId::from_bytes([9; 16])), InboxPlace::Newest, 9, vec![]),
    ] {
        assert_eq!(
            seqs(&desk, query(recipient, place, limit)).await,
            expected,
            "{recipient:?} {place:?} {limit}"
        );
    }
    let everything = query(None, InboxPlace::Newest, usize::MAX);
    assert_eq!(seqs(&desk, everything).await.len(), 6, "a page is bounded by {}", limits::PAGE_ROWS_MAX);
}

#[tokio::test]
async fn an_agent_marks_its_own_mail_only() {
    let mut desk = Desk::open();
    six(&desk).await;
    assert_eq!(desk.mailbox.mark_read(ANN, vec![message(2), message(4)], desk.now).await.unwrap(), 0);
    assert_eq!(desk.mailbox.mark_read(BOB, vec![message(2), message(4)], desk.now).await.unwrap(), 2);
    assert_eq!(desk.mailbox.mark_read(BOB, vec![message(2)], desk.now).await.unwrap(), 0);
    desk.crash();
    let unread =
        |recipient| InboxQuery { show: InboxShow::Unread, ..query(recipient, InboxPlace::Newest, 9) };
    assert_eq!(seqs(&desk, unread(Some(BOB))).await, [6]);
    assert_eq!(seqs(&desk, unread(None)).await, [1, 3, 5, 6]);
    let count = |recipient, unread| InboxCount { recipient, total: 3, unread };
    assert_eq!(desk.mailbox.inbox_counts().await.unwrap(), [count(ANN, 3), count(BOB, 1)]);
}

#[tokio::test]
async fn mail_is_filtered_by_sender() {
    let desk = Desk::open();
    let from_bob = mailbox::Arrived { sender: BOB, ..desk.mail(7, ANN) };
    desk.mailbox.record(vec![desk.mail(1, ANN), from_bob], desk.now, desk.broker_now).await.unwrap();
    let from = |from| InboxQuery { from: Some(from), ..query(Some(ANN), InboxPlace::Newest, 9) };
    assert_eq!(seqs(&desk, from(BOB)).await, [2]);
    assert_eq!(seqs(&desk, from(ANN)).await, [1]);
}
