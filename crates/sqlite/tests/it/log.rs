//! The log's length under load and under readers.

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
    busy_wait: std::time::Duration::from_millis(20),
    checkpoint_step_pages: 20,
    wal_budget_pages: 60,
    wal_pages_max: 200,
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
fn at_the_limit_the_writer_waits_for_readers_and_then_starts_the_log_over() {
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

/// Policy and nice value of this process's copiers, as Linux tells.
#[cfg(target_os = "linux")]
fn copiers() -> Vec<(u8, i8)> {
    let place = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        let (name, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        name.ends_with("(sqlite-copier")
            .then(|| Some((fields[38].parse().ok()?, fields[16].parse().ok()?)))?
    };
    std::fs::read_dir("/proc/self/task")
        .expect("Linux lists its threads")
        .flatten()
        .filter_map(place)
        .collect()
}

#[test]
#[cfg(target_os = "linux")]
fn one_copier_takes_what_is_left_and_the_other_has_a_share() {
    const OTHER: u8 = 0;
    const IDLE: u8 = 5;
    let folder = tempdir().unwrap();
    let _db = Db::open(options(&folder)).unwrap();
    let both = || {
        let found = copiers();
        (found.contains(&(IDLE, 0)) && found.contains(&(OTHER, 10))).then_some(())
    };
    testkit::wait_for("two copiers at their places", std::time::Duration::from_secs(10), both).unwrap();
}
