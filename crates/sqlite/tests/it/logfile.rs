//! What reaches the log's file, in how many writes, and who may read it when.

use std::sync::Arc;

use sqlite::fault::Disk;
use sqlite::rusqlite::Connection;
use sqlite::{Bounds, Db};
use tempfile::{TempDir, tempdir};
use testkit::disk::{Event, Recorder, mount};

use crate::setup::{NoteError, add, options, words};

/// More than the log grows at once.
const MUCH_BYTES: usize = 1 << 20;

fn recorded(folder: &TempDir) -> (Arc<Recorder>, Db) {
    let recorder = Arc::new(Recorder::default());
    let disk = Disk { vfs: Some(mount(recorder.clone())), ..Disk::default() };
    let db = Db::open(options(folder).fault(disk)).expect("a fresh folder opens");
    (recorder, db)
}

/// Sizes of the writes to the log, and a nothing for each of its syncs.
fn to_the_log(events: &[Event]) -> Vec<Option<usize>> {
    let log = |file: &str| file.ends_with("-wal");
    let act = |event: &Event| match event {
        Event::Written { file, bytes, .. } if log(file) => Some(Some(bytes.len())),
        Event::Synced { file } if log(file) => Some(None),
        _ => None,
    };
    events.iter().filter_map(act).collect()
}

#[test]
fn a_commit_is_one_write_and_one_sync_whatever_number_of_pages_it_changed() {
    let folder = tempdir().unwrap();
    let (recorder, db) = recorded(&folder);
    db.write_blocking("add", add("first")).unwrap();
    recorder.take();
    for n in 0..4 {
        db.write_blocking("add", add(&format!("{n} {}", "long ".repeat(2_000)))).unwrap();
        let acts = to_the_log(&recorder.take());
        let [Some(bytes), None] = acts[..] else { panic!("{acts:?}") };
        assert!(bytes > 3 * 4_096, "{bytes} bytes");
    }
}

#[test]
fn a_log_grows_by_more_than_a_commit_needs_and_a_killed_one_is_read_to_its_last_commit() {
    let folder = tempdir().unwrap();
    let (_, db) = recorded(&folder);
    let length = || std::fs::metadata(folder.path().join("notes.db-wal")).unwrap().len();
    let mut lengths = Vec::new();
    for n in 0..200 {
        db.write_blocking("add", add(&format!("word {n}"))).unwrap();
        lengths.push(length());
    }
    lengths.dedup();
    assert!(lengths.len() > 1, "it grows: {lengths:?}");
    assert!(lengths.len() < 20, "but not at every commit: {lengths:?}");
    db.abandon();
    let again = Db::open(options(&folder)).unwrap();
    assert_eq!(words(&again).len(), 200);
}

#[test]
fn a_transaction_larger_than_its_cache_reads_its_own_pages_back_and_others_see_it_once_it_ended() {
    let folder = tempdir().unwrap();
    let bounds = Bounds { writer_cache_kib: 64, ..Bounds::default() };
    let db = Db::open(options(&folder).bounds(bounds)).unwrap();
    let word = |n: usize| format!("{n:04} {}", "long ".repeat(200));
    let rows = MUCH_BYTES / word(0).len();
    let other = Connection::open(folder.path().join("notes.db")).unwrap();
    let seen = db
        .write_blocking("much", move |conn| {
            for n in 0..rows {
                add(&word(n))(conn)?;
            }
            let others: i64 = other.query_row("SELECT count(*) FROM note", [], |row| row.get(0))?;
            let own: i64 =
                conn.query_row("SELECT count(*) FROM note WHERE length(word) > 1000", [], |row| row.get(0))?;
            Ok::<_, NoteError>((own, others))
        })
        .unwrap();
    assert_eq!(seen, (rows as i64, 0));
    let found = words(&db);
    assert_eq!(found.len(), rows);
    assert!(found.iter().enumerate().all(|(n, found)| *found == word(n)));
}
