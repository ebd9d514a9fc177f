//! How long a connection may take to say what it wants.
//!
//! hyper has one clock for a request's head. It starts on a new connection and again, on a kept one, as soon
//! as the answer before is out; so by itself it would end idle connections as if they were slow. Told apart here:
//! - a new connection has the header timeout for its whole first head;
//! - a kept one may be idle for the idle timeout, and from the next request's first byte on has the header
//!   timeout again.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

use crate::alarm::Alarm;
use crate::watched::Heard;

/// The timer of one connection.
#[derive(Clone)]
pub(super) struct Pace {
    header_timeout: Duration,
    idle_timeout: Duration,
    heard: Heard,
    watch: Arc<Mutex<Watch>>,
}

/// One for all requests of the connection.
#[derive(Default)]
struct Watch {
    greeted: bool,
    alarm: Alarm,
}

/// Fires when the head is late.
struct HeadLate {
    pace: Pace,
    awaited: Awaited,
}

/// What a connection has to say next, and until when.
#[derive(Clone, Copy)]
enum Awaited {
    /// The first byte of a request, on a kept connection.
    FirstByte(tokio::time::Instant),
    /// The rest of a head.
    Head(tokio::time::Instant),
}

impl Pace {
    pub(super) fn new(header_timeout: Duration, idle_timeout: Duration, heard: Heard) -> Self {
        Self { header_timeout, idle_timeout, heard, watch: Arc::default() }
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        // Only this connection's own task looks; nothing is left half-done behind the lock.
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn head_late(&self) -> HeadLate {
        let now = tokio::time::Instant::now();
        self.heard.store(false, Ordering::Relaxed);
        let kept = std::mem::replace(&mut self.watch().greeted, true);
        let awaited = if kept {
            Awaited::FirstByte(now + self.idle_timeout)
        } else {
            Awaited::Head(now + self.header_timeout)
        };
        HeadLate { pace: self.clone(), awaited }
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
        if let Awaited::FirstByte(_) = self.awaited
            && self.pace.heard.load(Ordering::Relaxed)
        {
            self.awaited = Awaited::Head(tokio::time::Instant::now() + self.pace.header_timeout);
        }
        let (Awaited::FirstByte(due_at) | Awaited::Head(due_at)) = self.awaited;
        self.pace.watch().alarm.is_past(due_at, cx)
    }
}
