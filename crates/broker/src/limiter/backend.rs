//! The choice of `--limiter`: embedded, or shared by many brokers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use model::Clock;
use redis::Client;

use super::{Budgets, Counters, Limiter, MemoryLimiter, RedisLimiter};

/// Where the budgets are kept. Written `memory` or `redis://…`.
#[derive(Clone)]
pub enum Backend {
    /// In this process; for one broker process.
    Memory,
    /// In a Redis that every broker process of the mesh names.
    Redis(Client),
}

/// `--limiter` does not name a backend.
#[derive(Debug, thiserror::Error)]
pub enum BackendUnknown {
    /// No address of Redis.
    #[error("limiter must be memory or a redis:// address: {0}")]
    Address(#[from] redis::RedisError),
    /// Redis behind TLS.
    #[error(
        "this program speaks to Redis without TLS: name a redis:// address on this machine, in a private network, \
         or the near end of a tunnel (stunnel, ssh -L)"
    )]
    Tls,
}

/// The limiter of a broker process. A Redis that is away does not delay the start by more than one answer's time.
pub async fn open(
    backend: Backend,
    budgets: Budgets,
    clock: Arc<dyn Clock>,
    counters: Arc<Counters>,
) -> Arc<dyn Limiter> {
    match backend {
        Backend::Memory => Arc::new(MemoryLimiter::new(budgets, clock, counters)),
        Backend::Redis(client) => Arc::new(RedisLimiter::open(client, budgets, clock, counters).await),
    }
}

impl FromStr for Backend {
    type Err = BackendUnknown;
    fn from_str(text: &str) -> Result<Self, BackendUnknown> {
        match text {
            "memory" => Ok(Self::Memory),
            address if address.starts_with("rediss://") => Err(BackendUnknown::Tls),
            address => Ok(Self::Redis(Client::open(address)?)),
        }
    }
}

impl fmt::Debug for Backend {
    /// Without the address: it may carry a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Redis(_) => f.write_str("redis"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_behind_tls_is_refused_with_the_remedy() {
        let refused = "rediss://cache:6379/".parse::<Backend>().unwrap_err();
        assert!(refused.to_string().contains("tunnel"), "{refused}");
        assert!(matches!("memory".parse(), Ok(Backend::Memory)));
        assert!(matches!("redis://cache:6379/".parse(), Ok(Backend::Redis(_))));
        assert!(matches!("cache".parse::<Backend>(), Err(BackendUnknown::Address(_))));
    }
}
