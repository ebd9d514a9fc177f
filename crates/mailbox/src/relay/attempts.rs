//! Live attempts that are under way, and the writes among them for which a copy's caller holds a receipt.
//!
//! - Promises are given and asked about by the writer's jobs alone: one is given before a write is forgotten, or never.
//! - Memory is enough: a crash leaves the row itself.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::LeaseToken;

/// By the lease under which each was stored. At most one for each request that is being answered.
#[derive(Default)]
pub(super) struct LiveAttempts(Mutex<HashMap<LeaseToken, Promise>>);

/// Who rests on a write while its own caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    Nobody,
    CopysCaller,
}

impl LiveAttempts {
    /// Before its row can be found by anybody.
    pub(super) fn begin(&self, lease: LeaseToken) {
        self.attempts().insert(lease, Promise::Nobody);
    }

    /// A copy of the write is answered with a receipt.
    pub(super) fn promise(&self, lease: LeaseToken) {
        if let Some(promise) = self.attempts().get_mut(&lease) {
            *promise = Promise::CopysCaller;
        }
    }

    /// Whether nobody but the write's own caller rests on it.
    pub(super) fn may_be_forgotten(&self, lease: LeaseToken) -> bool {
        self.attempts().get(&lease) == Some(&Promise::Nobody)
    }

    pub(super) fn end(&self, lease: LeaseToken) {
        self.attempts().remove(&lease);
    }

    fn attempts(&self) -> MutexGuard<'_, HashMap<LeaseToken, Promise>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
