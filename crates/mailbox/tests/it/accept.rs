//! Door ①.

use std::sync::Arc;

use mailbox::{Accepted, Mailbox, NewRow, OutboxKey};
use model::admission::days_long;
use model::outbox::{AbortedBy, Answer, Status, Verdict};
use model::{ErrorCode, OsEntropy, limits};

use crate::desk::{ANN, BOB, Desk, HOUR, client_id, options, refused};

#[tokio::test]
async fn a_new_id_is_stored_and_its_retry_finds_the_row() {
    let mut desk = Desk::open();
    let first = desk.mailbox.accept(desk.draft(ANN, "a", "@bob", "hi")).await.unwrap();
    assert_eq!(first.verdict, Verdict::Insert);
    desk.crash();
    let again = desk.mailbox.accept(desk.draft(ANN, "a", "@bob", "hi")).await.unwrap();
    assert_eq!(again, Accepted { verdict: Verdict::Queued, ..first.clone() });
    let row = desk.row(ANN, "a").await;
    assert_eq!((row.row, row.to_asked.as_str(), row.attempts), (first.row, "@bob", 0));
    assert_eq!(desk.mailbox.outbox_payload(first.row).await.unwrap().as_deref(), Some(&b"hi"[..]));
}

#[tokio::test]
async fn a_message_its_caller_did_not_name_is_found_by_its_row_under_either_name() {
    let mut desk = Desk::open();
    let draft = desk.draft(ANN, "x", "@bob", "hi");
    let unnamed = NewRow { client_message_id: draft.row.into(), ..draft };
    let (row, name) = (unnamed.row, unnamed.client_message_id.clone());
    assert_eq!(desk.mailbox.accept(unnamed).await.unwrap().verdict, Verdict::Insert);
    desk.crash();
    let found = desk.mailbox.outbox_chain(row).await.unwrap();
    assert_eq!(found.iter().map(|found| found.row).collect::<Vec<_>>(), [row]);
    assert_eq!(desk.row(ANN, name.as_str()).await.row, row);
    // Whoever was told the name may ask again by it.
    let again = desk.mailbox.accept(desk.draft(ANN, name.as_str(), "@bob", "hi")).await.unwrap();
    assert_eq!((again.verdict, again.row), (Verdict::Queued, row));
    let theirs = desk.mailbox.accept(desk.draft(BOB, name.as_str(), "@bob", "hi")).await.unwrap();
    assert_eq!(theirs.verdict, Verdict::Insert, "another sender's name is another's");
    assert_ne!(theirs.row, row);
    let held = desk.mailbox.hold(row, desk.now).await.unwrap();
    desk.mailbox.release(row, held.lease).await.unwrap();
    desk.mailbox.abort(row, AbortedBy::Operator, desk.now).await.unwrap();
    assert_eq!(desk.row(ANN, name.as_str()).await.state.status(), Status::Aborted);
    assert_eq!(desk.row(BOB, name.as_str()).await.state.status(), Status::Pending);
}

#[tokio::test]
async fn short_and_long_bodies_leave_as_they_came_and_are_scrubbed_alike() {
    let mut desk = Desk::open();
    let short = limits::SHORT_BODY_BYTES;
    for bytes in [0, short, short + 1, 20 * short] {
        let (id, text) = (format!("of-{bytes}"), "x".repeat(bytes));
        let row = desk.mailbox.accept(desk.draft(ANN, &id, "@bob", &text)).await.unwrap().row;
        desk.crash();
        assert_eq!(desk.mailbox.outbox_payload(row).await.unwrap().as_deref(), Some(text.as_bytes()));
        let frame = desk.frame().await;
        assert_eq!(frame.rows[0].payload, text.as_bytes());
        desk.deliver(&frame).await;
        desk.advance(days_long(limits::OUTBOX_PAYLOAD_KEPT_DAYS) + 2 * HOUR);
        assert_eq!(desk.mailbox.scrub_outbox(desk.now).await.unwrap(), 1);
        assert_eq!(desk.mailbox.outbox_payload(row).await.unwrap(), None, "{bytes} bytes");
    }
}

#[tokio::test]
async fn two_senders_with_one_id_and_one_text_have_two_rows() {
    let desk = Desk::open();
    let ann = desk.mailbox.accept(desk.draft(ANN, "1", "@carl", "hi")).await.unwrap();
    let bob = desk.mailbox.accept(desk.draft(BOB, "1", "@carl", "hi")).await.unwrap();
    assert_eq!((&ann.verdict, &bob.verdict), (&Verdict::Insert, &Verdict::Insert));
    assert_ne!(ann.row, bob.row);
    assert_eq!(desk.mailbox.outbox_counts().await.unwrap().pending, 2);
}

