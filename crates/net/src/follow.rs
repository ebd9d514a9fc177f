//! The one cursor loop: read after the cursor; when there is nothing, wait for a wake or the safety poll; read
//! again. Catch-up and live are the same path.
//!
//! - A wake carries nothing. Whoever is woken reads the store, so a lost wake costs delay, never a row.
//! - Wakes are heard from before the read on: a row committed between read and wait wakes the wait.
//! - The cursor moves only when rows are handed out, to the last of them: no gap and no repeat.

use std::future::Future;
use std::time::Duration;

use model::limits;
use tokio::sync::watch;
use tokio::time::timeout;

/// Rung after a commit; heard by everyone who listens.
#[derive(Clone, Debug, Default)]
pub struct Bell(watch::Sender<()>);

/// Hears a [`Bell`]. Rings between two waits count as one.
#[derive(Clone, Debug)]
pub struct Ear(watch::Receiver<()>);

/// Rows in an order that commits keep: whatever is committed later is read later.
pub trait Log: Send {
    /// A row as it is read.
    type Row: Send;
    /// A place between two rows.
    type Cursor: Send + Sync;
    /// Why the log could not be read.
    type Error;

    /// The rows after `cursor`, oldest first, as many as one batch should have; none when there are none yet.
    fn read_after(
        &mut self,
        cursor: &Self::Cursor,
    ) -> impl Future<Output = Result<Vec<Self::Row>, Self::Error>> + Send;

    /// The place right after `row`.
    fn place(&self, row: &Self::Row) -> Self::Cursor;
}

/// A reader of a log that waits at its end.
pub struct Follow<L: Log> {
    log: L,
    cursor: L::Cursor,
    ear: Ear,
    poll_every: Duration,
}

impl Bell {
    /// A bell nobody listens to yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes everyone who listens. Rung after the commit, never before: whoever begins to listen now will read it.
    pub fn ring(&self) {
        // A ring takes and gives back a dozen locks, which all threads that ring share.
        if self.0.receiver_count() > 0 {
            self.0.send_replace(());
        }
    }

    /// Listens from now on.
    pub fn listen(&self) -> Ear {
        Ear(self.0.subscribe())
    }
}

impl Ear {
    /// Forgets the rings so far. Before a read: what was rung for by now will be seen by it.
    pub fn reset(&mut self) {
        self.0.mark_unchanged();
    }

    /// Until a ring since the last reset or wait, at most `poll_every`.
    pub async fn wait(&mut self, poll_every: Duration) {
        match timeout(poll_every, self.0.changed()).await {
            Ok(Ok(())) | Err(_) => {}
            // The bell is gone, and with it everyone who could ring; the store may still be written by others.
            Ok(Err(_)) => tokio::time::sleep(poll_every).await,
        }
    }
}

impl<L: Log> Follow<L> {
    /// Follows `log` from `cursor` on, woken through `ear`.
    pub fn new(log: L, cursor: L::Cursor, ear: Ear) -> Self {
        Self { log, cursor, ear, poll_every: limits::SAFETY_POLL_EVERY }
    }

    /// The same with another safety poll.
    pub fn with_poll_every(self, poll_every: Duration) -> Self {
        Self { poll_every, ..self }
    }

    /// The next rows, at least one; waits until there are some.
    ///
    /// Cancel-safe: the cursor moves only with the rows that are returned. Stopping and other events are the
    /// caller's `select!`.
    pub async fn next(&mut self) -> Result<Vec<L::Row>, L::Error> {
        loop {
            self.ear.reset();
            let rows = self.log.read_after(&self.cursor).await?;
            if let Some(last) = rows.last() {
                self.cursor = self.log.place(last);
                return Ok(rows);
            }
            self.ear.wait(self.poll_every).await;
        }
    }

    /// Where the rows handed out so far end.
    pub fn cursor(&self) -> &L::Cursor {
        &self.cursor
    }

    /// The log, for what its caller wants to change about the reading (a page's size, who asks).
    pub fn log_mut(&mut self) -> &mut L {
        &mut self.log
    }
}
