//! One failing act inside a transaction: each refused request is absent after a kill, each acknowledged one is there.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sqlite::fault::Disk;
use sqlite::rusqlite::Connection;
use sqlite::{Bounds, Db, Gathering, InsertMany, Options, StorageError};
use tempfile::{TempDir, tempdir};
use testkit::disk::{Event, FaultyDisk, Kind, Recorder, Trouble, mount};

use crate::setup::{Gate, NoteError, add, gate, open, options, words};

/// A writer's cache of ten pages: a larger transaction is written to the log before it commits.
const SPILLING_CACHE_KIB: u32 = 40;

/// Positions of the failing act that each test tries.
const ACTS_TRIED: u64 = 80;

fn faulty(folder: &TempDir) -> (Arc<FaultyDisk>, Options) {
    let disk = Arc::new(FaultyDisk::default());
    let watcher: Arc<FaultyDisk> = Arc::clone(&disk);
    (disk, options(folder).fault(Disk { vfs: Some(mount(watcher)), ..Disk::default() }))
}

/// A word that begins with `name` and has about `bytes` bytes.
fn long(name: &str, bytes: usize) -> String {
    format!("{name} {}", "x".repeat(bytes))
}

fn add_rows(rows: Vec<String>) -> impl FnOnce(&Connection) -> Result<(), NoteError> + Send + 'static {
    move |conn| {
        let insert = InsertMany::new("INSERT INTO note (word) VALUES (?)");
        Ok(insert.insert(conn, &rows, |row| [row.as_str().into()])?)
    }
}

/// Whether the answer says that nothing of the request was stored.
fn denies_storage<T>(answer: &Result<T, NoteError>) -> bool {
    match answer {
        Ok(_) => false,
        Err(NoteError::Refused) => true,
        Err(NoteError::Storage(error)) => error.denies_storage(),
    }
}

/// Hands in `jobs` while the writer is busy, so that they share a transaction; answers in their order.
fn in_one_transaction<F>(db: &Db, jobs: Vec<F>) -> Vec<Result<(), NoteError>>
where
    F: Future<Output = Result<(), NoteError>>,
{
    let mut context = Context::from_waker(Waker::noop());
    let (Gate { begun, release }, hold) = gate();
    let mut first = Box::pin(db.write("hold", hold));
    assert!(first.as_mut().poll(&mut context).is_pending());
    begun.recv().expect("the writer runs the first job");
    let mut waiting: Vec<_> = jobs.into_iter().map(Box::pin).collect();
    assert!(waiting.iter_mut().all(|job| job.as_mut().poll(&mut context).is_pending()));
    release.send(()).expect("the first job waits");
    // Answered after the transaction of the others, whatever its own end is.
    let _ = db.write_blocking("last", |_| Ok::<_, NoteError>(()));
    let answers = waiting.iter_mut().map(|job| job.as_mut().poll(&mut context));
    answers
        .map(|answer| match answer {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("a job of an ended transaction has no answer"),
        })
        .collect()
}

/// Compares what was answered with what a new process finds after a kill.
fn judge(db: &Db, folder: &TempDir, asked: &[(String, Result<(), NoteError>)], at: &str) {
    db.abandon();
    let again = open(folder);
    let found = words(&again);
    for (word, answer) in asked {
        let name = word.split(' ').next().expect("a word has a name");
        let is_there = found.contains(word);
        assert!(is_there || answer.is_err(), "{at}: `{name}` was acknowledged and is gone");
        assert!(
            !(is_there && denies_storage(answer)),
            "{at}: `{name}` was refused ({answer:?}) and is stored"
        );
    }
    let sound = again.read_blocking("check", |conn| {
        Ok::<String, NoteError>(conn.query_row("PRAGMA integrity_check", [], |row| row.get(0))?)
    });
    assert_eq!(sound.expect("the file can be read"), "ok", "{at}");
}

#[test]
fn no_space_once_in_a_transaction_larger_than_the_cache_loses_no_later_commit() {
    for act in 0..ACTS_TRIED {
        let folder = tempdir().unwrap();
        let (disk, options) = faulty(&folder);
        let bounds = Bounds { writer_cache_kib: SPILLING_CACHE_KIB, ..Bounds::default() };
        let db = Db::open(options.bounds(bounds)).unwrap();
        let rows: Vec<Vec<String>> = ["a", "b", "c", "d"]
            .iter()
            .map(|job| (0..4).map(|row| long(&format!("{job}{row}"), 60_000)).collect())
            .collect();
        disk.fail_once(Kind::Write, Trouble::NoSpace, act);
        let jobs = rows.iter().map(|rows| db.write("rows", add_rows(rows.clone()))).collect();
        let answers = in_one_transaction(&db, jobs);
        let hits = disk.hits();
        let mut asked = Vec::new();
        for (rows, answer) in rows.iter().zip(answers) {
            asked.extend(rows.iter().map(|row| (row.clone(), answer_of(&answer))));
        }
        for n in 0..3 {
            let word = format!("later{n}");
            let answer = db.write_blocking("later", add(&word)).map(drop);
            asked.push((word, answer));
        }
        judge(&db, &folder, &asked, &format!("no space at write {act}"));
        if hits == 0 {
            return;
        }
    }
}

/// The same verdict for each row of a job.
fn answer_of(answer: &Result<(), NoteError>) -> Result<(), NoteError> {
    match answer {
        Ok(()) => Ok(()),
        Err(NoteError::Refused) => Err(NoteError::Refused),
        Err(NoteError::Storage(error)) => Err(NoteError::Storage(error.clone())),
    }
}

