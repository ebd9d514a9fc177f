//! Waiting for a future on a plain thread, for start-up code and tests.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls `future` on this thread, parked in between. The engine's futures need no runtime: their other
/// side is a thread of ours. Nor may they heed one: inside a task that has used up its turn, tokio's own
/// types answer "later" and leave the wake to a scheduler that runs only after this thread is back.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(tokio::task::unconstrained(future));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// For bounds that protect real threads and a real log; no rule reads it.
#[expect(clippy::disallowed_methods, reason = "what is bounded here is this machine's time")]
pub(crate) fn now() -> std::time::Instant {
    std::time::Instant::now()
}
