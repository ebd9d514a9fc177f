//! Opening a mailbox.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Entropy, limits};
use rusqlite::{Connection, OptionalExtension};
use sqlite::{Bounds, Db, Freed, KeptLog, Migration, Options, Schema, Stats, StorageError, Stores};

use crate::meta::{self, InboxEpoch};
use crate::outbox::{Accepts, Names, accepts};
use crate::sql;

/// The tables of a mailbox.
pub const SCHEMA: Schema = Schema {
    migrations: &[
        Migration { number: 1, name: "mailbox", sql: include_str!("migrations/0001_mailbox.sql") },
        Migration { number: 2, name: "turns", sql: include_str!("migrations/0002_turns.sql") },
        Migration {
            number: 3,
            name: "short_payloads",
            sql: include_str!("migrations/0003_short_payloads.sql"),
        },
        Migration { number: 4, name: "lean_outbox", sql: include_str!("migrations/0004_lean_outbox.sql") },
        Migration { number: 5, name: "late_names", sql: include_str!("migrations/0005_late_names.sql") },
    ],
    sum: include_str!("../schema.sql"),
};

/// A node's durable side in one mesh. Clones share it.
#[derive(Clone)]
pub struct Mailbox {
    pub(crate) db: Db,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) accepts: Arc<Accepts>,
    pub(crate) names: Arc<Names>,
    inbox_epoch: InboxEpoch,
}

/// Why a mailbox could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] sqlite::OpenError),
    /// Its first read or write.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Mailbox {
    /// Opens the file at `path`, or makes it, with its threads.
    pub fn open(path: impl Into<PathBuf>, entropy: Arc<dyn Entropy>) -> Result<Mailbox, OpenError> {
        Mailbox::over(Db::open(Mailbox::options(path))?, entropy)
    }

    /// The same without any thread: every door runs, and commits, where it is called. For simulation.
    pub fn open_inline(path: impl Into<PathBuf>, entropy: Arc<dyn Entropy>) -> Result<Mailbox, OpenError> {
        Mailbox::over(Db::open_inline(Mailbox::options(path))?, entropy)
    }

    /// A mailbox on a file opened by the caller with [`Mailbox::options`].
    pub fn over(db: Db, entropy: Arc<dyn Entropy>) -> Result<Mailbox, OpenError> {
        let known: Option<InboxEpoch> = db.read_blocking("mailbox.epoch", read_epoch)?;
        let inbox_epoch = match known {
            Some(epoch) => epoch,
            None => {
                let epoch = InboxEpoch::draw(&*entropy);
                db.write_blocking("mailbox.begin", move |conn| {
                    meta::put(conn, meta::INBOX_EPOCH, &epoch.to_string())?;
                    Ok::<_, StorageError>(epoch)
                })?
            }
        };
        let names = Names::open(&db)?;
        Ok(Mailbox { db, entropy, accepts: Arc::new(accepts(&names)), names, inbox_epoch })
    }

    /// How a mailbox's file is opened. Freed bytes are zeroed: a scrubbed body shall be gone.
    pub fn options(path: impl Into<PathBuf>) -> Options {
        let bounds = Bounds { queue_max: limits::WRITER_QUEUE_MAX, ..Bounds::default() };
        Options::new(path, SCHEMA).bounds(bounds).freed(Freed::Zeroed)
    }

    /// Drawn when the file was made: another one means that the inbox was lost in between.
    pub fn inbox_epoch(&self) -> InboxEpoch {
        self.inbox_epoch
    }

    /// Finishes what is waiting and closes the file; doors answer `Closed` from then on.
    pub async fn close(self) {
        self.db.close().await;
    }

    /// [`Mailbox::close`] on a thread that may wait.
    pub fn close_blocking(&self) {
        self.db.close_blocking();
    }

    /// Enters the file under `name` among the stores of its process.
    pub fn enter(&self, stores: &Stores, name: impl Into<String>) {
        stores.enter(name, &self.db);
    }

    /// Counters of the file's engine.
    pub fn stats(&self) -> Stats {
        self.db.stats()
    }

    /// The file's log, when it is longer than its usual bound, with the processes that keep it.
    pub fn kept_log(&self) -> Option<KeptLog> {
        self.db.kept_log()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.db.path()
    }
}

fn read_epoch(conn: &Connection) -> Result<Option<InboxEpoch>, StorageError> {
    let text =
        conn.prepare_cached(sql::EPOCH_GET)?.query_row([], |row| row.get::<_, String>(0)).optional()?;
    Ok(text.map(|text| meta::parse(&text)).transpose()?)
}
