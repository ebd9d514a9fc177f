//! Looking at the outbox.

use mailbox::{OutboxCounts, OutboxFilter, OutboxKey};
use model::outbox::{AbortedBy, Answer, Status};
use model::receipt::{Ended, Rung, Standing};

use crate::accept::one_row_in_each_state;
use crate::desk::{ANN, BOB, Desk, HOUR, client_id, message};

async fn listed(desk: &Desk, filter: OutboxFilter) -> Vec<String> {
    let rows = desk.mailbox.outbox_list(filter).await.unwrap();
    rows.iter().map(|row| row.client_message_id.to_string()).collect()
}

#[tokio::test]
async fn lists_are_newest_first_and_filtered_by_state_sender_and_place() {
    let desk = Desk::open();
    one_row_in_each_state(&desk).await;
    desk.send(BOB, "bobs", "@x").await;
    let all = OutboxFilter { limit: 9, ..OutboxFilter::default() };
    let newest = ["bobs", "pending", "inflight", "dead", "done", "aborted"];
    assert_eq!(listed(&desk, all.clone()).await, newest);
    assert_eq!(listed(&desk, OutboxFilter { limit: 2, ..all.clone() }).await, newest[..2]);
    assert_eq!(listed(&desk, OutboxFilter { before_seq: Some(3), ..all.clone() }).await, newest[4..]);
    for status in Status::ALL {
        let of_ann = OutboxFilter { status: Some(*status), sender: Some(ANN), ..all.clone() };
        assert_eq!(listed(&desk, of_ann).await, [status.word()]);
    }
    let pending = OutboxFilter { status: Some(Status::Pending), ..all };
    assert_eq!(listed(&desk, pending).await, ["bobs", "pending"]);
}

#[tokio::test]
async fn counts_tell_each_state_and_the_age_of_the_oldest_open_row() {
    let mut desk = Desk::open();
    assert_eq!(desk.mailbox.outbox_counts().await.unwrap(), OutboxCounts::default());
    let started = desk.now;
    one_row_in_each_state(&desk).await;
    desk.advance(HOUR);
    desk.send(ANN, "more", "@pending").await;
    let expected =
        OutboxCounts { pending: 2, inflight: 1, done: 1, dead: 1, aborted: 1, oldest_open_at: Some(started) };
    assert_eq!(desk.mailbox.outbox_counts().await.unwrap(), expected);
}

#[tokio::test]
async fn rows_are_counted_and_listed_alike_before_and_after_a_courier_looked_at_them() {
    let mut desk = Desk::open();
    for id in ["old", "gone"] {
        desk.send(ANN, id, "@x").await;
    }
    desk.deliver(&desk.frame().await).await;
    let first = desk.now;
    for (sender, id) in [(ANN, "a"), (BOB, "b"), (ANN, "given-up"), (ANN, "c")] {
        desk.send(sender, id, "@y").await;
        desk.advance(HOUR);
    }
    desk.mailbox.abort(desk.row(ANN, "given-up").await.row, AbortedBy::Operator, desk.now).await.unwrap();
    desk.crash();
    let shown = |status, sender, limit| {
        let mailbox = desk.mailbox.clone();
        async move {
            let filter = OutboxFilter { status: Some(status), sender, limit, ..OutboxFilter::default() };
            let rows = mailbox.outbox_list(filter).await.unwrap();
            rows.iter().map(|row| row.client_message_id.to_string()).collect::<Vec<_>>()
        }
    };
    let waiting = OutboxCounts {
        pending: 3,
        done: 2,
        aborted: 1,
        oldest_open_at: Some(first),
        ..OutboxCounts::default()
    };
    assert_eq!(desk.mailbox.outbox_counts().await.unwrap(), waiting);
    assert_eq!(shown(Status::Pending, None, 9).await, ["c", "b", "a"]);
    assert_eq!(shown(Status::Pending, Some(ANN), 1).await, ["c"]);
    let frames = desk.claim().await.frames;
    let taken = OutboxCounts { pending: 0, inflight: 3, ..waiting };
    assert_eq!(desk.mailbox.outbox_counts().await.unwrap(), taken);
    assert_eq!(shown(Status::Inflight, None, 9).await, ["c", "b", "a"]);
    desk.settle(&frames[0], &[Answer::NotTried, Answer::NotTried]).await;
    desk.send(ANN, "d", "@y").await;
    assert_eq!(shown(Status::Pending, Some(ANN), 9).await, ["d", "c", "a"], "sorted and not, newest first");
    assert_eq!(shown(Status::Pending, Some(ANN), 2).await, ["d", "c"]);
    let mixed = OutboxCounts { pending: 3, inflight: 1, ..waiting };
    assert_eq!(desk.mailbox.outbox_counts().await.unwrap(), mixed);
}

#[tokio::test]
async fn a_row_is_found_by_each_of_its_names() {
    let desk = Desk::open();
    one_row_in_each_state(&desk).await;
    let row = desk.row(ANN, "done").await;
    let by = |key| async { desk.mailbox.outbox_row(key).await.unwrap() };
    assert_eq!(by(OutboxKey::Row(row.row)).await, Some(row.clone()));
    assert_eq!(by(OutboxKey::Message(message(row.seq))).await, Some(row.clone()));
    assert_eq!(by(OutboxKey::Message(message(999))).await, None);
    let bobs = OutboxKey::Client { sender: BOB, client_message_id: client_id("done") };
    assert_eq!(by(bobs).await, None, "an id is its sender's");
}

#[tokio::test]
async fn each_state_claims_no_more_than_is_true() {
    let desk = Desk::open();
    one_row_in_each_state(&desk).await;
    for (id, standing) in [
        ("pending", Standing::At(Rung::Queued)),
        ("inflight", Standing::At(Rung::Queued)),
        ("done", Standing::At(Rung::Accepted)),
        ("dead", Standing::Ended(Ended::Rejected)),
        ("aborted", Standing::Ended(Ended::Aborted)),
    ] {
        assert_eq!(desk.row(ANN, id).await.standing(), standing, "{id}");
    }
}