#[test]
fn a_commit_refused_for_lack_of_space_is_absent_after_a_kill() {
    for act in 0..ACTS_TRIED {
        let folder = tempdir().unwrap();
        let (disk, options) = faulty(&folder);
        let db = Db::open(options).unwrap();
        db.write_blocking("add", add("first")).unwrap();
        disk.fail_once(Kind::Write, Trouble::NoSpace, act);
        let word = long("second", 115_000);
        let answer = db.write_blocking("add", add(&word)).map(drop);
        let hits = disk.hits();
        judge(&db, &folder, &[("first".into(), Ok(())), (word, answer)], &format!("no space at write {act}"));
        if hits == 0 {
            return;
        }
    }
}

#[test]
fn a_group_whose_transaction_sqlite_gave_up_is_refused_whole_and_absent_after_a_kill() {
    let mut refused = 0;
    for act in 0..ACTS_TRIED {
        let folder = tempdir().unwrap();
        let filled = open(&folder);
        filled
            .write_blocking("fill", add_rows((0..40).map(|n| long(&format!("{n}"), 3_000)).collect()))
            .unwrap();
        filled.close_blocking();
        let (disk, options) = faulty(&folder);
        let bounds = Bounds { writer_cache_kib: SPILLING_CACHE_KIB, ..Bounds::default() };
        let db = Db::open(options.bounds(bounds)).unwrap();
        let gathering = Gathering::new("rows", |conn: &Connection, rows: &[String]| {
            let insert = InsertMany::new("INSERT INTO note (word) VALUES (?)");
            insert.insert(conn, rows, |row| [row.as_str().into()])?;
            Ok::<Vec<()>, NoteError>(vec![(); rows.len()])
        });
        disk.fail_once(Kind::Read, Trouble::Error, act);
        let rows: Vec<String> = ["a", "b", "c", "d"].map(|name| long(name, 20_000)).into();
        let jobs = rows.iter().map(|row| db.write_gathered(&gathering, row.clone())).collect();
        let answers = in_one_transaction(&db, jobs);
        let hits = disk.hits();
        refused += answers.iter().filter(|answer| answer.is_err()).count();
        let asked: Vec<_> = rows.into_iter().zip(answers).collect();
        judge(&db, &folder, &asked, &format!("read error at act {act}"));
        if hits == 0 {
            break;
        }
    }
    assert!(refused > 0, "no read error reached a job");
}

#[test]
fn a_job_that_goes_on_after_sqlite_gave_its_transaction_up_stores_nothing() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let answer = db.write_blocking("careless", |conn| {
        add("before")(conn)?;
        conn.execute_batch("ROLLBACK")?;
        add("after")(conn).map(drop).or(Ok::<(), NoteError>(()))
    });
    assert!(denies_storage(&answer), "{answer:?}");
    db.write_blocking("add", add("next")).expect("the writer goes on");
    db.abandon();
    assert_eq!(words(&open(&folder)), ["next"]);
}

#[test]
fn a_file_left_by_a_kill_is_synced_before_it_is_open() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    db.write_blocking("add", add("unsynced")).unwrap();
    db.abandon();
    let recorder = Arc::new(Recorder::default());
    let watcher: Arc<Recorder> = Arc::clone(&recorder);
    let again =
        Db::open(options(&folder).fault(Disk { vfs: Some(mount(watcher)), ..Disk::default() })).unwrap();
    let events = recorder.take();
    for ending in ["-wal", ".db"] {
        let synced = |event: &Event| matches!(event, Event::Synced { file } if file.ends_with(ending));
        assert!(events.iter().any(synced), "no sync of the file *{ending} in {} acts", events.len());
    }
    assert_eq!(words(&again), ["unsynced"]);
}

#[test]
fn a_failing_sync_of_a_file_left_by_a_kill_refuses_to_open() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    db.write_blocking("add", add("unsynced")).unwrap();
    db.abandon();
    let (disk, faulty_options) = faulty(&folder);
    disk.fail(Kind::Sync, Trouble::Error, "");
    let refused = Db::open(faulty_options).err();
    assert!(refused.is_some(), "a file whose sync fails was opened");
    assert_eq!(words(&open(&folder)), ["unsynced"]);
}

#[test]
fn an_error_of_the_commit_itself_is_told_as_an_unknown_outcome() {
    let folder = tempdir().unwrap();
    let (disk, options) = faulty(&folder);
    let db = Db::open(options).unwrap();
    db.write_blocking("add", add("one")).unwrap();
    disk.fail_once(Kind::Sync, Trouble::Error, 0);
    let unknown = db.write_blocking("add", add("two"));
    assert!(!denies_storage(&unknown), "{unknown:?}");
    let text = unknown.unwrap_err().to_string();
    assert!(text.contains("unknown") && text.contains("same id"), "{text}");
    let later = db.write_blocking("add", add("three"));
    assert!(matches!(&later, Err(NoteError::Storage(StorageError::Stopped { .. }))), "{later:?}");
    assert!(denies_storage(&later), "{later:?}");
}

#[test]
fn the_shared_memory_of_the_log_has_its_room_before_the_first_commit() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let index = std::fs::metadata(folder.path().join("notes.db-shm")).unwrap();
    let needed = 32_768 * 8;
    assert!(index.len() >= needed, "{} bytes", index.len());
    assert!(index.blocks() * 512 >= needed, "{} blocks are allocated", index.blocks());
    drop(db);
}
