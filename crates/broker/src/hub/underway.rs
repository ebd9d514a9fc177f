//! Keys whose request is under way in this process. A second copy is told to come back instead of waiting in line;
//! correctness does not rest on it, the ledger's transaction looks again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use model::{ClientMessageId, MemberId};

type Keys = HashSet<(MemberId, ClientMessageId)>;

/// As many as requests are under way: the door's own bound.
#[derive(Clone, Default)]
pub(crate) struct UnderWay(Arc<Mutex<Keys>>);

/// A request that holds its key; dropped, it lets go.
pub(super) struct Holding {
    keys: UnderWay,
    key: (MemberId, ClientMessageId),
}

impl UnderWay {
    /// `None`: a copy is under way.
    pub(super) fn hold(&self, principal: MemberId, key: &ClientMessageId) -> Option<Holding> {
        let key = (principal, key.clone());
        self.locked(|keys| keys.insert(key.clone())).then(|| Holding { keys: self.clone(), key })
    }

    /// A set is whole between any two calls, whoever panicked.
    fn locked<T>(&self, act: impl FnOnce(&mut Keys) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.keys.locked(|keys| keys.remove(&self.key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_held_once_per_principal_until_it_is_let_go() {
        let keys = UnderWay::default();
        let (jane, carl) = (MemberId::from_bytes([1; 16]), MemberId::from_bytes([2; 16]));
        let key = "k".parse().unwrap();
        let held = keys.hold(jane, &key);
        assert!(held.is_some() && keys.hold(jane, &key).is_none());
        assert!(keys.hold(carl, &key).is_some());
        drop(held);
        assert!(keys.hold(jane, &key).is_some());
    }
}
