//! Jobs, batches, refusals, closing.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sqlite::{Bounds, Db, StorageError};
use tempfile::tempdir;

use crate::setup::{Gate, NoteError, add, gate, open, options, words};

/// Polls once, which hands the job in.
fn hand_in<F: Future>(future: &mut std::pin::Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_write_is_there_after_a_reopen() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    assert_eq!(db.write_blocking("add", add("one")).unwrap(), 1);
    db.close_blocking();
    assert_eq!(words(&open(&folder)), ["one"]);
}

#[test]
fn what_waits_while_the_writer_is_busy_becomes_one_transaction() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let (Gate { begun, release }, hold) = gate();
    let mut first = Box::pin(db.write("hold", hold));
    assert!(hand_in(&mut first).is_pending());
    begun.recv().unwrap();
    let mut rest: Vec<_> = (0..20).map(|n| Box::pin(db.write("add", add(&format!("word {n}"))))).collect();
    assert!(rest.iter_mut().all(|write| hand_in(write).is_pending()));
    release.send(()).unwrap();
    db.write_blocking("add", add("last")).unwrap();
    let stats = db.stats();
    assert_eq!(stats.jobs, 22);
    assert!(stats.commits <= 2, "the last one may come a moment late: {stats:?}");
    assert!(stats.batch_jobs_peak >= 21);
    assert_eq!(words(&db).len(), 21);
}

#[test]
fn a_refused_job_leaves_its_neighbours_untouched() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let (Gate { begun, release }, hold) = gate();
    let mut first = Box::pin(db.write("hold", hold));
    assert!(hand_in(&mut first).is_pending());
    begun.recv().unwrap();
    let mut before = Box::pin(db.write("add", add("before")));
    let mut refused = Box::pin(db.write("refuse", |conn| {
        add("undone")(conn)?;
        Err::<(), _>(NoteError::Refused)
    }));
    let mut after = Box::pin(db.write("add", add("after")));
    assert!(hand_in(&mut before).is_pending());
    assert!(hand_in(&mut refused).is_pending());
    assert!(hand_in(&mut after).is_pending());
    release.send(()).unwrap();
    db.write_blocking("add", add("last")).unwrap();
    assert!(matches!(hand_in(&mut before), Poll::Ready(Ok(_))));
    assert!(matches!(hand_in(&mut refused), Poll::Ready(Err(NoteError::Refused))));
    assert!(matches!(hand_in(&mut after), Poll::Ready(Ok(_))));
    assert_eq!(words(&db), ["before", "after", "last"]);
    assert!(db.stats().batch_jobs_peak >= 4, "they shared a transaction: {:?}", db.stats());
}

#[test]
fn a_panicking_job_is_undone_alone_and_the_writer_lives_on() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let answer = db.write_blocking("boom", |conn| {
        add("undone")(conn)?;
        if conn.last_insert_rowid() > 0 {
            panic!("on purpose");
        }
        Ok::<(), NoteError>(())
    });
    assert!(
        matches!(answer, Err(NoteError::Storage(StorageError::Panicked { name: "boom", .. }))),
        "{answer:?}"
    );
    db.write_blocking("add", add("next")).unwrap();
    assert_eq!(words(&db), ["next"]);
}

#[test]
fn a_checked_job_that_refuses_before_its_first_change_leaves_its_neighbours_untouched() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let (Gate { begun, release }, hold) = gate();
    let mut first = Box::pin(db.write("hold", hold));
    assert!(hand_in(&mut first).is_pending());
    begun.recv().unwrap();
    let mut before = Box::pin(db.write_checked("add", add("before")));
    let mut refused = Box::pin(db.write_checked("refuse", |_| Err::<(), _>(NoteError::Refused)));
    assert!(hand_in(&mut before).is_pending());
    assert!(hand_in(&mut refused).is_pending());
    release.send(()).unwrap();
    db.write_blocking("add", add("last")).unwrap();
    assert!(matches!(hand_in(&mut before), Poll::Ready(Ok(_))));
    assert!(matches!(hand_in(&mut refused), Poll::Ready(Err(NoteError::Refused))));
    assert_eq!(words(&db), ["before", "last"]);
    assert_eq!(db.stats().lost, 0);
}

