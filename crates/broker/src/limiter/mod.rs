//! Budgets: how much a member and a mesh may have accepted, and how fast.
//!
//! Invariants:
//!
//! - Two budgets, one per (mesh, member) and one per mesh; both are checked before either is charged.
//! - One message costs its units once: at most one charge per (mesh, member, client_message_id, fingerprint
//!   prefix) and window while the limiter keeps its marks, so that a retry after a lost answer is free. After the
//!   marks were lost, and while Redis is away, at most one per broker process and window.
//! - A refusal is transient and says when to come back; a limiter never answers with an error. What it forgets
//!   costs budget, never a message: which ids are known is the ledger's fact.
//! - Every budget is measured on the limiter's own clock: the process's monotonic one, or the Redis server's.
//! - Retries are free of budget but not of bound: [`RequestLimiter`] counts every request, before any look-up.

mod backend;
mod buckets;
mod counters;
mod line;
mod marks;
mod memory;
mod request;
mod script;
mod shared;

use std::time::Duration;

use async_trait::async_trait;
use model::gcra::Quota;
use model::limits::{MEMBER_RATE_DEFAULT, MESH_RATE_DEFAULT};
use model::{ClientMessageId, MemberId, MeshId};

pub use backend::{Backend, BackendUnknown, open};
pub use counters::Counters;
pub use memory::MemoryLimiter;
pub use model::gcra::TooSoon;
pub use request::RequestLimiter;
pub use shared::RedisLimiter;

/// A planted bug (CE5): what a process charged is not remembered by it.
const NO_MARKS: &str = "broker.no_marks";

/// One message that asks for its units.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// The mesh whose ceiling counts.
    pub mesh: MeshId,
    /// The sender, authenticated.
    pub member: MemberId,
    /// The caller's idempotency key.
    pub client_message_id: ClientMessageId,
    /// First eight bytes of the fingerprint: an id reused for another text is another message, and pays.
    pub fingerprint_prefix: [u8; 8],
    /// Units, 1 for an ordinary message.
    pub cost: u32,
}

/// What the limiter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Charged now.
    Granted,
    /// Charged earlier in this window; nothing was charged now.
    AlreadyGranted,
    /// Over a budget; nothing was charged.
    Denied {
        /// When the same ask may pass, if nobody else spends until then.
        retry_after: Duration,
    },
}

/// The two budgets every ask is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Of one member in one mesh.
    pub member: Quota,
    /// Of all members of one mesh together.
    pub mesh: Quota,
}

/// The budgets' keeper; asked after the known-id look-up and before the accept transaction.
#[async_trait]
pub trait Limiter: Send + Sync {
    /// Takes the ask's units, once. Asks may be made side by side: one that was granted and then not used costs
    /// nothing when it comes again within the window.
    async fn consume(&self, ask: &Ask) -> Verdict;
}

impl Default for Budgets {
    fn default() -> Self {
        let quota = |rate| Quota::per_second(rate).expect("the default rates are within the named bounds");
        Self { member: quota(MEMBER_RATE_DEFAULT), mesh: quota(MESH_RATE_DEFAULT) }
    }
}

impl Budgets {
    /// How long a charged message is remembered: twice the time in which a spent budget fills.
    fn mark_ttl(&self) -> Duration {
        self.member.period().max(self.mesh.period()) * 2
    }
}

#[cfg(test)]
mod tests;
