//! Telling waiting readers, here and at the other brokers, that something was committed.
//!
//! - A notification is sent after the commit, by a session of its own, never inside an accept's transaction,
//!   and commits that follow each other closely share one.
//! - It carries nothing and may be lost: readers are woken every so often all the same.

use std::sync::Arc;

use futures_util::future::poll_fn;
use model::limits::SAFETY_POLL_EVERY;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use tracing::{debug, warn};

use super::sql;

/// Notifications read from the socket and not yet looked at: one says as much as a hundred.
const HEARD_MAX: usize = 1;

/// A hand on the bell.
#[derive(Clone)]
pub(super) struct Wake {
    readers: watch::Sender<()>,
    to_tell: Arc<Notify>,
}

/// The session that rings at the other brokers and hears them; gone when dropped.
pub(super) struct Bell {
    task: AbortHandle,
}

impl Wake {
    pub fn new() -> Self {
        Self { readers: watch::Sender::new(()), to_tell: Arc::new(Notify::new()) }
    }

    /// Something was committed here.
    pub fn committed(&self) {
        self.readers.send_replace(());
        self.to_tell.notify_one();
    }

    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.readers.subscribe()
    }

    /// Starts the session; it comes back by itself when it is lost.
    pub fn start(&self, config: Config) -> Bell {
        let wake = self.clone();
        let task = tokio::spawn(async move {
            loop {
                if let Err(error) = wake.ring_and_hear(&config).await {
                    debug!(%error, "the waking session of PostgreSQL ended; a new one is made");
                }
                // Whatever was committed while nobody listened.
                wake.readers.send_replace(());
                sleep(SAFETY_POLL_EVERY).await;
            }
        });
        Bell { task: task.abort_handle() }
    }

    async fn ring_and_hear(&self, config: &Config) -> Result<(), tokio_postgres::Error> {
        let (client, mut connection) = config.connect(NoTls).await?;
        let (heard, mut rings) = mpsc::channel(HEARD_MAX);
        let driver = tokio::spawn(async move {
            while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    // Full: a ring that nobody has looked at yet says the same.
                    Ok(AsyncMessage::Notification(ring)) => drop(heard.try_send(ring.process_id())),
                    Ok(_) => {}
                    Err(error) => {
                        warn!(%error, "the waking session of PostgreSQL was lost");
                        return;
                    }
                }
            }
        });
        let ended = self.serve(&client, &mut rings).await;
        driver.abort();
        ended
    }

    async fn serve(
        &self,
        client: &Client,
        rings: &mut mpsc::Receiver<i32>,
    ) -> Result<(), tokio_postgres::Error> {
        client.batch_execute(sql!("listen")).await?;
        let own: i32 = client.query_one(sql!("backend"), &[]).await?.get(0);
        let mut safety = interval(SAFETY_POLL_EVERY);
        safety.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                ring = rings.recv() => match ring {
                    Some(from) if from == own => {}
                    Some(_) => self.readers.send_replace(()),
                    None => return Ok(()),
                },
                // One permit is kept while a notification is on its way, so a burst of commits rings twice.
                () = self.to_tell.notified() => client.batch_execute(sql!("notify")).await?,
                _ = safety.tick() => self.readers.send_replace(()),
            }
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.task.abort();
    }
}