#[test]
fn a_checked_job_that_goes_wrong_after_a_change_costs_its_transaction_once() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let wrong = |conn: &sqlite::rusqlite::Connection| {
        add("undone")(conn)?;
        Err::<(), _>(NoteError::Refused)
    };
    let together = |next: &str| {
        let (Gate { begun, release }, hold) = gate();
        let mut first = Box::pin(db.write("hold", hold));
        assert!(hand_in(&mut first).is_pending());
        begun.recv().unwrap();
        let mut neighbour = Box::pin(db.write_checked("add", add("neighbour")));
        let mut defect = Box::pin(db.write_checked("defect", wrong));
        assert!(hand_in(&mut neighbour).is_pending());
        assert!(hand_in(&mut defect).is_pending());
        release.send(()).unwrap();
        db.write_blocking("add", add(next)).unwrap();
        let (Poll::Ready(neighbour), Poll::Ready(defect)) = (hand_in(&mut neighbour), hand_in(&mut defect))
        else {
            panic!("both were answered before the next one")
        };
        (neighbour, defect)
    };
    let rolled_back = |error: &NoteError| {
        matches!(error, NoteError::Storage(StorageError::RolledBack { name: "defect", .. }))
    };
    let (neighbour, defect) = together("first");
    assert!(
        neighbour.is_err_and(|error| rolled_back(&error)) && defect.is_err_and(|error| rolled_back(&error))
    );
    assert_eq!((words(&db), db.stats().lost), (vec!["first".to_owned()], 1));
    // It comes back, and spoils nobody.
    let (neighbour, defect) = together("second");
    assert!(neighbour.is_ok() && matches!(defect, Err(NoteError::Refused)));
    assert_eq!(
        (words(&db), db.stats().lost),
        (["first", "neighbour", "second"].map(str::to_owned).to_vec(), 1)
    );
}

#[test]
fn a_job_that_ends_the_transaction_itself_spoils_the_batch_and_nobody_is_told_ok() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let answer = db.write_blocking("rogue", |conn| {
        add("gone")(conn)?;
        conn.execute_batch("ROLLBACK")?;
        Ok::<(), NoteError>(())
    });
    assert!(
        matches!(answer, Err(NoteError::Storage(StorageError::RolledBack { name: "rogue", .. }))),
        "{answer:?}"
    );
    assert_eq!(db.stats().lost, 1);
    db.write_blocking("add", add("next")).unwrap();
    assert_eq!(words(&db), ["next"]);
}

#[test]
fn whoever_waits_while_another_process_holds_the_file_is_told_together() {
    let folder = tempdir().unwrap();
    let bounds = Bounds { busy_wait: std::time::Duration::from_millis(400), ..Bounds::default() };
    let db = Db::open(options(&folder).bounds(bounds)).unwrap();
    let (Gate { begun, release }, hold) = gate();
    let mut first = Box::pin(db.write("hold", hold));
    assert!(hand_in(&mut first).is_pending());
    begun.recv().unwrap();
    // The stranger waits for our transaction, then holds the file's lock until it is let go.
    let (locked, wait) = std::sync::mpsc::sync_channel(1);
    let (unlock, unlocked) = std::sync::mpsc::sync_channel::<()>(1);
    let path = db.path().to_owned();
    let stranger = std::thread::spawn(move || {
        let conn = sqlite::rusqlite::Connection::open(path).unwrap();
        conn.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        locked.send(()).unwrap();
        unlocked.recv().unwrap();
    });
    release.send(()).unwrap();
    wait.recv().unwrap();
    let mut waiting = ["a", "b", "c"].map(|word| Box::pin(db.write("add", add(word))));
    assert!(waiting.iter_mut().all(|write| hand_in(write).is_pending()));
    let last = db.write_blocking("add", add("d"));
    assert!(matches!(last, Err(NoteError::Storage(StorageError::Busy { .. }))), "{last:?}");
    for write in &mut waiting {
        let told = hand_in(write);
        assert!(matches!(told, Poll::Ready(Err(NoteError::Storage(StorageError::Busy { .. })))), "{told:?}");
    }
    assert!(db.stats().lost <= 2, "not one wait after the other: {:?}", db.stats());
    unlock.send(()).unwrap();
    stranger.join().unwrap();
    db.write_blocking("add", add("later")).unwrap();
    assert_eq!(words(&db), ["later"]);
}

#[test]
fn a_full_line_refuses_at_once() {
    let folder = tempdir().unwrap();
    let db = Db::open(options(&folder).bounds(Bounds { queue_max: 2, ..Bounds::default() })).unwrap();
    let (Gate { begun, release }, hold) = gate();
    let mut first = Box::pin(db.write("hold", hold));
    assert!(hand_in(&mut first).is_pending());
    begun.recv().unwrap();
    let mut waiting = ["a", "b"].map(|word| Box::pin(db.write("add", add(word))));
    assert!(waiting.iter_mut().all(|write| hand_in(write).is_pending()));
    assert_eq!(db.stats().waiting, 2);
    let refused = hand_in(&mut Box::pin(db.write("add", add("c"))));
    assert!(
        matches!(
            refused,
            Poll::Ready(Err(NoteError::Storage(StorageError::QueueFull { waiting_max: 2, .. })))
        ),
        "{refused:?}"
    );
    release.send(()).unwrap();
    db.close_blocking();
    assert_eq!(words(&open(&folder)), ["a", "b"], "what was accepted into the line is drained by close");
}

#[test]
fn after_close_everything_is_refused_and_the_log_is_gone() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    db.write_blocking("add", add("one")).unwrap();
    db.close_blocking();
    db.close_blocking();
    let write = db.write_blocking("add", add("two"));
    assert!(matches!(write, Err(NoteError::Storage(StorageError::Closed { .. }))), "{write:?}");
    let read = db.read_blocking("read", |_| Ok::<(), NoteError>(()));
    assert!(matches!(read, Err(NoteError::Storage(StorageError::Closed { .. }))), "{read:?}");
    assert!(!folder.path().join("notes.db-wal").exists());
}

