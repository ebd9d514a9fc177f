//! The embedded limiter where a ledger asks it by itself.
//!
//! An id has to be looked up before its message is paid for (B0). A ledger on a file looks it up once more where it writes,
//! because only there nobody can come in between; when it asks for the budget there, too, one look is enough. That is for
//! senders who have room: one who is over its budget shall not take turns of the writer to hear so.

use std::sync::Arc;
use std::time::Duration;

use ledger::{Budget, Submission};
use model::{MemberId, MeshId};

use super::{Ask, MemoryLimiter, Verdict};

/// One mesh's budgets.
pub(crate) struct Within {
    limiter: Arc<MemoryLimiter>,
    mesh: MeshId,
}

impl Within {
    pub(crate) fn new(limiter: Arc<MemoryLimiter>, mesh: MeshId) -> Self {
        Self { limiter, mesh }
    }

    /// Whether `member` could pay for so many messages now.
    pub(crate) fn has_room(&self, member: MemberId, messages: usize) -> bool {
        let units = u32::try_from(messages).unwrap_or(u32::MAX);
        self.limiter.has_room(self.mesh, member, units)
    }
}

impl Budget for Within {
    fn take(&self, sender: MemberId, message: &Submission) -> Result<(), Duration> {
        let ask = Ask::of(self.mesh, sender, &message.client_message_id, &message.fingerprint);
        match self.limiter.decide(&ask) {
            Verdict::Granted | Verdict::AlreadyGranted => Ok(()),
            Verdict::Denied { retry_after } => Err(retry_after),
        }
    }
}
