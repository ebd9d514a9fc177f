//! Connections: how they are made, what they promise, and transactions that always end.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use futures_util::future::try_join;
use model::ageing::ForgottenUpto;
use model::outbox::DedupeWindow;
use model::{Clock, Entropy, SystemClock, Timestamp};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row, Statement};

use super::schema::OpenError;
use super::sql;
use super::trouble::PostgresError;
use crate::StorageError;
use crate::ageing::ClockWatch;
use crate::planted::clock_ahead_us;
use crate::regressed::Regressions;
use crate::rules::IdRetention;

/// Connections of one broker process beside the writers'. More do not help on few cores.
pub(super) const CONNECTIONS_MAX: usize = 10;
/// Waiting for a connection, or for the server to take a new one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What sessions share.
pub(super) struct Core {
    pub pool: Pool,
    /// The accepting writers' and look-ups' own: whoever reads much cannot keep messages from being accepted.
    pub writers: Pool,
    pub entropy: Arc<dyn Entropy>,
    /// Microseconds added to the database's clock: zero outside the conformance suite.
    pub clock_shift: AtomicI64,
    pub regressions: Regressions,
    /// This process's running time.
    pub running: SystemClock,
    /// Microseconds added to it: zero outside the conformance suite.
    pub running_shift: AtomicU64,
    pub watch: ClockWatch,
}

/// How a transaction sees the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Writes, under READ COMMITTED.
    Write,
    /// Reads from one snapshot.
    Read,
}

/// A transaction. Dropped before its end, it takes its connection with it, so that the server rolls back and
/// nobody inherits it.
pub(super) struct Tx {
    client: Option<Object>,
    core: Arc<Core>,
    /// Store time at its begin.
    pub now: Timestamp,
}

/// The values of `sslmode` that want more than [`NoTls`] gives.
const TLS_MODES: [&str; 3] = ["require", "verify-ca", "verify-full"];

/// Reads the store's address. One that asks for TLS is refused by name, before anything is said in the clear.
pub(super) fn address(url: &str) -> Result<Config, OpenError> {
    if TLS_MODES.iter().any(|mode| url.contains(&format!("sslmode={mode}"))) {
        return Err(OpenError::Tls);
    }
    Config::from_str(url).map_err(|error| OpenError::Address(error.to_string()))
}

/// A pool whose every session was set up and checked.
pub(super) fn pool(config: Config, connections: usize) -> Result<Pool, PostgresError> {
    let manager =
        Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
    let set_up = Hook::async_fn(|client: &mut deadpool_postgres::ClientWrapper, _| {
        Box::pin(async move {
            client.batch_execute(sql!("session")).await.map_err(HookError::Backend)?;
            check_durable(client).await
        })
    });
    let built = Pool::builder(manager)
        .max_size(connections)
        .runtime(Runtime::Tokio1)
        .timeouts(deadpool_postgres::Timeouts {
            wait: Some(CONNECT_TIMEOUT),
            create: Some(CONNECT_TIMEOUT),
            recycle: Some(CONNECT_TIMEOUT),
        })
        .post_create(set_up)
        .build();
    built.map_err(|error| PostgresError::Unreachable { detail: error.to_string() })
}

/// An answer must mean "on disk": checked on every session, because a setting may differ by role or change.
async fn check_durable(client: &tokio_postgres::Client) -> Result<(), HookError> {
    let row = client.query_one(sql!("durability"), &[]).await.map_err(HookError::Backend)?;
    match not_durable(&row.get::<_, String>(0), &row.get::<_, String>(1)) {
        Some(error) => Err(HookError::message(error.to_string())),
        None => Ok(()),
    }
}

/// What keeps commits from being synced, if anything does.
pub(super) fn not_durable(synchronous_commit: &str, fsync: &str) -> Option<PostgresError> {
    match (synchronous_commit, fsync) {
        ("off", _) => Some(PostgresError::NotDurable {
            setting: "synchronous_commit",
            value: synchronous_commit.into(),
        }),
        (_, "off") => Some(PostgresError::NotDurable { setting: "fsync", value: fsync.into() }),
        (_, _) => None,
    }
}

impl Core {
    pub async fn connection(&self) -> Result<Object, PoolError> {
        self.pool.get().await
    }

