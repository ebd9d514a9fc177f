//! Requests that wait together, and answers awaited on a plain thread.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use sqlite::{Db, StorageError};

use super::{OpenStore, PendingAnswer, Request, StoreAnswer};
use crate::stopwatch::Stopwatch;

/// Longer than any wait inside SQLite, on a busy machine.
const ANSWER_BOUND: Duration = Duration::from_secs(60);

/// Puts all requests before any of them runs, so that they share a transaction; `None` for one never answered.
pub(super) fn ask_together(
    store: &dyn OpenStore,
    requests: &[Request],
) -> Vec<(Request, Option<StoreAnswer>)> {
    let db: &Db = store.db();
    let (tell, begun) = sync_channel::<()>(1);
    let (release, wait) = sync_channel::<()>(1);
    let mut gate: std::pin::Pin<Box<dyn Future<Output = Result<(), StorageError>>>> =
        Box::pin(db.write("campaign.gate", move |_| {
            let _ = tell.send(());
            // Let go by being dropped.
            let _ = wait.recv();
            Ok::<_, StorageError>(())
        }));
    let mut context = Context::from_waker(Waker::noop());
    let passed = gate.as_mut().poll(&mut context).is_ready();
    if !passed {
        // An error means that the transaction did not begin, and with it that the job is gone.
        let _ = begun.recv();
    }
    let mut asked: Vec<(Request, State<'_>)> = requests
        .iter()
        .map(|request| {
            let mut answer = store.ask(*request);
            let state = match answer.as_mut().poll(&mut context) {
                Poll::Ready(word) => State::Told(word),
                Poll::Pending => State::Waiting(answer),
            };
            (*request, state)
        })
        .collect();
    drop(release);
    let answers = asked.drain(..).map(|(request, state)| match state {
        State::Told(word) => (request, Some(word)),
        State::Waiting(answer) => (request, wait_for_answer(answer)),
    });
    let answers = answers.collect();
    if !passed {
        drop(wait_for_answer(gate));
    }
    answers
}

/// Puts one request after the other; a lone caller commits on its own thread.
pub(super) fn ask_alone(store: &dyn OpenStore, requests: &[Request]) -> Vec<(Request, Option<StoreAnswer>)> {
    requests.iter().map(|request| (*request, wait_for_answer(store.ask(*request)))).collect()
}

enum State<'store> {
    Told(StoreAnswer),
    Waiting(PendingAnswer<'store>),
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The answer of a future that needs no runtime.
///
/// # Errors
/// When it does not come in time.
pub fn answer_to<T>(answer: impl Future<Output = T>) -> Result<T, String> {
    wait_for_answer(Box::pin(answer)).ok_or_else(|| format!("no answer within {ANSWER_BOUND:?}"))
}

/// Polls on this thread, parked in between; nothing when no answer came in time.
fn wait_for_answer<T>(mut answer: std::pin::Pin<Box<dyn Future<Output = T> + '_>>) -> Option<T> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let watch = Stopwatch::start();
    loop {
        if let Poll::Ready(word) = answer.as_mut().poll(&mut context) {
            return Some(word);
        }
        let left = ANSWER_BOUND.checked_sub(watch.elapsed())?;
        std::thread::park_timeout(left);
    }
}
