//! The suite on PostgreSQL, and what only a server can do to a ledger.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ledger::conformance::Bench;
use ledger::{Ledger, PostgresLedger};
use model::OsEntropy;
use testkit::postgres::{Database, URL_VARIABLE};
use tokio_postgres::{Client, NoTls};

mod brokers;
mod failover;
mod lost;
mod mail;
mod server;

/// A database of its own on the run's server.
pub struct Postgres {
    database: Database,
    ledger: Option<Arc<PostgresLedger>>,
}

/// An empty database, or a sentence that says how to get one.
pub fn database() -> Database {
    assert!(
        std::env::var_os(URL_VARIABLE).is_some(),
        "{URL_VARIABLE} names no PostgreSQL server; `cargo xtask test` starts one and sets it"
    );
    Database::create().unwrap()
}

async fn open(database: &Database) -> Arc<PostgresLedger> {
    Arc::new(PostgresLedger::open(&database.url(), Arc::new(OsEntropy)).await.unwrap())
}

async fn client(database: &Database) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Postgres {
    fn shift(&self, micros: i64) {
        self.ledger.as_ref().expect("it is open between two calls of reopen").shift_clock(micros);
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap()
}

#[async_trait]
impl Bench for Postgres {
    async fn start() -> Self {
        let database = database();
        let ledger = Some(open(&database).await);
        Self { database, ledger }
    }

    fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(self.ledger.as_ref().expect("it is open between two calls of reopen")) as Arc<dyn Ledger>
    }

    fn advance(&self, span: Duration) {
        let passed = u64::try_from(span.as_micros()).unwrap();
        self.ledger.as_ref().expect("it is open between two calls of reopen").pass_time(passed);
    }

    fn set_ahead(&self, span: Duration) {
        self.shift(micros(span));
    }

    fn set_back(&self, span: Duration) {
        self.shift(-micros(span));
    }

    async fn reopen(&mut self) {
        drop(self.ledger.take());
        self.ledger = Some(open(&self.database).await);
    }

    async fn run(&self, sql: &str) {
        client(&self.database).await.batch_execute(sql).await.unwrap();
    }

    async fn count(&self, table: &str) -> u64 {
        let sql = format!("SELECT count(*) FROM {table}");
        let count: i64 = client(&self.database).await.query_one(&sql, &[]).await.unwrap().get(0);
        count.unsigned_abs()
    }
}

ledger::conformance! { crate::postgres::Postgres }
