//! The way to the server, and what runs beside the doors.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use model::Entropy;

use super::super::batch::{Queue, WRITERS};
use super::super::hub_batch::HubQueue;
use super::super::lookup::{LookUps, READERS};
use super::super::schema::{self, OpenError};
use super::super::session::{self, CONNECTIONS_MAX, Core};
use super::super::trouble::PostgresError;
use super::super::wake::Wake;
use super::PostgresLedger;
use crate::regressed::Regressions;

impl PostgresLedger {
    /// Connects to the database at `url`, brings its tables up to date and starts the writers.
    pub async fn open(url: &str, entropy: Arc<dyn Entropy>) -> Result<Self, OpenError> {
        let config = session::address(url)?;
        let pool = session::pool(config.clone(), CONNECTIONS_MAX)?;
        let writers = session::pool(config.clone(), WRITERS + READERS)?;
        let (clock_shift, regressions) = (AtomicI64::new(0), Regressions::new());
        let core = Arc::new(Core { pool, writers, entropy, clock_shift, regressions });
        let mut client = core.connection().await.map_err(PostgresError::from)?;
        schema::migrate(&mut client).await?;
        drop(client);
        let wake = Wake::new();
        let queue = Queue::start(&core, &wake);
        let hub_queue = HubQueue::start(&core, &wake);
        let look_ups = LookUps::start(&core);
        let bell = wake.start(config);
        Ok(Self { core, queue, hub_queue, look_ups, wake, _bell: bell })
    }

    /// Moves the store's clock against the database's, for the conformance suite.
    #[cfg(feature = "conformance")]
    pub fn shift_clock(&self, micros: i64) {
        self.core.clock_shift.fetch_add(micros, std::sync::atomic::Ordering::Relaxed);
    }

    /// Connections now: open, and of these in use.
    pub fn connections(&self) -> (usize, usize) {
        let pools = [self.core.pool.status(), self.core.writers.status()];
        let open = pools.iter().map(|pool| pool.size).sum();
        (open, pools.iter().map(|pool| pool.size.saturating_sub(pool.available)).sum())
    }
}
