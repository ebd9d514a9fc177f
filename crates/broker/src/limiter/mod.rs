//! Budgets: how much a member and a mesh may have accepted, and how fast.
//!
//! Invariants:
//!
//! - Two budgets, one per (mesh, member) and one per mesh; both are checked before either is charged.
//! - One message costs its units once: at most one charge per (mesh, member, client_message_id, fingerprint
//!   prefix) and window while the limiter keeps its marks, so that a retry after a lost answer is free.
//! - A refusal is transient and says when to come back; a limiter never answers with an error.

use async_trait::async_trait;
use model::{ClientMessageId, MemberId, MeshId};
use std::time::Duration;

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

/// The budgets' keeper; asked after the known-id look-up and before the accept transaction.
#[async_trait]
pub trait Limiter: Send + Sync {
    /// Takes the ask's units, once.
    async fn consume(&self, ask: &Ask) -> Verdict;
}
