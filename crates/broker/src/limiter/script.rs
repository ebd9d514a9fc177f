//! The limiter's rule inside Redis: one script, one round trip.
//!
//! - The script computes what [`model::gcra`] computes; a test holds them against each other.
//! - Every key it writes expires. All keys of one ask carry the hash tag `{mesh}`, so that a cluster keeps them
//!   together.

use std::time::Duration;

use redis::aio::ConnectionLike;
use redis::{RedisError, Script};

use super::{Ask, Budgets, Verdict};

/// Asks by the server's own clock.
pub(super) const SERVER_TIME: &str = "";

pub(super) struct Consume {
    script: Script,
    budgets: Budgets,
}

/// Redis gave no verdict.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoVerdict {
    #[error("{0}")]
    Redis(#[from] RedisError),
    #[error("no answer in time")]
    Timeout(#[from] tokio::time::error::Elapsed),
    #[error("an answer that is none of ours: {0} {1}")]
    Unreadable(u64, u64),
}

impl Consume {
    pub(super) fn new(budgets: Budgets) -> Self {
        Self { script: Script::new(include_str!("consume.lua")), budgets }
    }

    /// Takes the ask's units. `instant` is [`SERVER_TIME`], or microseconds.
    pub(super) async fn invoke(
        &self,
        connection: &mut impl ConnectionLike,
        ask: &Ask,
        instant: &str,
    ) -> Result<Verdict, NoVerdict> {
        let Budgets { member, mesh } = &self.budgets;
        let mut invocation = self.script.prepare_invoke();
        for key in keys(ask) {
            invocation.key(key);
        }
        for span in [
            member.cost(ask.cost),
            member.period(),
            mesh.cost(ask.cost),
            mesh.period(),
            self.budgets.mark_ttl(),
        ] {
            invocation.arg(micros(span));
        }
        match invocation.arg(instant).invoke_async(connection).await? {
            (0, _) => Ok(Verdict::Granted),
            (1, _) => Ok(Verdict::AlreadyGranted),
            (2, wait) => Ok(Verdict::Denied { retry_after: Duration::from_micros(wait) }),
            (word, wait) => Err(NoVerdict::Unreadable(word, wait)),
        }
    }
}

/// Mark, member's budget, mesh's budget.
pub(super) fn keys(ask: &Ask) -> [String; 3] {
    let Ask { mesh, member, client_message_id, fingerprint_prefix, cost: _ } = ask;
    let fingerprint_prefix = u64::from_be_bytes(*fingerprint_prefix);
    [
        format!("rli:{{{mesh}}}:{member}:{}:{fingerprint_prefix:016x}", client_message_id.as_str()),
        format!("rl:{{{mesh}}}:{member}"),
        format!("rl:{{{mesh}}}"),
    ]
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).expect("a budget's spans are bounded by days")
}
