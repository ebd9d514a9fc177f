//! The way to the server, and what runs beside the doors.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

use model::{Entropy, SystemClock};

use super::super::ageing;
use super::super::batch::{Queue, WRITERS};
use super::super::hub_batch::HubQueue;
use super::super::lookup::{LookUps, READERS};
use super::super::schema::{self, OpenError};
use super::super::session::{self, CONNECTIONS_MAX, Core};
use super::super::sql;
use super::super::trouble::PostgresError;
use super::super::wake::Wake;
use super::PostgresLedger;
use crate::ageing::ClockWatch;
use crate::regressed::Regressions;

impl PostgresLedger {
    /// Connects to the database at `url`, brings its tables up to date and starts the writers.
    pub async fn open(url: &str, entropy: Arc<dyn Entropy>) -> Result<Self, OpenError> {
        let config = session::address(url)?;
        let pool = session::pool(config.clone(), CONNECTIONS_MAX)?;
        let writers = session::pool(config.clone(), WRITERS + READERS)?;
        let core = Arc::new(Core {
            pool,
            writers,
            entropy,
            clock_shift: AtomicI64::new(0),
            regressions: Regressions::new(),
            running: SystemClock::start(),
            running_shift: AtomicU64::new(0),
            watch: ClockWatch::new(),
        });
        let mut client = core.connection().await.map_err(PostgresError::from)?;
        schema::migrate(&mut client).await?;
        let record = client.query_opt(sql!("ageing_record_read"), &[]).await.map_err(PostgresError::from)?;
        if let Some((record, forgotten)) = record.and_then(|row| ageing::records(&row).ok()) {
            core.watch.found(record, forgotten, core.running());
        }
        drop(client);
        let wake = Wake::new();
        let queue = Queue::start(&core, &wake);
        let hub_queue = HubQueue::start(&core, &wake);
        let look_ups = LookUps::start(&core);
        let bell = wake.start(config);
        Ok(Self { core, queue, hub_queue, look_ups, wake, _bell: bell })
    }

    /// Lets time pass for the store's clock and this process, for the conformance suite.
    #[cfg(feature = "conformance")]
    pub fn pass_time(&self, micros: u64) {
        self.core.running_shift.fetch_add(micros, std::sync::atomic::Ordering::Relaxed);
        self.shift_clock(i64::try_from(micros).unwrap_or(i64::MAX));
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
