//! Callers that each ask again as soon as they are answered, on a thread of their own.

use crate::fleet::FleetError;
use crate::kills::door::Answer;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Callers at work until this ends.
pub(super) struct Load {
    shared: Arc<LoadState>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct LoadState {
    taken: AtomicU64,
    stop: AtomicBool,
    refusal: Mutex<Option<String>>,
}

impl Load {
    /// A thread for each of `callers`; `ask` makes the n-th call of one.
    pub(super) fn start<C: Send + 'static>(
        callers: impl Iterator<Item = C>,
        ask: impl Fn(&mut C, u64) -> std::io::Result<Answer> + Copy + Send + 'static,
    ) -> Self {
        let shared = Arc::new(LoadState::default());
        let thread = |mut caller: C| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                for n in 0.. {
                    if shared.stop.load(Relaxed) {
                        return;
                    }
                    match ask(&mut caller, n) {
                        Ok(answer) if (200..300).contains(&answer.status) => {
                            shared.taken.fetch_add(1, Relaxed);
                        }
                        Ok(answer) => return shared.refused(format!("{} {}", answer.status, answer.body)),
                        Err(error) => return shared.refused(error.to_string()),
                    }
                }
            })
        };
        let threads = callers.map(thread).collect();
        Self { shared, threads }
    }

    /// Waits for `span` and counts what was answered meanwhile.
    pub(super) fn answers_within(&self, span: Duration) -> u64 {
        let before = self.shared.taken.load(Relaxed);
        crate::wait::let_pass(span);
        self.shared.taken.load(Relaxed) - before
    }

    /// What the first caller was told that was refused, or met in place of an answer.
    pub(super) fn first_refusal(&self) -> Option<String> {
        self.shared.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the callers; a refusal during the run is an error.
    pub(super) fn end(mut self) -> Result<(), FleetError> {
        self.stop();
        match self.first_refusal() {
            None => Ok(()),
            Some(answered) => {
                Err(FleetError::Unreadable { asked: "a send under pressure".to_owned(), answered })
            }
        }
    }

    fn stop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // A caller that panicked has been counted as one that stopped.
            drop(thread.join());
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop();
    }
}

impl LoadState {
    fn refused(&self, answer: String) {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(answer);
    }
}