    /// One statement outside any transaction.
    pub async fn ask(
        &self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StorageError> {
        Self::ask_on(&self.pool, sql, params).await
    }

    /// [`Core::ask`] for what an accept waits for.
    pub async fn look_up(
        &self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StorageError> {
        Self::ask_on(&self.writers, sql, params).await
    }

    async fn ask_on(
        pool: &Pool,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StorageError> {
        let client = pool.get().await?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.query(&statement, params).await?)
    }

    /// The database's clock, moved by the shift.
    pub async fn now(&self) -> Result<Timestamp, StorageError> {
        let rows = self.ask(sql!("now"), &[]).await?;
        let micros: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        Ok(self.shifted(micros))
    }

    /// Running time, moved by the shift.
    pub fn running(&self) -> Duration {
        self.running.monotonic() + Duration::from_micros(self.running_shift.load(Relaxed))
    }

    fn shifted(&self, micros: i64) -> Timestamp {
        Timestamp::from_micros(micros + self.clock_shift.load(Relaxed) + clock_ahead_us())
    }

    /// Begins, and reads the clock in the same round trip.
    pub async fn begin(self: &Arc<Self>, mode: Mode) -> Result<Tx, StorageError> {
        self.begin_on(&self.pool, mode).await
    }

    /// [`Core::begin`] for a writer's batch.
    pub async fn begin_batch(self: &Arc<Self>) -> Result<Tx, StorageError> {
        self.begin_on(&self.writers, Mode::Write).await
    }

    /// A writer's connection, on which [`Tx::open`] is still to be sent, before anything else.
    pub async fn unbegun_batch(self: &Arc<Self>) -> Result<Tx, StorageError> {
        let client = Some(self.writers.get().await?);
        Ok(Tx { client, core: Arc::clone(self), now: Timestamp::default() })
    }

    async fn begin_on(self: &Arc<Self>, pool: &Pool, mode: Mode) -> Result<Tx, StorageError> {
        let mut tx =
            Tx { client: Some(pool.get().await?), core: Arc::clone(self), now: Timestamp::default() };
        tx.now = tx.begin(mode).await?;
        Ok(tx)
    }
}

impl Tx {
    /// Begins, and answers with store time. The first poll sends the beginning: what is polled after it is inside.
    pub async fn begin(&self, mode: Mode) -> Result<Timestamp, StorageError> {
        let client = self.client();
        let clock = async {
            let clock = self.prepare(sql!("now")).await?;
            Ok::<_, StorageError>(client.query_one(&clock, &[]).await?)
        };
        let ((), row) = try_join(self.open(mode), clock).await?;
        Ok(self.shifted(row.try_get(0)?))
    }

    /// [`Tx::begin`] for who reads the clock by itself.
    pub async fn open(&self, mode: Mode) -> Result<(), StorageError> {
        let begin = match mode {
            Mode::Write => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Mode::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        };
        Ok(self.client().batch_execute(begin).await?)
    }

    /// Store time from the database's clock.
    pub fn shifted(&self, micros: i64) -> Timestamp {
        self.core.shifted(micros)
    }

    /// The statement, prepared once per connection.
    pub async fn prepare(&self, sql: &'static str) -> Result<Statement, StorageError> {
        Ok(self.object().prepare_cached(sql).await?)
    }

    /// At most one row.
    pub async fn one(
        &self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, StorageError> {
        Ok(self.client().query_opt(&self.prepare(sql).await?, params).await?)
    }

    /// All rows.
    pub async fn all(
        &self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StorageError> {
        Ok(self.client().query(&self.prepare(sql).await?, params).await?)
    }

    /// Runs a statement and counts what it changed.
    pub async fn change(
        &self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, StorageError> {
        Ok(self.client().execute(&self.prepare(sql).await?, params).await?)
    }

    /// For pipelines.
    pub fn client(&self) -> &tokio_postgres::Client {
        self.object()
    }

    fn object(&self) -> &Object {
        self.client.as_ref().expect("a transaction holds its connection until it ends")
    }

    /// Running time of this process.
    pub fn running(&self) -> Duration {
        self.core.running()
    }

    /// What this process has seen of the clock.
    pub fn watch(&self) -> &ClockWatch {
        &self.core.watch
    }

    /// Which ids may be forgotten at `now`.
    pub fn forgotten_upto(&self, now: Timestamp) -> ForgottenUpto {
        self.core.watch.forgotten_upto(now, self.core.running())
    }

    /// How long ids are kept.
    pub fn id_retention(&self, window: DedupeWindow) -> IdRetention {
        IdRetention { window, counted_from: self.core.watch.reached() }
    }

    /// Source of ids.
    pub fn entropy(&self) -> &dyn Entropy {
        &*self.core.entropy
    }

    /// Ends it; an `Ok` means synced.
    pub async fn commit(mut self) -> Result<(), StorageError> {
        self.client().batch_execute("COMMIT").await?;
        self.ended();
        Ok(())
    }

    /// Ends it without a trace.
    pub async fn roll_back(mut self) {
        if self.client().batch_execute("ROLLBACK").await.is_ok() {
            self.ended();
        }
    }

    /// The transaction was ended by a pipeline; the connection may be used again.
    pub fn ended(&mut self) {
        drop(self.client.take());
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Object::take(client));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OpenError, address, not_durable};

    #[test]
    fn an_address_that_asks_for_tls_is_refused_with_the_remedy() {
        for mode in ["require", "verify-ca", "verify-full"] {
            let refused = address(&format!("postgres://u@db/mesh?sslmode={mode}")).err();
            assert!(matches!(refused, Some(OpenError::Tls)), "{mode}");
        }
        assert!(OpenError::Tls.to_string().contains("tunnel"));
        for plain in ["postgres://u@db/mesh", "postgres://u@db/mesh?sslmode=disable"] {
            assert!(address(plain).is_ok(), "{plain}");
        }
    }

    #[test]
    fn a_session_that_answers_before_the_disk_does_is_refused() {
        for (synchronous_commit, fsync, refused) in [
            ("on", "on", false),
            ("remote_apply", "on", false),
            ("remote_write", "on", false),
            ("local", "on", false),
            ("off", "on", true),
            ("on", "off", true),
            ("off", "off", true),
        ] {
            let found = not_durable(synchronous_commit, fsync).is_some();
            assert_eq!(found, refused, "{synchronous_commit} {fsync}");
        }
    }
}
