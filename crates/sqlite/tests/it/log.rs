//! The log's length under load and under readers.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use sqlite::{Bounds, Db, StorageError};
use tempfile::tempdir;

use crate::setup::{Gate, NoteError, add, gate, options, words};

/// What one commit of these tests adds to the log at most, in pages.
const ONE_COMMIT_PAGES: u64 = 10;

/// What the log is never longer than. Shorter logs are usual, but how much shorter is the scheduler's affair: the
/// second connection copies on a thread of its own.
const LOG_PAGES_MAX: u64 = BOUNDS.wal_pages_max as u64 + ONE_COMMIT_PAGES;

/// A page in the log: its 4 KiB and their header.
const LOG_PAGE_BYTES: u64 = 4096 + 24;

const BOUNDS: Bounds = Bounds {
    queue_max: 64,
    batch_jobs_max: 16,
    lone_commit_max: std::time::Duration::ZERO,
    readers: 2,
    readers_here: 0,
    read_queue_max: 64,
    read_max: std::time::Duration::from_secs(2),
    kept_index_wait_max: std::time::Duration::ZERO,
    busy_wait: std::time::Duration::from_millis(20),
    checkpoint_step_pages: 20,
    wal_budget_pages: 60,
    wal_pages_max: 200,
    log_pages_max: 100_000,
    log_kept_bytes: 1 << 20,
    statements_max: 32,
    writer_cache_kib: 1024,
    reader_cache_kib: 1024,
};

#[test]
fn the_log_starts_over_in_place_again_and_again() {
    for start in [Db::open, Db::open_inline] {
        let folder = tempdir().unwrap();
        let db = start(options(&folder).bounds(BOUNDS)).unwrap();
        for n in 0..1500 {
            db.write_blocking("add", add(&format!("word {n}"))).unwrap();
        }
        let stats = db.stats();
        assert!(stats.wal_pages_peak < LOG_PAGES_MAX, "{stats:?}");
        assert!(stats.checkpoints_between > 5, "{stats:?}");
        let log = std::fs::metadata(folder.path().join("notes.db-wal")).unwrap().len();
        assert!(log < LOG_PAGES_MAX * LOG_PAGE_BYTES, "{log} bytes");
        assert_eq!(words(&db).len(), 1500);
    }
}

#[test]
fn a_reader_that_pins_the_log_delays_its_restart_and_nothing_else() {
    let folder = tempdir().unwrap();
    let db = Db::open(options(&folder).bounds(BOUNDS)).unwrap();
    db.write_blocking("add", add("first")).unwrap();
    let (Gate { begun, release }, hold) = gate();
    let reader = db.clone();
    let reading = std::thread::spawn(move || {
        reader.read_blocking("pin", move |conn| {
            let before: i64 = conn.query_row("SELECT count(*) FROM note", [], |row| row.get(0))?;
            hold(conn)?;
            let after: i64 = conn.query_row("SELECT count(*) FROM note", [], |row| row.get(0))?;
            Ok::<_, NoteError>((before, after))
        })
    });
    begun.recv().unwrap();
    for n in 0..150 {
        db.write_blocking("add", add(&format!("word {n}"))).unwrap();
    }
    let pinned = db.stats().wal_pages;
    assert!(pinned > u64::from(BOUNDS.wal_budget_pages), "the reader kept the log: {pinned}");
    release.send(()).unwrap();
    assert_eq!(reading.join().unwrap().unwrap(), (1, 1), "it saw one moment all along");
    for n in 0..50 {
        db.write_blocking("add", add(&format!("later {n}"))).unwrap();
    }
    assert!(db.stats().wal_pages < pinned, "{:?}", db.stats());
}

#[test]
fn at_its_usual_bound_the_log_starts_over_without_a_second_connection() {
    let folder = tempdir().unwrap();
    let db = Db::open_inline(options(&folder).bounds(Bounds { wal_budget_pages: 1_000, ..BOUNDS })).unwrap();
    for n in 0..1_000 {
        db.write_blocking("add", add(&format!("word {n}"))).unwrap();
    }
    let stats = db.stats();
    assert!(stats.wal_pages_peak < LOG_PAGES_MAX, "{stats:?}");
}

#[test]
fn a_closed_pool_does_not_wait_for_a_full_line_of_reads() {
    let folder = tempdir().unwrap();
    let db = Db::open(options(&folder).bounds(Bounds { readers: 1, read_queue_max: 1, ..BOUNDS })).unwrap();
    let (Gate { begun, release }, hold) = gate();
    let reader = db.clone();
    let reading = std::thread::spawn(move || reader.read_blocking("hold", hold));
    begun.recv().unwrap();
    let mut waiting = Box::pin(db.read("next", |_| Ok::<(), NoteError>(())));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    let refused = db.read_blocking("third", |_| Ok::<(), NoteError>(()));
    assert!(
        matches!(refused, Err(NoteError::Storage(StorageError::QueueFull { waiting_max: 1, .. }))),
        "{refused:?}"
    );
    release.send(()).unwrap();
    reading.join().unwrap().unwrap();
    db.close_blocking();
    assert!(
        matches!(waiting.as_mut().poll(&mut context), std::task::Poll::Ready(Ok(()))),
        "what waited was drained"
    );
}

/// Another connection, outside the engine, with a read transaction that keeps the log.
fn reading_outside(folder: &tempfile::TempDir) -> sqlite::rusqlite::Connection {
    let other = sqlite::rusqlite::Connection::open(folder.path().join("notes.db")).expect("the file opens");
    other.execute_batch("BEGIN; SELECT count(*) FROM note").expect("the table is read");
    other
}

