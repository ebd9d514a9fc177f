//! How long a connection may take to say what it wants.
//!
//! hyper has one clock for a request's head. It starts on a new connection and again, on a kept one, as soon
//! as the answer before is out; so by itself it would end idle connections as if they were slow. Told apart here:
//! - a new connection has the header timeout for its whole first head;
//! - a kept one may be idle for the idle timeout, and from the next request's first byte on has the header
//!   timeout again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

use crate::watched::Heard;

/// The timer of one connection.
#[derive(Clone)]
pub(super) struct Pace {
    header_timeout: Duration,
    idle_timeout: Duration,
    heard: Heard,
    greeted: Arc<AtomicBool>,
}

/// Fires when the head is late.
struct HeadLate {
    header_timeout: Duration,
    /// `None` once the head's clock runs.
    idle_until_heard: Option<Heard>,
    due: Pin<Box<tokio::time::Sleep>>,
}

impl Pace {
    pub(super) fn new(header_timeout: Duration, idle_timeout: Duration, heard: Heard) -> Self {
        Self { header_timeout, idle_timeout, heard, greeted: Arc::default() }
    }

    fn head_late(&self) -> HeadLate {
        let kept = self.greeted.swap(true, Ordering::Relaxed);
        self.heard.store(false, Ordering::Relaxed);
        let (wait, idle_until_heard) =
            if kept { (self.idle_timeout, Some(self.heard.clone())) } else { (self.header_timeout, None) };
        let due = Box::pin(tokio::time::sleep(wait));
        HeadLate { header_timeout: self.header_timeout, idle_until_heard, due }
    }
}

impl Timer for Pace {
    fn sleep(&self, _: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(self.head_late())
    }

    fn sleep_until(&self, _: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(self.head_late())
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

impl Sleep for HeadLate {}

impl Future for HeadLate {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // hyper polls this after every read that did not complete the head, so the first byte is seen at once.
        if self.idle_until_heard.take_if(|heard| heard.load(Ordering::Relaxed)).is_some() {
            let due_at = tokio::time::Instant::now() + self.header_timeout;
            self.due.as_mut().reset(due_at);
        }
        self.due.as_mut().poll(cx)
    }
}
