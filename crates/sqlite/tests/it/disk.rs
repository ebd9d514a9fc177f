//! A disk that runs full or fails: typed answers to the calls it touches, and nothing claimed that is not there.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sqlite::fault::Disk;
use sqlite::rusqlite::Connection;
use sqlite::{Bounds, Db, Migration, OpenError, Options, Schema, StorageError, Stores};
use tempfile::{TempDir, tempdir};
use testkit::disk::{FaultyDisk, Kind, Trouble, mount};

use crate::setup::{Gate, NoteError, SCHEMA, add, gate, open, options, words};

fn faulty(folder: &TempDir) -> (Arc<FaultyDisk>, Options) {
    let disk = Arc::new(FaultyDisk::default());
    let watcher: Arc<FaultyDisk> = Arc::clone(&disk);
    let options = options(folder).fault(Disk { vfs: Some(mount(watcher)), ..Disk::default() });
    (disk, options)
}

/// The log is copied so often that a few writes meet every part of the engine.
fn busy_log() -> Bounds {
    Bounds { checkpoint_step_pages: 4, wal_budget_pages: 8, readers: 1, ..Bounds::default() }
}

fn add_much(rows: usize) -> impl FnOnce(&Connection) -> Result<(), NoteError> + Send + 'static {
    move |conn| {
        for row in 0..rows {
            let word = format!("{row} {}", "long ".repeat(800));
            conn.prepare_cached("INSERT INTO note (word) VALUES (?1)")?.execute([word])?;
        }
        Ok(())
    }
}

/// Hands in a large job between two small ones, so that the three share a transaction.
fn neighbours_of_a_large_job(db: &Db) -> [Result<(), NoteError>; 3] {
    let (Gate { begun, release }, hold) = gate();
    let mut context = Context::from_waker(Waker::noop());
    let mut first = Box::pin(db.write("hold", hold));
    assert!(first.as_mut().poll(&mut context).is_pending());
    begun.recv().expect("the job begins");
    let mut before = Box::pin(async { db.write("before", add("before")).await.map(drop) });
    let mut large = Box::pin(db.write("large", add_much(400)));
    assert!(before.as_mut().poll(&mut context).is_pending());
    assert!(large.as_mut().poll(&mut context).is_pending());
    release.send(()).expect("the job waits");
    let after = db.write_blocking("after", add("after"));
    assert!(after.is_ok(), "a later transaction tries again: {after:?}");
    [first.as_mut().poll(&mut context), before.as_mut().poll(&mut context), large.as_mut().poll(&mut context)]
        .map(|answer| match answer {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("answered before the later transaction was"),
        })
}

fn is_full(answer: &Result<(), NoteError>) -> bool {
    matches!(answer, Err(NoteError::Storage(StorageError::Full { .. })))
}

#[test]
fn no_space_at_commit_is_told_and_survived() {
    let folder = tempdir().unwrap();
    let (disk, options) = faulty(&folder);
    let db = Db::open(options).unwrap();
    db.write_blocking("add", add("one")).unwrap();
    disk.fail(Kind::Write, Trouble::NoSpace, "");
    let refused = db.write_blocking("add", add("two"));
    assert!(matches!(refused, Err(NoteError::Storage(StorageError::Full { .. }))), "{refused:?}");
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("notes.db") && text.contains("free some"), "{text}");
    assert_eq!(words(&db), ["one"], "reads stay up");
    disk.heal();
    db.write_blocking("add", add("two")).unwrap();
    db.close_blocking();
    assert_eq!(words(&open(&folder)), ["one", "two"]);
}

#[test]
fn no_space_inside_one_job_is_everybodys_error() {
    let folder = tempdir().unwrap();
    // A cache of ten pages makes SQLite write before the commit.
    let tight = Bounds { writer_cache_kib: 40, ..Bounds::default() };
    let (disk, options) = faulty(&folder);
    let db = Db::open(options.bounds(tight)).unwrap();
    disk.fail_once(Kind::Write, Trouble::NoSpace, 3);
    let answers = neighbours_of_a_large_job(&db);
    assert!(answers.iter().all(is_full), "{answers:?}");
    assert_eq!(words(&db), ["after"], "nothing of the lost transaction is there");
    assert_eq!(db.stats().lost, 1);
}

#[test]
fn a_file_at_its_largest_size_refuses_and_lives_on() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    db.write_blocking("limit", |conn| {
        Ok::<i64, NoteError>(conn.query_row("PRAGMA max_page_count = 40", [], |row| row.get(0))?)
    })
    .unwrap();
    let refused = db.write_blocking("large", add_much(200));
    assert!(is_full(&refused), "{refused:?}");
    db.write_blocking("add", add("small")).unwrap();
    assert_eq!(words(&db), ["small"]);
}

