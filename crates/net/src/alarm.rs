//! One alarm for many due times.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

/// Rings for whatever is due last. Each use has another due time, which costs a number; the alarm itself is set anew
/// only when it would ring too late, or rang too early.
#[derive(Default)]
pub(crate) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Whether `due_at` has passed; if not, the task is woken then at the latest.
    pub(crate) fn is_past(&mut self, due_at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let alarm = self.0.get_or_insert_with(|| Box::pin(sleep_until(due_at)));
        if alarm.deadline() > due_at {
            alarm.as_mut().reset(due_at);
        }
        while alarm.as_mut().poll(cx).is_ready() {
            if alarm.deadline() >= due_at {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(due_at);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn each_due_time_is_kept_whether_it_is_later_or_sooner_than_the_one_before() {
        let mut alarm = Alarm::default();
        for (asked, waits) in [(5, true), (60, false), (10, true), (30, true)] {
            let (start, wait) = (Instant::now(), Duration::from_secs(asked));
            let due = poll_fn(|cx| alarm.is_past(start + wait, cx));
            if waits {
                due.await;
                assert_eq!(start.elapsed().as_secs(), asked);
            } else {
                // Whoever it was for has gone; the alarm stays as it was set.
                assert!(tokio::time::timeout(Duration::from_secs(1), due).await.is_err());
            }
        }
    }
}
