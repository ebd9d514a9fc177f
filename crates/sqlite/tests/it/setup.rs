//! A small table in a temporary folder, and the jobs the tests run on it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use sqlite::rusqlite::Connection;
use sqlite::{Db, Migration, Options, Schema, StorageError};
use tempfile::TempDir;

pub const SCHEMA: Schema = Schema {
    migrations: &[Migration {
        number: 1,
        name: "notes",
        sql: "CREATE TABLE note (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE);",
    }],
    sum: "CREATE TABLE note (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE);",
};

/// What a test's job may answer.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    #[error("the job said no")]
    Refused,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<sqlite::rusqlite::Error> for NoteError {
    fn from(error: sqlite::rusqlite::Error) -> Self {
        Self::Storage(error.into())
    }
}

pub fn options(folder: &TempDir) -> Options {
    Options::new(folder.path().join("notes.db"), SCHEMA)
}

pub fn open(folder: &TempDir) -> Db {
    Db::open(options(folder)).expect("a fresh folder opens")
}

pub fn add(word: &str) -> impl FnOnce(&Connection) -> Result<i64, NoteError> + Send + 'static + use<> {
    let word = word.to_owned();
    move |conn| {
        conn.prepare_cached("INSERT INTO note (word) VALUES (?1)")?.execute([&word])?;
        Ok(conn.last_insert_rowid())
    }
}

pub fn words(db: &Db) -> Vec<String> {
    db.read_blocking("words", |conn| {
        let mut read = conn.prepare("SELECT word FROM note ORDER BY id")?;
        let rows = read.query_map([], |row| row.get(0))?;
        Ok::<_, NoteError>(rows.collect::<Result<_, _>>()?)
    })
    .expect("the table can be read")
}

/// A job that keeps its transaction open until it is let go; tells when it has begun.
pub struct Gate {
    pub begun: Receiver<()>,
    pub release: SyncSender<()>,
}

pub fn gate() -> (Gate, impl FnOnce(&Connection) -> Result<(), NoteError> + Send + 'static) {
    let (tell, begun) = sync_channel(1);
    let (release, wait) = sync_channel(1);
    let job = move |_: &Connection| {
        tell.send(()).expect("the test listens");
        wait.recv().expect("the test lets go");
        Ok(())
    };
    (Gate { begun, release }, job)
}
