//! Opening the relay's file; a damaged one is set aside by name, never deleted.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Entropy, Timestamp, limits};
use rusqlite::{OptionalExtension, named_params};
use sqlite::{Bounds, Db, Freed, Migration, Options, Schema, StorageError};

use super::attempts::LiveAttempts;
use super::sql;
use super::store::{self, Stores};
use crate::salvage::quick_condition;
use crate::{Condition, OpenError};

/// The tables of the relay's file.
pub const RELAY_SCHEMA: Schema = Schema {
    migrations: &[
        Migration { number: 1, name: "envelopes", sql: include_str!("migrations/0001_envelopes.sql") },
        Migration { number: 2, name: "over", sql: include_str!("migrations/0002_over.sql") },
        Migration { number: 3, name: "barriers", sql: include_str!("migrations/0003_barriers.sql") },
        Migration { number: 4, name: "base", sql: include_str!("migrations/0004_base.sql") },
        Migration { number: 5, name: "ending", sql: include_str!("migrations/0005_ending.sql") },
        Migration { number: 6, name: "lean", sql: include_str!("migrations/0006_lean.sql") },
        Migration { number: 7, name: "left", sql: include_str!("migrations/0007_left.sql") },
    ],
    sum: include_str!("../../relay.sql"),
};

/// The relay's durable side. Clones share it.
#[derive(Clone)]
pub struct Envelopes {
    pub(crate) db: Db,
    pub(super) entropy: Arc<dyn Entropy>,
    pub(super) stores: Arc<Stores>,
    pub(super) live: Arc<LiveAttempts>,
}

/// A damaged file and where it is kept now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Its new name.
    pub path: PathBuf,
    /// What was found, in SQLite's words.
    pub detail: String,
}

impl Envelopes {
    /// Opens the file at `path`, or makes it. What was on the wire when the last process ended may have arrived.
    pub fn open(
        path: impl Into<PathBuf>,
        entropy: Arc<dyn Entropy>,
        now: Timestamp,
    ) -> Result<Self, OpenError> {
        Self::over(Db::open(Self::options(path))?, entropy, now)
    }

    /// A relay's file opened by the caller with [`Envelopes::options`].
    pub fn over(db: Db, entropy: Arc<dyn Entropy>, now: Timestamp) -> Result<Self, OpenError> {
        let live = Arc::new(LiveAttempts::default());
        let stores = Arc::new(store::stores(Arc::clone(&live)));
        let envelopes = Self { db, entropy, stores, live };
        envelopes.db.write_blocking("relay.recover", move |conn| {
            conn.prepare_cached(sql::RECOVER)?.execute(named_params! {":now": now.as_micros()})?;
            Ok::<_, StorageError>(())
        })?;
        Ok(envelopes)
    }

    /// Enters the file under `name` among the stores of its process.
    pub fn enter(&self, stores: &sqlite::Stores, name: impl Into<String>) {
        stores.enter(name, &self.db);
    }

    /// How a relay's file is opened. Freed bytes are zeroed: a body that was taken away shall be gone.
    pub fn options(path: impl Into<PathBuf>) -> Options {
        let bounds = Bounds { queue_max: limits::WRITER_QUEUE_MAX, ..Bounds::default() };
        Options::new(path, RELAY_SCHEMA).bounds(bounds).freed(Freed::Zeroed)
    }

    /// Renames a damaged file at `path`, with its log, to a name that says when; a sound or missing one stays. A read that
    /// fails is an error of the disk and says nothing of the file: it is looked at again once all of it could be read.
    pub fn set_damaged_aside(path: &Path, now: Timestamp) -> std::io::Result<Option<SetAside>> {
        if !path.exists() || quick_condition(path) == Condition::Sound {
            return Ok(None);
        }
        read_whole(path)?;
        let Condition::Damaged { detail } = quick_condition(path) else { return Ok(None) };
        let named = |from: &Path, suffix: &str| {
            let mut name: OsString = from.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let aside = named(path, &format!(".damaged-{}", now.as_micros()));
        for part in ["-wal", "-shm"] {
            let beside = named(path, part);
            if beside.exists() {
                std::fs::rename(&beside, named(&aside, part))?;
            }
        }
        std::fs::rename(path, &aside)?;
        Ok(Some(SetAside { path: aside, detail }))
    }

    /// A fact kept beside the envelopes.
    pub async fn fact(&self, name: &'static str) -> Result<Option<String>, StorageError> {
        self.db
            .read("relay.fact", move |conn| {
                let mut statement = conn.prepare_cached(sql::META_GET)?;
                Ok(statement.query_row(named_params! {":k": name}, |row| row.get(0)).optional()?)
            })
            .await
    }

    /// Keeps a fact, or forgets it.
    pub async fn keep_fact(&self, name: &'static str, value: Option<String>) -> Result<(), StorageError> {
        self.db
            .write("relay.keep_fact", move |conn| {
                match value {
                    Some(value) => conn
                        .prepare_cached(sql::META_PUT)?
                        .execute(named_params! {":k": name, ":v": value})?,
                    None => conn.prepare_cached(sql::META_FORGET)?.execute(named_params! {":k": name})?,
                };
                Ok(())
            })
            .await
    }

    /// Keeps the fact that the file is an older copy than it was. Of what waits in it nothing is known to have never left.
    pub async fn note_went_back(&self, name: &'static str, value: String) -> Result<(), StorageError> {
        self.db
            .write("relay.note_went_back", move |conn| {
                conn.prepare_cached(sql::META_PUT)?.execute(named_params! {":k": name, ":v": value})?;
                conn.prepare_cached(sql::WENT_BACK)?.execute([])?;
                Ok(())
            })
            .await
    }

    /// Finishes what is waiting and closes the file.
    pub async fn close(self) {
        self.db.close().await;
    }

    /// Transactions that committed since the file was opened.
    pub fn commits(&self) -> u64 {
        self.db.stats().commits
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.db.path()
    }
}

/// Reads every byte of a file and of its log.
fn read_whole(path: &Path) -> std::io::Result<()> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    for part in [path.to_owned(), PathBuf::from(log)] {
        let read = File::open(&part).and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let words =
                    format!("{}: cannot be read ({error}); check the disk and start again", part.display());
                return Err(std::io::Error::new(error.kind(), words));
            }
        }
    }
    Ok(())
}