#[test]
fn after_a_failed_sync_nothing_is_written_and_no_sync_is_tried_again() {
    for start in [Db::open, Db::open_inline] {
        let folder = tempdir().unwrap();
        let (disk, options) = faulty(&folder);
        let db = start(options).unwrap();
        db.write_blocking("add", add("one")).unwrap();
        disk.fail_once(Kind::Sync, Trouble::Error, 0);
        let unknown = db.write_blocking("add", add("two"));
        assert!(
            matches!(unknown, Err(NoteError::Storage(StorageError::OutcomeUnknown { .. }))),
            "{unknown:?}"
        );
        let text = unknown.unwrap_err().to_string();
        assert!(text.contains("notes.db") && text.contains("unknown whether this is stored"), "{text}");
        let (writes, syncs) = (disk.asked(Kind::Write), disk.asked(Kind::Sync));
        let later = db.write_blocking("add", add("three"));
        assert!(matches!(later, Err(NoteError::Storage(StorageError::Stopped { .. }))), "{later:?}");
        assert_eq!(words(&db), ["one"], "reads stay up");
        db.close_blocking();
        assert_eq!((disk.asked(Kind::Write), disk.asked(Kind::Sync)), (writes, syncs));
        let found = words(&open(&folder));
        assert!(
            found == ["one"] || found == ["one", "two"],
            "the second is unknown, the third is not there: {found:?}"
        );
    }
}

#[test]
fn what_waited_behind_a_failed_sync_is_refused_and_not_written() {
    let folder = tempdir().unwrap();
    let (disk, options) = faulty(&folder);
    let db = Db::open(options.bounds(Bounds { batch_jobs_max: 1, ..Bounds::default() })).unwrap();
    let (Gate { begun, release }, hold) = gate();
    let mut context = Context::from_waker(Waker::noop());
    let mut first = Box::pin(db.write("hold", hold));
    assert!(first.as_mut().poll(&mut context).is_pending());
    begun.recv().unwrap();
    let mut writes = ["unknown", "behind"].map(|word| Box::pin(db.write("add", add(word))));
    assert!(writes.iter_mut().all(|write| write.as_mut().poll(&mut context).is_pending()));
    disk.fail_once(Kind::Sync, Trouble::Error, 0);
    release.send(()).unwrap();
    let last = db.write_blocking("add", add("last"));
    assert!(matches!(last, Err(NoteError::Storage(StorageError::Stopped { .. }))), "{last:?}");
    let [unknown, behind] = writes.each_mut().map(|write| write.as_mut().poll(&mut context));
    let is = |told: &Poll<Result<i64, NoteError>>, denied: bool| match told {
        Poll::Ready(Err(NoteError::Storage(error))) => error.denies_storage() == denied,
        Poll::Ready(_) | Poll::Pending => false,
    };
    assert!(is(&unknown, false), "its own commit failed: {unknown:?}");
    assert!(is(&behind, true), "it was not begun: {behind:?}");
    drop((first, writes));
    db.close_blocking();
    let found = words(&open(&folder));
    assert!(found.is_empty() || found == ["unknown"], "{found:?}");
}

#[test]
fn an_error_while_writing_a_commit_stops_writing() {
    let folder = tempdir().unwrap();
    let (disk, options) = faulty(&folder);
    let db = Db::open(options).unwrap();
    disk.fail_once(Kind::Write, Trouble::Error, 0);
    let unknown = db.write_blocking("add", add("one"));
    assert!(matches!(unknown, Err(NoteError::Storage(StorageError::OutcomeUnknown { .. }))), "{unknown:?}");
}

#[test]
fn an_error_while_copying_the_log_stops_writing_and_loses_nothing() {
    let folder = tempdir().unwrap();
    let (disk, options) = faulty(&folder);
    let db = Db::open_inline(options.bounds(busy_log())).unwrap();
    disk.fail(Kind::Sync, Trouble::Error, "notes.db");
    let mut answered = Vec::new();
    let stopped =
        (0..100).map(|n| format!("word {n}")).find_map(|word| match db.write_blocking("add", add(&word)) {
            Ok(_) => {
                answered.push(word);
                None
            }
            Err(error) => Some(error),
        });
    assert!(matches!(stopped, Some(NoteError::Storage(StorageError::Stopped { .. }))), "{stopped:?}");
    db.close_blocking();
    assert_eq!(words(&open(&folder)), answered);
}

#[test]
fn an_error_while_reading_is_told_to_that_read() {
    let folder = tempdir().unwrap();
    let (disk, options) = faulty(&folder);
    let db = Db::open(options).unwrap();
    db.write_blocking("add", add("one")).unwrap();
    disk.fail(Kind::Read, Trouble::Error, "");
    let answer = db.read_blocking("count", |conn| {
        Ok::<i64, NoteError>(conn.query_row("SELECT count(*) FROM note", [], |row| row.get(0))?)
    });
    assert!(matches!(answer, Err(NoteError::Storage(StorageError::Io { .. }))), "{answer:?}");
    disk.heal();
    assert_eq!(words(&db), ["one"]);
}

