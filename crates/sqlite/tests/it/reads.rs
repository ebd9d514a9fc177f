//! The read pool and its bound.

use std::time::Duration;

use sqlite::{Bounds, Db, StorageError};
use tempfile::tempdir;

use crate::setup::{NoteError, add, open, options};

const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

fn endless(conn: &sqlite::rusqlite::Connection) -> Result<i64, NoteError> {
    Ok(conn.query_row(ENDLESS, [], |row| row.get(0))?)
}

#[test]
fn an_endless_read_is_interrupted_and_its_connection_serves_on() {
    let folder = tempdir().unwrap();
    let bounds = Bounds { readers: 1, read_max: Duration::from_millis(30), ..Bounds::default() };
    for open in [Db::open, Db::open_inline] {
        let db = open(options(&folder).bounds(bounds)).unwrap();
        let answer = db.read_blocking("endless", endless);
        assert!(
            matches!(answer, Err(NoteError::Storage(StorageError::ReadTooLong { name: "endless", .. }))),
            "{answer:?}"
        );
        let next = db.read_blocking("next", |conn| {
            Ok::<i64, NoteError>(conn.query_row("SELECT 1", [], |row| row.get(0))?)
        });
        assert_eq!(next.unwrap(), 1);
        db.close_blocking();
    }
}

#[test]
fn a_read_sees_one_moment() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    db.write_blocking("add", add("one")).unwrap();
    let writer = db.clone();
    let (before, after) = db
        .read_blocking("count twice", move |conn| {
            let count = || conn.query_row("SELECT count(*) FROM note", [], |row| row.get::<_, i64>(0));
            let before = count()?;
            // The writer's thread is another one, so that this wait is no deadlock.
            writer.write_blocking("add", add("two"))?;
            Ok::<_, NoteError>((before, count()?))
        })
        .unwrap();
    assert_eq!((before, after), (1, 1));
}

#[test]
fn a_read_cannot_write() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let answer = db.read_blocking("sneak", add("no"));
    assert!(matches!(answer, Err(NoteError::Storage(StorageError::Sql { .. }))), "{answer:?}");
}

#[test]
fn a_panicking_read_answers_and_the_pool_lives_on() {
    let folder = tempdir().unwrap();
    let db = Db::open(options(&folder).bounds(Bounds { readers: 1, ..Bounds::default() })).unwrap();
    let answer = db.read_blocking("boom", |_| -> Result<(), NoteError> { panic!("on purpose") });
    assert!(
        matches!(answer, Err(NoteError::Storage(StorageError::Panicked { name: "boom", .. }))),
        "{answer:?}"
    );
    assert!(db.read_blocking("next", |_| Ok::<(), NoteError>(())).is_ok());
}

/// On which thread a read ran.
fn thread(_: &sqlite::rusqlite::Connection) -> Result<std::thread::ThreadId, NoteError> {
    Ok(std::thread::current().id())
}

/// Asks for a small read, and says whether it ran on the thread that asked.
fn is_here(db: &Db) -> Result<bool, NoteError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    Ok(runtime.block_on(db.read_here("here", thread))? == std::thread::current().id())
}

#[test]
fn a_small_read_runs_where_it_is_asked_for_and_elsewhere_when_no_connection_is_free() {
    let folder = tempdir().unwrap();
    let db = Db::open(options(&folder).bounds(Bounds { readers_here: 1, ..Bounds::default() })).unwrap();
    assert!(is_here(&db).unwrap());
    let asking = db.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let inner = runtime.block_on(db.read_here("busy", move |_| {
        std::thread::spawn(move || is_here(&asking)).join().expect("a read that ends")
    }));
    assert!(!inner.unwrap(), "the one connection is in use");
    assert!(is_here(&db).unwrap(), "it is free again");
    assert_eq!((db.stats().reads, db.stats().reads_waiting), (4, 0));
    db.close_blocking();
    let closed = is_here(&db);
    assert!(matches!(closed, Err(NoteError::Storage(StorageError::Closed { .. }))), "{closed:?}");
}
