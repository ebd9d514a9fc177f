//! The handle rooms hold: hand in a job, get its answer after the commit.

use std::path::Path;
use std::sync::Arc;
use std::thread::Builder;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::engine::Engine;
use crate::gather::Gathering;
use crate::job::{Undo, ask};
use crate::wait::wait;
use crate::{KeptLog, OpenError, Options, Stats, StorageError, migrate, open};

/// One open file. Clones share it; the last one to go closes it.
#[derive(Clone)]
pub struct Db {
    engine: Arc<Engine>,
}

impl Db {
    /// Opens the file, or makes it, and starts its threads.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let opened = open::open(&options)?;
        Ok(Self { engine: Arc::new(Engine::threaded(opened, options.bounds)?) })
    }

    /// Opens the file, or makes it, without any thread: a write runs, and commits, where it is called.
    pub fn open_inline(options: Options) -> Result<Self, OpenError> {
        let opened = open::open(&options)?;
        Ok(Self { engine: Arc::new(Engine::inline(opened, options.bounds)?) })
    }

    /// Runs `job` inside the next shared transaction, in a savepoint of its own, and answers after that
    /// transaction's `COMMIT` returned. An `Err` of the job undoes the job alone, and is answered after
    /// the commit too. Dropping the future does not call the job back.
    pub async fn write<T, E, F>(&self, name: &'static str, job: F) -> Result<T, E>
    where
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        self.write_undone_by(Undo::Savepoint, name, job).await
    }

    /// [`Db::write`] for a job that makes every check before its first change, as hot ones do: it has no savepoint,
    /// for which SQLite would copy every page the job touches. An `Err` before the first change undoes nobody.
    /// One after it, or a panic, is a defect: it costs the whole transaction, everybody in it is told to ask
    /// again, and for a while such jobs have savepoints too, so that one that comes back spoils nobody twice.
    pub async fn write_checked<T, E, F>(&self, name: &'static str, job: F) -> Result<T, E>
    where
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        self.write_undone_by(Undo::Transaction, name, job).await
    }

    async fn write_undone_by<T, E, F>(&self, undo: Undo, name: &'static str, job: F) -> Result<T, E>
    where
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let (job, answer) = ask(name, undo, self.engine.path(), job);
        self.engine.submit_write(job)?;
        self.engine.receive(answer).await
    }

    /// [`Db::write_checked`] for one of many callers that ask alike: those who wait together are one job.
    pub async fn write_gathered<Q, A, E>(&self, gathering: &Gathering<Q, A, E>, question: Q) -> Result<A, E>
    where
        Q: Send + 'static,
        A: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let answer = self.engine.ask_writer(gathering, question)?;
        self.engine.receive(answer).await
    }

    /// [`Db::write`] for start-up code and tests, on a thread that may wait.
    pub fn write_blocking<T, E, F>(&self, name: &'static str, job: F) -> Result<T, E>
    where
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        wait(self.write(name, job))
    }

    /// Runs `read` on a read-only connection in one transaction of bounded length.
    pub async fn read<T, E, F>(&self, name: &'static str, read: F) -> Result<T, E>
    where
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let (job, answer) = ask(name, Undo::Transaction, self.engine.path(), read);
        self.engine.submit_read(job)?;
        self.engine.receive(answer).await
    }

    /// [`Db::read`] for a look at a few rows: on the calling thread when one of [`crate::Bounds::readers_here`] is
    /// free, which then waits for the rows and for nothing else.
    pub async fn read_here<T, E, F>(&self, name: &'static str, read: F) -> Result<T, E>
    where
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let (job, answer) = ask(name, Undo::Transaction, self.engine.path(), read);
        self.engine.read_here(job)?;
        self.engine.receive(answer).await
    }

    /// [`Db::read_here`] for one of many callers that ask alike: those who wait together read in one transaction.
    pub async fn read_gathered<Q, A, E>(&self, gathering: &Gathering<Q, A, E>, question: Q) -> Result<A, E>
    where
        Q: Send + 'static,
        A: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let answer = self.engine.ask_reader(gathering, question)?;
        self.engine.receive(answer).await
    }

    /// [`Db::read`] for start-up code and tests, on a thread that may wait.
    pub fn read_blocking<T, E, F>(&self, name: &'static str, read: F) -> Result<T, E>
    where
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        wait(self.read(name, read))
    }

    /// Finishes what is waiting, copies the whole log into the file and ends the threads. Writes and
    /// reads that come later get [`StorageError::Closed`].
    pub async fn close(self) {
        let (done, told) = oneshot::channel();
        let closer = self.clone();
        // Joining threads waits; a runtime's thread should not.
        let spawned = Builder::new().name("sqlite-closer".into()).spawn(move || {
            closer.engine.close();
            // Nobody listens when the closing future was dropped; the file is closed all the same.
            let _ = done.send(());
        });
        match spawned {
            Ok(_) => drop(told.await),
            Err(_) => self.engine.close(),
        }
    }

    /// [`Db::close`] on a thread that may wait.
    pub fn close_blocking(&self) {
        self.engine.close();
    }

    /// Ends as a killed process would: nothing is drained, the log stays. For simulations of a crash.
    #[cfg(feature = "faults")]
    pub fn abandon(&self) {
        self.engine.abandon();
    }

    /// Calls `listener` with the cause when writing stops until the process starts anew; at once when it has.
    pub(crate) fn on_stop(&self, listener: impl Fn(&Arc<str>) + Send + Sync + 'static) {
        self.engine.on_stop(Box::new(listener));
    }

    /// The counters now.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// The log, when it is longer than its usual bound, with the processes that keep it.
    pub fn kept_log(&self) -> Option<KeptLog> {
        self.engine.kept_log()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.engine.path()
    }

    /// Tables, indexes and views as normalised text, one statement a line.
    pub async fn schema_text(&self) -> Result<String, StorageError> {
        self.read("sqlite.schema_text", |conn| Ok(migrate::text(conn)?)).await
    }
}