#[test]
fn a_full_disk_at_the_first_start_is_named_and_a_later_start_succeeds() {
    let folder = tempdir().unwrap();
    let (disk, options) = faulty(&folder);
    disk.fail(Kind::Write, Trouble::NoSpace, "");
    let refused = Db::open(options.clone()).err();
    assert!(matches!(refused, Some(OpenError::Full { .. })), "{refused:?}");
    let text = refused.unwrap().to_string();
    assert!(text.contains("notes.db") && text.contains("free some"), "{text}");
    disk.heal();
    let db = Db::open(options).unwrap();
    db.write_blocking("add", add("one")).unwrap();
    assert_eq!(words(&db), ["one"]);
}

#[test]
fn a_full_disk_during_a_migration_leaves_the_older_file_as_it_was() {
    const TWO: Schema = Schema {
        migrations: &[
            SCHEMA.migrations[0],
            Migration { number: 2, name: "more", sql: "CREATE TABLE more (x);" },
        ],
        sum: "",
    };
    let folder = tempdir().unwrap();
    let db = open(&folder);
    db.write_blocking("add", add("old")).unwrap();
    db.close_blocking();
    let (disk, options) = faulty(&folder);
    disk.fail(Kind::Write, Trouble::NoSpace, "");
    let refused = Db::open(Options::new(&options.path, TWO).fault(options.fault.clone())).err();
    assert!(matches!(refused, Some(OpenError::Full { .. })), "{refused:?}");
    let db = open(&folder);
    assert_eq!(words(&db), ["old"]);
}

/// One run of a small life on a disk that fails once, after `spare` acts: open, write, read, close.
/// Answers the words that were acknowledged, or nothing when the fault was never met.
fn life(folder: &TempDir, kind: Kind, trouble: Trouble, spare: u64) -> Option<Vec<String>> {
    let (disk, options) = faulty(folder);
    disk.fail_once(kind, trouble, spare);
    let mut answered = Vec::new();
    if let Ok(db) = Db::open(options.bounds(busy_log())) {
        for n in 0..24 {
            let word = format!("word {n}");
            if db.write_blocking("add", add(&word)).is_ok() {
                answered.push(word);
            }
            // What it says does not matter here: only that it ends.
            let _ = db.read_blocking("count", |conn| {
                Ok::<i64, NoteError>(conn.query_row("SELECT count(*) FROM note", [], |row| row.get(0))?)
            });
        }
        db.close_blocking();
    }
    (disk.hits() > 0).then_some(answered)
}

#[test]
fn whichever_act_fails_every_acknowledged_word_is_there_afterwards() {
    for (kind, trouble) in [(Kind::Any, Trouble::Error), (Kind::Write, Trouble::NoSpace)] {
        let mut met = 0;
        loop {
            let folder = tempdir().unwrap();
            let Some(answered) = life(&folder, kind, trouble, met) else { break };
            let db = open(&folder);
            let found = words(&db);
            let missing: Vec<_> = answered.iter().filter(|word| !found.contains(word)).collect();
            assert!(missing.is_empty(), "{trouble:?} at act {met}: {missing:?} of {answered:?}");
            let sound = db.read_blocking("check", |conn| {
                Ok::<String, NoteError>(conn.query_row("PRAGMA integrity_check", [], |row| row.get(0))?)
            });
            assert_eq!(sound.unwrap(), "ok", "{trouble:?} at act {met}");
            met += 1;
        }
        assert!(met > 50, "the life meets many acts: {met}");
    }
}

#[test]
fn whichever_act_fails_while_opening_the_door_says_so() {
    for kind in [Kind::Write, Kind::Sync] {
        let mut met = 0;
        loop {
            let folder = tempdir().unwrap();
            let (disk, options) = faulty(&folder);
            disk.fail_once(kind, Trouble::Error, met);
            let opened = Db::open(options.bounds(busy_log()));
            if disk.hits() == 0 {
                break;
            }
            // The switch to the log commits when its statement ends, after the row that says "wal".
            let refused = opened.err();
            assert!(matches!(refused, Some(OpenError::Io { .. })), "{kind:?} number {met}: {refused:?}");
            open(&folder);
            met += 1;
        }
        assert!(met > 4, "opening meets many: {met}");
    }
}

#[test]
fn a_store_that_stopped_is_listed_by_its_name_whether_it_was_entered_before_or_after() {
    for enters_first in [true, false] {
        let folder = tempdir().unwrap();
        let (disk, options) = faulty(&folder);
        let db = Db::open(options).unwrap();
        let stores = Stores::default();
        if enters_first {
            stores.enter("notes", &db);
        }
        assert_eq!(stores.stopped(), []);
        disk.fail_once(Kind::Sync, Trouble::Error, 0);
        db.write_blocking("add", add("one")).unwrap_err();
        db.write_blocking("add", add("two")).unwrap_err();
        if !enters_first {
            stores.enter("notes", &db);
        }
        let stopped = stores.stopped();
        assert_eq!(stopped.len(), 1, "{stopped:?}");
        assert_eq!((stopped[0].name.as_str(), stopped[0].path.as_path()), ("notes", db.path()));
        assert!(stopped[0].cause.contains("disk"), "{stopped:?}");
    }
}
