//! Steps run once, in order; changed and newer ones are refused.

use sqlite::{Db, Migration, OpenError, Options, Schema, assert_schema_sum};
use tempfile::tempdir;

use crate::setup::{NoteError, SCHEMA, add, open, options, words};

const FIRST: Migration = SCHEMA.migrations[0];
const SECOND: Migration = Migration {
    number: 2,
    name: "colour",
    sql: "ALTER TABLE note ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';",
};

const TWO: Schema = Schema {
    migrations: &[FIRST, SECOND],
    sum: "CREATE TABLE note (
        id INTEGER PRIMARY KEY, -- rowid
        word TEXT NOT NULL UNIQUE,
        colour TEXT NOT NULL DEFAULT 'red');",
};

#[test]
fn the_sum_of_the_steps_is_the_checked_in_text() {
    assert_schema_sum(&SCHEMA);
    assert_schema_sum(&TWO);
}

#[tokio::test]
async fn a_later_step_runs_on_an_older_file_and_keeps_its_rows() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    db.write("add", add("old")).await.unwrap();
    db.close().await;
    let db = Db::open(Options::new(folder.path().join("notes.db"), TWO)).unwrap();
    let colour = db.read("colour", |conn| {
        Ok::<String, NoteError>(
            conn.query_row("SELECT colour FROM note WHERE word = 'old'", [], |row| row.get(0))?,
        )
    });
    assert_eq!(colour.await.unwrap(), "red");
    let text = db.schema_text().await.unwrap();
    assert!(text.contains("colour TEXT NOT NULL DEFAULT 'red'"), "{text}");
    assert!(!text.contains("schema_version"), "{text}");
}

#[test]
fn a_newer_file_is_refused_and_left_alone() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("notes.db");
    Db::open(Options::new(&path, TWO)).unwrap().close_blocking();
    let before = std::fs::read(&path).unwrap();
    let refused = Db::open(options(&folder)).err();
    assert!(matches!(refused, Some(OpenError::NewerSchema { found: 2, known: 1, .. })), "{refused:?}");
    let text = refused.unwrap().to_string();
    assert!(text.contains("notes.db") && text.contains("use a newer program"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_newer_file_left_by_a_crash_keeps_its_log_when_refused() {
    let folder = tempdir().unwrap();
    let (path, log) = (folder.path().join("notes.db"), folder.path().join("notes.db-wal"));
    let db = Db::open(Options::new(&path, TWO)).unwrap();
    db.write_blocking("add", add("new")).unwrap();
    db.abandon();
    let before = (std::fs::read(&path).unwrap(), std::fs::read(&log).unwrap());
    assert!(!before.1.is_empty());
    let refused = Db::open(options(&folder)).err();
    assert!(matches!(refused, Some(OpenError::NewerSchema { .. })), "{refused:?}");
    assert_eq!((std::fs::read(&path).unwrap(), std::fs::read(&log).unwrap()), before);
    assert_eq!(words(&Db::open(Options::new(&path, TWO)).unwrap()), ["new"]);
}

#[test]
fn a_landed_step_may_not_change() {
    let folder = tempdir().unwrap();
    open(&folder).close_blocking();
    const EDITED: Schema = Schema {
        migrations: &[Migration {
            number: 1,
            name: "notes",
            sql: "CREATE TABLE note (id INTEGER PRIMARY KEY);",
        }],
        sum: "",
    };
    let refused = Db::open(Options::new(folder.path().join("notes.db"), EDITED)).err();
    assert!(matches!(refused, Some(OpenError::ChangedMigration { number: 1, .. })), "{refused:?}");
    assert_eq!(words(&open(&folder)).len(), 0, "the file still opens with the right steps");
}

#[test]
fn a_step_that_does_not_run_leaves_nothing_of_itself() {
    let folder = tempdir().unwrap();
    const BROKEN: Schema = Schema {
        migrations: &[
            FIRST,
            Migration { number: 2, name: "broken", sql: "CREATE TABLE half (x); CREATE TABLE note (y);" },
        ],
        sum: "",
    };
    let refused = Db::open(Options::new(folder.path().join("notes.db"), BROKEN)).err();
    assert!(matches!(refused, Some(OpenError::Migration { number: 2, name: "broken", .. })), "{refused:?}");
    let db = open(&folder);
    let tables = db.read_blocking("half", |conn| {
        Ok::<i64, NoteError>(conn.query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'half'",
            [],
            |row| row.get(0),
        )?)
    });
    assert_eq!(tables.unwrap(), 0);
}
