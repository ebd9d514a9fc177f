//! The stores of a process, and which of them have stopped.
//!
//! A store that met a failed sync takes no write until the process starts anew ([`crate::StorageError::Stopped`]). Each
//! role enters its stores here under a name for people; health and readiness name those that have stopped, and the process
//! waits for the first of them to end itself.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::Db;

/// The stores of one process. Clones are handles to the same list.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    stopped: watch::Sender<Vec<StoppedStore>>,
}

/// A store that takes no write until the process starts anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedStore {
    /// For people, such as `mailbox of mesh home`.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// The storage error that stopped it.
    pub cause: Arc<str>,
}

impl Stores {
    /// Enters an open store under a name for people.
    pub fn enter(&self, name: impl Into<String>, db: &Db) {
        let (stopped, name, path) = (self.stopped.clone(), name.into(), db.path().to_owned());
        db.on_stop(move |cause| {
            let store = StoppedStore { name: name.clone(), path: path.clone(), cause: Arc::clone(cause) };
            stopped.send_if_modified(|all| {
                let is_new = !all.contains(&store);
                if is_new {
                    all.push(store);
                }
                is_new
            });
        });
    }

    /// Those that have stopped, the first one first.
    pub fn stopped(&self) -> Vec<StoppedStore> {
        self.stopped.borrow().clone()
    }

    /// Waits until a store has stopped.
    pub async fn first_stopped(&self) -> StoppedStore {
        let mut changes = self.stopped.subscribe();
        loop {
            if let Some(first) = changes.borrow_and_update().first() {
                return first.clone();
            }
            // The sender is held by `self`.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
