//! An operator frees payloads: ids and their answers stay, and the file shrinks at the next start.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use mailbox::{EndedRows, OperatorError, PayloadCount, ShrinkBounds, ShrinkError, shrink};
use model::outbox::{Status, Verdict};
use sqlite::rusqlite::Connection;

use crate::accept::one_row_in_each_state;
use crate::desk::{ANN, Desk, MAX_AGE};

async fn verdicts(desk: &Desk) -> BTreeMap<String, Verdict> {
    let mut verdicts = BTreeMap::new();
    for status in Status::ALL {
        for words in [status.word(), "other"] {
            let lane = format!("@{status}");
            let again = desk.draft(ANN, status.word(), &lane, words);
            verdicts.insert(format!("{status}, {words}"), desk.mailbox.accept(again).await.unwrap().verdict);
        }
    }
    verdicts
}

#[tokio::test]
async fn payloads_of_ended_rows_go_and_every_id_answers_as_before() {
    let mut desk = Desk::open();
    one_row_in_each_state(&desk).await;
    let before = verdicts(&desk).await;
    for (ended, status) in [
        (EndedRows::Done, Status::Done),
        (EndedRows::Dead, Status::Dead),
        (EndedRows::Aborted, Status::Aborted),
    ] {
        let row = desk.row(ANN, status.word()).await.row;
        let words = desk.mailbox.outbox_payload(row).await.unwrap().unwrap();
        let expected = PayloadCount { rows: 1, bytes: words.len() as u64 };
        assert_eq!(desk.mailbox.prunable(ended).await.unwrap(), expected, "{status}");
        assert_eq!(desk.mailbox.outbox_payload(row).await.unwrap(), Some(words), "{status}: only looked at");
        assert_eq!(desk.mailbox.prune_outbox(ended, desk.now).await.unwrap(), expected, "{status}");
        assert_eq!(desk.mailbox.outbox_payload(row).await.unwrap(), None, "{status}");
        let again = desk.mailbox.prune_outbox(ended, desk.now).await.unwrap();
        assert_eq!(again, PayloadCount::default(), "{status}: nothing is freed twice");
    }
    desk.crash();
    for status in [Status::Pending, Status::Inflight] {
        let row = desk.row(ANN, status.word()).await.row;
        assert!(desk.mailbox.outbox_payload(row).await.unwrap().is_some(), "{status}: it still has to leave");
    }
    assert_eq!(verdicts(&desk).await, before);
    let dead = desk.row(ANN, "dead").await.row;
    let held = desk.mailbox.hold(dead, desk.now).await;
    assert!(matches!(held, Err(OperatorError::Wordless(row)) if row == dead), "{held:?}");
}

#[tokio::test]
async fn a_row_that_lost_its_words_is_not_sent_again_when_the_broker_turns_out_to_have_it_and_loses_it() {
    let desk = Desk::open();
    desk.send(ANN, "late", "@x").await;
    let frame = desk.frame().await;
    desk.settle(&frame, &[model::outbox::Answer::Refused(model::ErrorCode::TooLarge)]).await;
    assert_eq!(desk.status(ANN, "late").await, Status::Dead);
    desk.mailbox.prune_outbox(EndedRows::Dead, desk.now).await.unwrap();
    let row = desk.row(ANN, "late").await;
    let accepted = model::admission::StatusAnswer::Accepted(desk.receipt(row.seq));
    let word = mailbox::RowStatus { seq: row.seq, fingerprint: row.fingerprint, answer: accepted };
    desk.mailbox.learn(vec![word], desk.now).await.unwrap();
    assert_eq!(desk.status(ANN, "late").await, Status::Done);
    assert_eq!(desk.mailbox.redrive(desk.broker_now, MAX_AGE).await.unwrap(), 0);
    assert_eq!(desk.status(ANN, "late").await, Status::Done);
}

/// Rows with long words, accepted by the broker.
async fn with_long_words(rows: usize) -> Desk {
    let desk = Desk::open();
    for n in 0..rows {
        let words = format!("{n} ").repeat(10_000);
        desk.mailbox.accept(desk.draft(ANN, &format!("id{n}"), &format!("@{n}"), &words)).await.unwrap();
    }
    for frame in desk.claim().await.frames {
        desk.deliver(&frame).await;
    }
    desk
}

const BOUNDS: ShrinkBounds = ShrinkBounds { free_bytes_min: 64 * 1024, live_bytes_max: 64 * 1024 * 1024 };

#[tokio::test]
async fn a_file_that_is_mostly_free_is_shorter_after_the_next_start_and_holds_the_same() {
    let mut desk = with_long_words(30).await;
    let pruned = desk.mailbox.prune_outbox(EndedRows::Done, desk.now).await.unwrap();
    assert_eq!(pruned.rows, 30);
    let reusable = desk.mailbox.bytes_reusable().await.unwrap();
    assert!(reusable >= pruned.bytes, "{reusable} bytes are reused first, {} were freed", pruned.bytes);
    assert!(shrink(&desk.path(), u64::MAX, BOUNDS).unwrap().is_none(), "a file with a log is left as it is");
    desk.mailbox.clone().close().await;
    let before = std::fs::metadata(desk.path()).unwrap();
    assert!(shrink(&desk.path(), 1024, BOUNDS).unwrap().is_none(), "the disk has no room for a copy");
    // Left by a start that was cut off.
    let left = desk.path().with_file_name("mailbox.db.shrinking");
    std::fs::write(&left, "half").unwrap();
    let shrunk = shrink(&desk.path(), u64::MAX, BOUNDS).unwrap().expect("most of the file is free");
    let after = std::fs::metadata(desk.path()).unwrap();
    assert_eq!((shrunk.bytes_before, shrunk.bytes_after), (before.len(), after.len()));
    assert!(after.len() < before.len() / 2, "{shrunk:?}");
    assert_eq!(after.permissions().mode() & 0o777, 0o600);
    assert!(!left.exists());
    desk.crash();
    for n in 0..30 {
        assert_eq!(desk.status(ANN, &format!("id{n}")).await, Status::Done);
    }
    desk.send(ANN, "new", "@new").await;
    desk.mailbox.clone().close().await;
    assert!(shrink(&desk.path(), u64::MAX, BOUNDS).unwrap().is_none(), "once");
}

#[tokio::test]
async fn a_damaged_file_is_not_made_anew() {
    let desk = with_long_words(30).await;
    desk.mailbox.prune_outbox(EndedRows::Done, desk.now).await.unwrap();
    desk.mailbox.clone().close().await;
    let conn = Connection::open(desk.path()).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'inbox_given_up'";
    let root: usize = conn.query_row(root, [], |row| row.get(0)).unwrap();
    drop(conn);
    let mut bytes = std::fs::read(desk.path()).unwrap();
    bytes[(root - 1) * 4096..root * 4096].fill(0xA5);
    std::fs::write(desk.path(), &bytes).unwrap();
    let refused = shrink(&desk.path(), u64::MAX, BOUNDS);
    assert!(matches!(refused, Err(ShrinkError::Damaged { .. })), "{refused:?}");
    assert_eq!(std::fs::read(desk.path()).unwrap(), bytes);
}