/// Rows `pending`, `inflight`, `done`, `dead` and `aborted`, each in its own lane and named after its state.
pub async fn one_row_in_each_state(desk: &Desk) {
    desk.send(ANN, "aborted", "@aborted").await;
    desk.mailbox.abort(desk.row(ANN, "aborted").await.row, AbortedBy::Operator, desk.now).await.unwrap();
    for (id, answer) in [("done", None), ("dead", Some(refused(ErrorCode::TooLarge)))] {
        desk.send(ANN, id, &format!("@{id}")).await;
        let frame = desk.frame().await;
        let answer: Answer = answer.unwrap_or_else(|| desk.accepted(frame.rows[0].seq));
        desk.settle(&frame, &[answer]).await;
    }
    desk.send(ANN, "inflight", "@inflight").await;
    desk.frame().await;
    desk.send(ANN, "pending", "@pending").await;
}

#[tokio::test]
async fn every_cell_of_the_accept_table_answers_and_no_cell_changes_a_row() {
    let desk = Desk::open();
    one_row_in_each_state(&desk).await;
    for status in Status::ALL {
        let (id, to) = (status.word(), format!("@{status}"));
        let before = desk.row(ANN, id).await;
        assert_eq!(before.state.status(), *status);
        let same = desk.mailbox.accept(desk.draft(ANN, id, &to, id)).await.unwrap();
        let other = desk.mailbox.accept(desk.draft(ANN, id, &to, "something else")).await.unwrap();
        match (status, same.verdict) {
            (Status::Pending, Verdict::Queued) | (Status::Inflight, Verdict::Inflight) => {}
            (Status::Done, Verdict::Duplicate(receipt)) => assert_eq!(receipt.history_id, before.seq),
            (Status::Dead, Verdict::Conflict(conflict)) => {
                assert_eq!(conflict.text(), "outbox_dead_fingerprint_match");
                assert_eq!(conflict.reason.as_deref(), Some("too_large"));
            }
            (Status::Aborted, Verdict::Conflict(conflict)) => {
                assert_eq!(conflict.text(), "outbox_aborted_fingerprint_match");
            }
            (status, verdict) => panic!("{status} answered {verdict:?}"),
        }
        let Verdict::Conflict(conflict) = other.verdict else {
            panic!("{status}: another text must conflict")
        };
        assert_eq!(conflict.text(), format!("outbox_{status}_fingerprint_mismatch"));
        assert_eq!(conflict.fingerprint, before.fingerprint);
        assert_eq!(desk.row(ANN, id).await, before, "{status}: no verdict changes a row");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_64_concurrent_sends_of_one_id_one_is_stored_and_the_rest_are_told() {
    let desk = Desk::open();
    let folder = tempfile::tempdir().unwrap();
    let db = sqlite::Db::open(options(folder.path())).unwrap();
    let mailbox = Mailbox::over(db, Arc::new(OsEntropy)).unwrap();
    let calls: Vec<_> = (0..64)
        .map(|n| {
            let text = if n % 2 == 0 { "even" } else { "odd" };
            let draft: NewRow = desk.draft(ANN, "same", "@bob", text);
            let mailbox = mailbox.clone();
            (draft.clone(), tokio::spawn(async move { mailbox.accept(draft).await.unwrap() }))
        })
        .collect();
    let key = OutboxKey::Client { sender: ANN, client_message_id: client_id("same") };
    let mut inserted = 0;
    for (draft, call) in calls {
        let accepted = call.await.unwrap();
        let stored = mailbox.outbox_row(key.clone()).await.unwrap().unwrap();
        assert_eq!(accepted.row, stored.row, "everybody is told of the one row");
        match accepted.verdict {
            Verdict::Insert => {
                inserted += 1;
                assert_eq!(draft.row, stored.row);
            }
            Verdict::Queued => assert_eq!(draft.fingerprint, stored.fingerprint),
            Verdict::Conflict(_) => assert_ne!(draft.fingerprint, stored.fingerprint),
            Verdict::Inflight | Verdict::Duplicate(_) => panic!("nothing was claimed"),
        }
    }
    assert_eq!(inserted, 1);
    assert_eq!(mailbox.outbox_counts().await.unwrap().pending, 1);
    mailbox.close().await;
}