#[test]
fn dropping_the_last_handle_closes_the_file() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let clone = db.clone();
    drop(db);
    clone.write_blocking("add", add("one")).unwrap();
    drop(clone);
    assert_eq!(words(&open(&folder)), ["one"]);
}

#[tokio::test]
async fn many_tasks_share_commits_and_each_gets_its_own_answer() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..64 {
        let db = db.clone();
        tasks.spawn(async move {
            for n in 0..20 {
                let word = format!("{task}/{n}");
                let id = db.write("add", add(&word)).await.unwrap();
                let read = db.read("word", move |conn| {
                    Ok::<String, NoteError>(conn.query_row(
                        "SELECT word FROM note WHERE id = ?1",
                        [id],
                        |row| row.get(0),
                    )?)
                });
                assert_eq!(read.await.unwrap(), word, "an answered write is visible to the next read");
            }
        });
    }
    tasks.join_all().await;
    let stats = db.stats();
    assert_eq!(stats.jobs, 64 * 20);
    assert!(stats.commits < stats.jobs, "{stats:?}");
    assert_eq!(stats.batches.iter().sum::<u64>(), stats.commits);
    db.close().await;
}

#[test]
fn inline_mode_keeps_the_same_promises_without_a_thread() {
    let folder = tempdir().unwrap();
    let db = Db::open_inline(options(&folder)).unwrap();
    let mut write = Box::pin(db.write("add", add("one")));
    assert!(matches!(hand_in(&mut write), Poll::Ready(Ok(1))), "the first poll commits");
    let refused = db.write_blocking("refuse", |conn| {
        add("undone")(conn)?;
        Err::<(), _>(NoteError::Refused)
    });
    assert!(matches!(refused, Err(NoteError::Refused)));
    assert_eq!(words(&db), ["one"]);
    drop(write);
    db.close_blocking();
    let late = db.write_blocking("add", add("late"));
    assert!(matches!(late, Err(NoteError::Storage(StorageError::Closed { .. }))), "{late:?}");
    assert_eq!(words(&open(&folder)), ["one"]);
}

#[test]
fn a_job_may_own_the_last_handle() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let (own, (ended, wait)) = (db.clone(), std::sync::mpsc::sync_channel::<()>(1));
    let (Gate { begun, release }, hold) = gate();
    let mut write = Box::pin(async move {
        let job = move |conn: &sqlite::rusqlite::Connection| {
            hold(conn)?;
            drop(own);
            drop(ended);
            Ok::<(), NoteError>(())
        };
        db.write("own", job).await
    });
    assert!(hand_in(&mut write).is_pending());
    begun.recv().unwrap();
    drop(write);
    release.send(()).unwrap();
    assert!(wait.recv().is_err(), "the job ran to its end on a thread that could not wait for itself");
}

#[test]
fn a_statement_is_planned_once_however_often_it_is_bound() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let replanned = |conn: &sqlite::rusqlite::Connection| -> Result<i32, StorageError> {
        let mut page = conn.prepare("SELECT word FROM note WHERE id > ?1 ORDER BY id LIMIT ?2")?;
        for round in 0..10 {
            page.query_map([round, round + 1], |row| row.get::<_, String>(0))?
                .collect::<Result<Vec<_>, _>>()?;
        }
        Ok(page.get_status(sqlite::rusqlite::StatementStatus::RePrepare))
    };
    assert_eq!(db.write_blocking("plan", replanned).unwrap(), 0);
    assert_eq!(db.read_blocking("plan", replanned).unwrap(), 0);
}

/// Whether a write ran on the thread that asked for it.
fn is_here(db: &Db) -> bool {
    let thread = |_: &sqlite::rusqlite::Connection| Ok::<_, NoteError>(std::thread::current().id());
    db.write_blocking("thread", thread).expect("a look at a thread") == std::thread::current().id()
}

#[test]
fn a_caller_that_has_been_alone_commits_on_its_own_thread_while_commits_are_short() {
    for (lone_commit_max, expected) in [(Duration::from_secs(600), true), (Duration::ZERO, false)] {
        let folder = tempdir().unwrap();
        let db = Db::open(options(&folder).bounds(Bounds { lone_commit_max, ..Bounds::default() })).unwrap();
        assert!(!is_here(&db), "nobody is known to be alone yet");
        for word in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
            db.write_blocking("add", add(word)).unwrap();
        }
        // The writer's thread may still be busy with what it answered.
        assert_eq!((0..1_000).any(|_| is_here(&db)), expected);
        assert_eq!(words(&db).len(), 9);
        db.close_blocking();
        let closed = db.write_blocking("add", add("late"));
        assert!(matches!(closed, Err(NoteError::Storage(StorageError::Closed { .. }))), "{closed:?}");
    }
}
