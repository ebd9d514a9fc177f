//! Tokens as they were looked up last, for as long as nothing was committed that could have changed them.
//!
//! Every call with a token asks whose it is, and a connection that only reads finds its pages stale after every commit.
//!
//! - One process writes these books, so it knows of every change: each is counted after its commit and before its
//!   caller hears of it. What was looked up before the last change is not believed.
//! - A token that was not found is not kept: whoever guesses fills nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, PoisonError, RwLock};

use model::limits;

use crate::types::manage::ApiToken;
use crate::types::wayin::SecretHash;

/// See the module.
#[derive(Default)]
pub(super) struct Tokens {
    changes: Changes,
    found: RwLock<HashMap<SecretHash, Found>>,
}

struct Found {
    token: ApiToken,
    /// The changes counted before it was looked up.
    after: u64,
}

/// Changes of whatever decides who may ask.
#[derive(Clone, Default)]
pub(super) struct Changes(Arc<AtomicU64>);

/// Counted when dropped. It travels with the answer of the job that made the change, which the engine lets go
/// of after the commit, whether or not the caller still waits.
pub(super) struct Change(Changes);

impl Drop for Change {
    fn drop(&mut self) {
        let Changes(count) = &self.0;
        count.fetch_add(1, SeqCst);
    }
}

impl Changes {
    pub(super) fn one_more(self) -> Change {
        Change(self)
    }

    fn count(&self) -> u64 {
        self.0.load(SeqCst)
    }
}

impl Tokens {
    pub(super) fn changes(&self) -> Changes {
        self.changes.clone()
    }

    /// How many changes there were, to be asked before a token is looked up.
    pub(super) fn count(&self) -> u64 {
        self.changes.count()
    }

    pub(super) fn get(&self, hash: &SecretHash) -> Option<ApiToken> {
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        found.get(hash).filter(|found| found.after == self.changes.count()).map(|found| found.token.clone())
    }

    /// A token was found by a look that began after so many changes.
    pub(super) fn keep(&self, hash: SecretHash, token: &ApiToken, after: u64) {
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        if found.len() >= limits::TOKENS_REMEMBERED_MAX {
            found.clear();
        }
        found.insert(hash, Found { token: token.clone(), after });
    }
}