#[test]
fn beside_a_foreign_read_transaction_writes_wait_for_nothing_and_the_log_starts_over_after_it() {
    const WRITES: u64 = 400;
    let folder = tempdir().unwrap();
    // One wait of the writer for a reader would last longer than the test may.
    let bounds = Bounds { busy_wait: std::time::Duration::from_secs(600), ..BOUNDS };
    let db = Db::open(options(&folder).bounds(bounds)).unwrap();
    db.write_blocking("add", add("first")).unwrap();
    let other = reading_outside(&folder);
    for n in 0..WRITES {
        db.write_blocking("add", add(&format!("word {n}"))).unwrap();
    }
    let kept = db.stats().wal_pages;
    assert!(kept > u64::from(bounds.wal_pages_max), "the log grows past its usual bound: {kept} pages");
    drop(other);
    let mut later = 0;
    testkit::wait_for("the log starts over", std::time::Duration::from_secs(60), || {
        later += 1;
        db.write_blocking("add", add(&format!("later {later}"))).unwrap();
        (db.stats().wal_pages < kept).then_some(())
    })
    .unwrap();
    assert_eq!(words(&db).len() as u64, 1 + WRITES + later);
}

#[test]
fn a_log_at_its_hard_bound_refuses_writes_by_name_until_the_reader_has_left() {
    let folder = tempdir().unwrap();
    let db = Db::open(options(&folder).bounds(Bounds { log_pages_max: 300, ..BOUNDS })).unwrap();
    db.write_blocking("add", add("first")).unwrap();
    let (mut reader, _said) = reading_process(&folder);
    let mut stored = vec!["first".to_owned()];
    let refused = (0..1_000).find_map(|n| {
        let word = format!("word {n}");
        match db.write_blocking("add", add(&word)) {
            Ok(_) => {
                stored.push(word);
                None
            }
            Err(error) => Some(error),
        }
    });
    let Some(NoteError::Storage(error @ StorageError::LogFull { .. })) = refused else {
        panic!("{refused:?}")
    };
    assert!(error.denies_storage());
    let kept = db.kept_log().expect("the log is longer than its usual bound");
    for text in [error.to_string(), kept.to_string()] {
        assert!(text.contains(&format!("process {}", reader.id())), "{text}");
    }
    assert_eq!(words(&db), stored, "reads stay up");
    drop(reader.stdin.take());
    reader.wait().unwrap();
    testkit::wait_for("the log has room again", std::time::Duration::from_secs(60), || {
        db.write_blocking("add", add("after")).ok()
    })
    .unwrap();
    stored.push("after".to_owned());
    db.abandon();
    assert_eq!(words(&crate::setup::open(&folder)), stored);
}

#[test]
fn a_file_whose_half_copied_log_another_process_kept_over_a_crash_is_refused_until_that_one_ends() {
    let folder = tempdir().unwrap();
    let db = crate::setup::open(&folder);
    let mut stored = vec!["first".to_owned()];
    db.write_blocking("add", add("first")).unwrap();
    let (mut reader, _said) = reading_process(&folder);
    for n in 0..3 {
        stored.push(format!("word {n}"));
        db.write_blocking("add", add(&stored[n + 1])).unwrap();
    }
    db.abandon();
    let copy = sqlite::rusqlite::Connection::open(folder.path().join("notes.db")).unwrap();
    copy.query_row("SELECT count(*) FROM note", [], |_| Ok(())).unwrap();
    let copied =
        copy.wal_checkpoint_v2(None::<&str>, sqlite::rusqlite::wal::CheckpointMode::PASSIVE).unwrap();
    assert!(0 < copied.1 && copied.1 < copied.0, "{copied:?}");
    drop(copy);
    let at_once = Bounds { kept_index_wait_max: std::time::Duration::ZERO, ..Bounds::default() };
    let refused = Db::open(options(&folder).bounds(at_once)).err();
    let refused = refused.expect("the file is refused");
    assert!(matches!(&refused, sqlite::OpenError::IndexKept { .. }), "{refused:?}");
    assert!(refused.to_string().contains(&format!("process {}", reader.id())), "{refused}");
    // An opening that may wait for it does.
    let waiting = std::thread::spawn({
        let options = options(&folder);
        move || Db::open(options).map(|db| words(&db))
    });
    drop(reader.stdin.take());
    reader.wait().unwrap();
    assert_eq!(waiting.join().unwrap().unwrap(), stored);
}

/// Names the file that the test below reads when it runs as a process of its own.
const READER_VARIABLE: &str = "SQLITE_TEST_READS";

/// This test binary once more, with an open read transaction on the file until its standard input ends.
fn reading_process(folder: &tempfile::TempDir) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().expect("the binary has a path"))
        .args(["log::reads_until_its_input_ends_when_it_is_a_process_of_its_own", "--exact", "--nocapture"])
        .env(READER_VARIABLE, folder.path().join("notes.db"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this binary starts");
    let mut said = BufReader::new(child.stdout.take().expect("its output is a pipe")).lines();
    assert!(said.by_ref().map_while(Result::ok).any(|line| line.ends_with("reading")), "the process reads");
    (child, said)
}

#[test]
fn reads_until_its_input_ends_when_it_is_a_process_of_its_own() {
    let Some(file) = std::env::var_os(READER_VARIABLE) else { return };
    let conn = sqlite::rusqlite::Connection::open(file).unwrap();
    conn.execute_batch("BEGIN; SELECT count(*) FROM note").unwrap();
    println!("reading");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}
