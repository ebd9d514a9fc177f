//! Work that is carried to its end although its caller leaves.
//!
//! A store runs a job that was handed to it whether or not the caller still waits, and the request of a caller that hung
//! up is dropped at once. Whatever must follow the commit, above all the wake of a reader that may otherwise sleep until
//! its next poll, belongs into one future with it, run through [`run_to_end`].

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// Runs `work` in the task of its caller. When the returned future is dropped before `work` has ended, the rest runs as a
/// task of its own; when it was never polled, nothing runs.
pub fn run_to_end<F>(work: F) -> RunToEnd<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    RunToEnd { work: Some(Box::pin(work)), is_begun: false }
}

/// See [`run_to_end`].
#[must_use = "nothing runs before the first poll"]
pub struct RunToEnd<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    /// `None` once it has ended.
    work: Option<Pin<Box<F>>>,
    is_begun: bool,
}

impl<F> Future for RunToEnd<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.is_begun = true;
        let work = self.work.as_mut().expect("a future that has ended is not polled again");
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<F> Drop for RunToEnd<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn drop(&mut self) {
        // Work that panicked cannot go on.
        if !self.is_begun || std::thread::panicking() {
            return;
        }
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    use futures_util::poll;
    use tokio::sync::oneshot;

    use super::*;

    /// Work that waits for `go` and then tells `done`.
    fn work(go: oneshot::Receiver<()>, done: oneshot::Sender<()>) -> RunToEnd<impl Future<Output = u8>> {
        run_to_end(async move {
            drop(go.await);
            // The test may have stopped listening.
            let _ = done.send(());
            7
        })
    }

    #[tokio::test]
    async fn work_whose_caller_stays_answers_it() {
        let (go, gone) = oneshot::channel();
        let (done, _heard) = oneshot::channel();
        go.send(()).unwrap();
        assert_eq!(work(gone, done).await, 7);
    }

    #[tokio::test]
    async fn work_whose_caller_leaves_in_the_middle_ends_without_it() {
        let (go, gone) = oneshot::channel();
        let (done, heard) = oneshot::channel();
        let mut waiting = Box::pin(work(gone, done));
        assert!(poll!(waiting.as_mut()).is_pending());
        drop(waiting);
        go.send(()).unwrap();
        heard.await.unwrap();
    }

    #[tokio::test]
    async fn work_that_never_began_does_not_run() {
        let ran = Arc::new(AtomicBool::new(false));
        let told = ran.clone();
        drop(run_to_end(async move { told.store(true, SeqCst) }));
        tokio::task::yield_now().await;
        assert!(!ran.load(SeqCst));
    }
}
