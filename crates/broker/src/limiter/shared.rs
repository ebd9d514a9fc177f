//! The shared limiter: budgets in Redis, and this process's own while Redis is away.
//!
//! - Redis away means: no answer in [`LIMITER_ANSWER_TIMEOUT`], or an answer that is no verdict. Then this
//!   process's own budgets decide: the same two, starting from what this process itself was granted lately.
//!   Nobody gets an error, and no budget is open; with n processes a mesh may get n times its budget.
//! - Redis is tried again every [`LIMITER_RETRY_EVERY`], by one ask, over a fresh connection.
//! - What was charged through this process is free here for the rest of its window, wherever it was charged:
//!   no loss of Redis makes one process charge a message twice.
//!
//! [`LIMITER_RETRY_EVERY`]: model::limits::LIMITER_RETRY_EVERY

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use model::Clock;
use model::limits::LIMITER_ANSWER_TIMEOUT;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client};

use super::line::{Change, Generation, Line, Route};
use super::script::{Consume, NoVerdict, SERVER_TIME};
use super::{Ask, Budgets, Counters, Limiter, MemoryLimiter, Verdict};

/// Budgets kept in Redis, shared by every broker process that names it.
pub struct RedisLimiter {
    client: Client,
    consume: Consume,
    line: Mutex<Line<MultiplexedConnection>>,
    local: MemoryLimiter,
    clock: Arc<dyn Clock>,
    counters: Arc<Counters>,
    answer_timeout: Duration,
}

impl RedisLimiter {
    /// Connects, if Redis is there; otherwise begins with this process's own budgets.
    pub async fn open(
        client: Client,
        budgets: Budgets,
        clock: Arc<dyn Clock>,
        counters: Arc<Counters>,
    ) -> Self {
        Self::open_with(client, budgets, clock, counters, LIMITER_ANSWER_TIMEOUT).await
    }

    /// [`Self::open`], but Redis is away only after `answer_timeout`.
    pub(super) async fn open_with(
        client: Client,
        budgets: Budgets,
        clock: Arc<dyn Clock>,
        counters: Arc<Counters>,
        answer_timeout: Duration,
    ) -> Self {
        let limiter = Self {
            client,
            consume: Consume::new(budgets),
            line: Mutex::new(Line::new()),
            local: MemoryLimiter::new(budgets, Arc::clone(&clock), Arc::clone(&counters)),
            clock,
            counters,
            answer_timeout,
        };
        match limiter.in_time(limiter.connect()).await {
            Ok(connection) => {
                limiter.line().established(connection);
            }
            Err(error) => {
                limiter.counters.redis_went_away();
                tracing::warn!(%error, "redis is away at the start: this process's own budgets decide");
            }
        }
        limiter
    }

    /// The verdict of Redis, if it gives one.
    async fn ask_redis(&self, ask: &Ask) -> Option<Verdict> {
        // Taken out of the match: the lock must not be held while waiting.
        let route = self.line().route(self.clock.monotonic());
        match route {
            Route::Ask(connection, generation) => self.ask_over(connection, generation, ask).await,
            Route::Probe => self.probe(ask).await,
            Route::Local => None,
        }
    }

    async fn ask_over(
        &self,
        mut connection: MultiplexedConnection,
        generation: Generation,
        ask: &Ask,
    ) -> Option<Verdict> {
        match self.in_time(self.consume.invoke(&mut connection, ask, SERVER_TIME)).await {
            Ok(verdict) => Some(verdict),
            Err(error) => {
                match self.line().lost(generation, self.clock.monotonic()) {
                    Change::Changed => {
                        self.counters.redis_went_away();
                        tracing::warn!(%error, "redis is away: this process's own budgets decide");
                    }
                    Change::Unchanged => {}
                }
                None
            }
        }
    }

    async fn probe(&self, ask: &Ask) -> Option<Verdict> {
        let attempt = async {
            let mut connection = self.connect().await?;
            let verdict = self.consume.invoke(&mut connection, ask, SERVER_TIME).await?;
            Ok((connection, verdict))
        };
        match self.in_time(attempt).await {
            Ok((connection, verdict)) => {
                match self.line().established(connection) {
                    Change::Changed => {
                        self.counters.redis_came_back();
                        tracing::info!("redis is back: its budgets decide");
                    }
                    Change::Unchanged => {}
                }
                Some(verdict)
            }
            Err(error) => {
                tracing::debug!(%error, "redis is still away");
                None
            }
        }
    }

    async fn connect(&self) -> Result<MultiplexedConnection, NoVerdict> {
        // One bound around everything an ask does, instead of one for each step.
        let unbounded = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        Ok(self.client.get_multiplexed_async_connection_with_config(&unbounded).await?)
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, NoVerdict>>) -> Result<T, NoVerdict> {
        tokio::time::timeout(self.answer_timeout, work).await?
    }

    fn line(&self) -> MutexGuard<'_, Line<MultiplexedConnection>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Limiter for RedisLimiter {
    async fn consume(&self, ask: &Ask) -> Verdict {
        if self.local.remembers(ask) {
            return Verdict::AlreadyGranted;
        }
        match self.ask_redis(ask).await {
            Some(verdict) => {
                match verdict {
                    Verdict::Granted => self.local.record(ask),
                    Verdict::AlreadyGranted | Verdict::Denied { .. } => {}
                }
                verdict
            }
            None => {
                let verdict = self.local.decide(ask);
                match verdict {
                    Verdict::Granted => self.counters.granted_locally(),
                    Verdict::AlreadyGranted | Verdict::Denied { .. } => {}
                }
                verdict
            }
        }
    }
}
