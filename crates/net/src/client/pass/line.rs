//! One connection and whoever drives it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use axum::body::Body;
use futures_util::task::AtomicWaker;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

use super::idle::Idle;
use crate::alarm::Alarm;
use crate::client::dial;

/// A connection that nobody but its holder drives.
pub(super) struct Line {
    sender: SendRequest<Body>,
    /// Nothing once it ended.
    driving: Option<Driving>,
    alarm: Alarm,
    driver: Arc<Driver>,
    wakes_driver: Waker,
}

/// Whoever drives the connection now, and is woken for it. Between two requests that is nobody: handing the next one over,
/// or reading the end of the last answer, would wake a task that is about to look anyway.
#[derive(Default)]
struct Driver(AtomicWaker);

impl Wake for Driver {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

type Driving = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// Why there is no answer.
pub(super) enum Unanswered {
    /// The connection had ended before anything of the request was written: here it is again.
    Unsent(Box<Request<Body>>, hyper::Error),
    /// It may have left.
    Lost(hyper::Error),
    /// The same, and nothing came back in time.
    Late,
}

impl Line {
    pub(super) async fn over(stream: TokioIo<dial::Line>) -> hyper::Result<Self> {
        let (sender, connection) = http1::handshake(stream).await?;
        // A change of protocols is fulfilled by the poll that reads the answer.
        let driving = Box::pin(connection.with_upgrades());
        let driver = Arc::new(Driver::default());
        let wakes_driver = Waker::from(Arc::clone(&driver));
        Ok(Self { sender, driving: Some(driving), alarm: Alarm::default(), driver, wakes_driver })
    }

    /// Asks, and waits for the answer's head until `due_at`. Afterwards the connection goes back to `idle` by itself.
    pub(super) async fn ask(
        mut self,
        request: Request<Body>,
        due_at: Instant,
        idle: &Arc<Idle>,
    ) -> Result<Response<Incoming>, Unanswered> {
        // Only driving the connection makes the answer ready, and it is looked at after each step of that. So it
        // needs no waker of its own, which would only wake this task for what it is about to see; and it must not
        // count against the task's budget, because a refusal to look would go unnoticed.
        let mut answer = pin!(tokio::task::unconstrained(self.sender.try_send_request(request)));
        let answer = poll_fn(|cx| {
            self.drive(cx);
            match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => Poll::Ready(Some(answer)),
                Poll::Pending => self.alarm.is_past(due_at, cx).map(|()| None),
            }
        });
        match answer.await {
            Some(Ok(answer)) => {
                self.give_back(idle);
                Ok(answer)
            }
            None => Err(Unanswered::Late),
            Some(Err(mut error)) => Err(match error.take_message() {
                Some(request) => Unanswered::Unsent(Box::new(request), error.into_error()),
                None => Unanswered::Lost(error.into_error()),
            }),
        }
    }

    /// One step.
    fn drive(&mut self, cx: &mut Context<'_>) {
        self.driver.0.register(cx.waker());
        if let Some(driving) = &mut self.driving
            && driving.as_mut().poll(&mut Context::from_waker(&self.wakes_driver)).is_ready()
        {
            // Whoever still waits for it hears of its end when it is dropped.
            self.driving = None;
        }
    }

    /// To `idle` when the whole answer is here; else a task reads the rest of it first.
    fn give_back(mut self, idle: &Arc<Idle>) {
        if self.driving.is_none() {
            return;
        }
        if self.sender.is_ready() {
            self.driver.0.take();
            return idle.put(self);
        }
        let idle = Arc::clone(idle);
        tokio::spawn(async move {
            let read = poll_fn(|cx| {
                self.drive(cx);
                match self.driving {
                    Some(_) => self.sender.poll_ready(cx).map(|ready| ready.is_ok()),
                    None => Poll::Ready(false),
                }
            });
            if read.await {
                self.driver.0.take();
                idle.put(self);
            }
        });
    }
}
