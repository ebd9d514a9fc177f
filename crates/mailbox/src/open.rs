//! Opening a mailbox.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Entropy, limits};
use sqlite::{Bounds, Db, Freed, KeptLog, Migration, Options, Schema, Stats, StorageError, Stores};

use crate::meta::{self, INBOX_EPOCH, INBOX_EPOCH_BEFORE, InboxEpoch};
use crate::outbox::{Accepts, Names, accepts};
use crate::restored::take_mark;
use crate::went_back::get;

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
    inbox_epoch_before: Option<InboxEpoch>,
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
    /// Whether it was restored is not known, and what waits in it could be handed out without a mark.
    #[error("the mark beside {} cannot be read: {source}", path.display())]
    Mark {
        /// The mailbox.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
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
        take_mark(&db, &*entropy)?;
        let (known, inbox_epoch_before) = db.read_blocking("mailbox.epoch", |conn| {
            Ok::<_, StorageError>((get(conn, INBOX_EPOCH)?, get(conn, INBOX_EPOCH_BEFORE)?))
        })?;
        let inbox_epoch = match known {
            Some(epoch) => epoch,
            None => {
                let epoch = InboxEpoch::draw(&*entropy);
                db.write_blocking("mailbox.begin", move |conn| {
                    meta::put(conn, INBOX_EPOCH, &epoch.to_string())?;
                    Ok::<_, StorageError>(epoch)
                })?
            }
        };
        let names = Names::open(&db)?;
        let accepts = Arc::new(accepts(&names));
        Ok(Mailbox { db, entropy, accepts, names, inbox_epoch, inbox_epoch_before })
    }

    /// How a mailbox's file is opened. Freed bytes are zeroed: a scrubbed body shall be gone.
    pub fn options(path: impl Into<PathBuf>) -> Options {
        let bounds = Bounds { queue_max: limits::WRITER_QUEUE_MAX, ..Bounds::default() };
        Options::new(path, SCHEMA).bounds(bounds).freed(Freed::Zeroed)
    }

    /// Drawn when the file was made, and anew when it was restored: another one means that the inbox may lack mail.
    pub fn inbox_epoch(&self) -> InboxEpoch {
        self.inbox_epoch
    }

    /// The epoch that this file had when its backup was made, once it was restored from one.
    pub fn inbox_epoch_before(&self) -> Option<InboxEpoch> {
        self.inbox_epoch_before
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
