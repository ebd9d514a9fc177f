//! Callers that ask alike at the same time.

use std::task::{Context, Poll, Waker};

use sqlite::rusqlite::Connection;
use sqlite::{Bounds, Db, Gathering, StorageError};
use tempfile::tempdir;

use crate::setup::{Gate, NoteError, add, gate, open, options, words};

/// Polls once, which hands the question in.
fn hand_in<F: Future>(future: &mut std::pin::Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Adds words. It answers with how many it was given at once; it refuses `no` and breaks at `boom` before it writes,
/// and at `defect` after that.
fn adding() -> Gathering<&'static str, usize, NoteError> {
    Gathering::new("add", |conn: &Connection, given: &[&'static str]| {
        for word in given {
            match *word {
                "no" => return Err(NoteError::Refused),
                "boom" => panic!("on purpose"),
                _ => {}
            }
        }
        for word in given {
            add(word)(conn)?;
            if *word == "defect" {
                return Err(NoteError::Refused);
            }
        }
        Ok(vec![given.len(); given.len()])
    })
}

/// Asks for every word while the writer is busy, then lets it go; answers in the order of the words.
fn together(db: &Db, given: &[&'static str]) -> Vec<Result<usize, NoteError>> {
    let gathering = adding();
    let (Gate { begun, release }, hold) = gate();
    let mut first = Box::pin(db.write("hold", hold));
    assert!(hand_in(&mut first).is_pending());
    begun.recv().expect("the writer is at the gate");
    let mut waiting: Vec<_> =
        given.iter().map(|word| Box::pin(db.write_gathered(&gathering, *word))).collect();
    assert!(waiting.iter_mut().all(|write| hand_in(write).is_pending()));
    assert_eq!(db.stats().waiting, given.len() as u64);
    release.send(()).expect("the writer waits at the gate");
    db.write_blocking("last", |_| Ok::<_, NoteError>(())).expect("an empty job is kept");
    assert_eq!(db.stats().waiting, 0);
    let answers = waiting.iter_mut().map(hand_in);
    answers
        .map(|answer| if let Poll::Ready(answer) = answer { answer } else { panic!("no answer") })
        .collect()
}

#[test]
fn who_waits_together_is_answered_by_one_run() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let answers = together(&db, &["a", "b", "c"]);
    assert!(answers.iter().all(|answer| matches!(answer, Ok(3))), "{answers:?}");
    assert_eq!(words(&db), ["a", "b", "c"]);
    assert!(db.stats().batch_jobs_peak >= 4, "callers are counted: {:?}", db.stats());
}

#[test]
fn a_refusal_and_a_panic_are_their_callers_alone() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let answers = together(&db, &["a", "no", "b", "boom", "c"]);
    assert!(matches!(answers[..], [Ok(1), Err(_), Ok(1), Err(_), Ok(1)]), "{answers:?}");
    assert!(matches!(answers[1], Err(NoteError::Refused)), "{answers:?}");
    let panicked = |error: &NoteError| matches!(error, NoteError::Storage(StorageError::Panicked { .. }));
    assert!(answers[3].as_ref().is_err_and(panicked), "{answers:?}");
    assert_eq!(words(&db), ["a", "b", "c"]);
}

#[test]
fn a_defect_after_the_first_change_costs_one_transaction_and_is_then_its_callers_alone() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let lost = |answer: &Result<usize, NoteError>| {
        matches!(answer, Err(NoteError::Storage(StorageError::RolledBack { .. })))
    };
    let answers = together(&db, &["a", "defect", "b"]);
    assert!(answers.iter().all(lost), "{answers:?}");
    assert!(words(&db).is_empty());
    let answers = together(&db, &["a", "defect", "b"]);
    assert!(matches!(answers[..], [Ok(1), Err(NoteError::Refused), Ok(1)]), "{answers:?}");
    assert_eq!(words(&db), ["a", "b"]);
}

#[test]
fn a_group_is_as_long_as_a_batch_and_the_line_as_long_as_its_bound() {
    let folder = tempdir().unwrap();
    let bounds = Bounds { batch_jobs_max: 2, queue_max: 3, ..Bounds::default() };
    let db = Db::open(options(&folder).bounds(bounds)).unwrap();
    let gathering = adding();
    let (Gate { begun, release }, hold) = gate();
    let mut first = Box::pin(db.write("hold", hold));
    assert!(hand_in(&mut first).is_pending());
    begun.recv().unwrap();
    let mut waiting = ["a", "b", "c"].map(|word| Box::pin(db.write_gathered(&gathering, word)));
    assert!(waiting.iter_mut().all(|write| hand_in(write).is_pending()));
    let refused = hand_in(&mut Box::pin(db.write_gathered(&gathering, "d")));
    let full = |error: &NoteError| matches!(error, NoteError::Storage(StorageError::QueueFull { .. }));
    assert!(matches!(&refused, Poll::Ready(Err(error)) if full(error)), "{refused:?}");
    release.send(()).unwrap();
    db.write_blocking("last", |_| Ok::<_, NoteError>(())).unwrap();
    let answers = waiting.each_mut().map(hand_in);
    assert!(matches!(answers, [Poll::Ready(Ok(2)), Poll::Ready(Ok(2)), Poll::Ready(Ok(1))]), "{answers:?}");
}

#[test]
fn who_waits_at_the_close_is_told() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let gathering = adding();
    db.clone().close_blocking();
    let told = hand_in(&mut Box::pin(db.write_gathered(&gathering, "late")));
    let closed = |error: &NoteError| matches!(error, NoteError::Storage(StorageError::Closed { .. }));
    assert!(matches!(&told, Poll::Ready(Err(error)) if closed(error)), "{told:?}");
}

#[test]
fn readers_who_wait_together_share_a_transaction() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    db.write_blocking("add", add("one")).unwrap();
    let counting: Gathering<i64, i64, NoteError> = Gathering::new("count", |conn, more: &[i64]| {
        let found: i64 = conn.query_row("SELECT count(*) FROM note", [], |row| row.get(0))?;
        Ok(more.iter().map(|more| found + more).collect())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let counted = runtime.block_on(async { db.read_gathered(&counting, 41).await });
    assert_eq!(counted.unwrap(), 42);
    db.close_blocking();
    let db = Db::open(options(&folder).bounds(Bounds { readers_here: 1, ..Bounds::default() })).unwrap();
    assert!(matches!(hand_in(&mut Box::pin(db.read_gathered(&counting, 1))), Poll::Ready(Ok(2))), "at once");
}
