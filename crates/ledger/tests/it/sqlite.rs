//! The suite on SQLite.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ledger::conformance::Bench;
use ledger::{Ledger, SqliteLedger};
use model::Timestamp;
use sqlite::rusqlite::Connection;
use sqlite::{FileMark, MarkedBy};
use tempfile::TempDir;
use testkit::{ManualClock, SeededEntropy};

/// A file in a folder of its own, and a clock that stands until it is moved.
pub struct Sqlite {
    folder: TempDir,
    clock: Arc<ManualClock>,
    ledger: Option<Arc<SqliteLedger>>,
}

impl Sqlite {
    fn open(folder: &TempDir, clock: &Arc<ManualClock>) -> Arc<SqliteLedger> {
        // A seed of its own for every opening, or a reopened ledger would mint the ids it has.
        let seed = u64::from(std::process::id()) ^ clock_reading(clock);
        let path = folder.path().join("ledger.db");
        let (clock, entropy) = (Arc::clone(clock), Arc::new(SeededEntropy::new(seed)));
        Arc::new(SqliteLedger::open(&path, clock, entropy).unwrap())
    }

    fn connection(&self) -> Connection {
        Connection::open(self.folder.path().join("ledger.db")).unwrap()
    }
}

fn clock_reading(clock: &ManualClock) -> u64 {
    model::Clock::now(clock).as_micros().unsigned_abs()
}

#[async_trait]
impl Bench for Sqlite {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_800_000_000_000_000)));
        let ledger = Some(Self::open(&folder, &clock));
        Self { folder, clock, ledger }
    }

    fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(self.ledger.as_ref().expect("it is open between two calls of reopen")) as Arc<dyn Ledger>
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }

    fn set_ahead(&self, span: Duration) {
        self.clock.set_date(model::Clock::now(&*self.clock) + span);
    }

    fn set_back(&self, span: Duration) {
        let now = model::Clock::now(&*self.clock).as_micros();
        self.clock.set_date(Timestamp::from_micros(now - i64::try_from(span.as_micros()).unwrap()));
    }

    async fn reopen(&mut self) {
        let ledger = self.ledger.take().expect("it is open between two calls of reopen");
        ledger.db().clone().close().await;
        drop(ledger);
        self.clock.advance(Duration::from_micros(1));
        self.ledger = Some(Self::open(&self.folder, &self.clock));
    }

    async fn run(&self, sql: &str) {
        self.connection().execute_batch(sql).unwrap();
    }

    async fn count(&self, table: &str) -> u64 {
        let count: i64 = self
            .connection()
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
            .unwrap();
        count.unsigned_abs()
    }
}

ledger::conformance! { crate::sqlite::Sqlite }

#[tokio::test]
async fn a_loss_is_noted_once_although_a_kill_leaves_the_mark_that_told_of_it() {
    let mut bench = Sqlite::start().await;
    let path = bench.folder.path().join("ledger.db");
    let mark = |bench: &Sqlite, by| {
        let at_us = model::Clock::now(&*bench.clock).as_micros();
        FileMark { place: u64::MAX, at_us, by }
    };
    let mut losses = 0;
    for by in [MarkedBy::Process, MarkedBy::Restore { backup_at_us: 7 }] {
        bench.advance(Duration::from_secs(1));
        let mark = mark(&bench, by);
        losses += 1;
        for _ in 0..2 {
            mark.write(&path).unwrap();
            bench.reopen().await;
            assert_eq!(bench.count("went_back").await, losses, "{by:?}");
            assert_ne!(FileMark::read(&path).unwrap(), Some(mark.clone()), "the mark is renewed");
        }
    }
}
