//! A byte stream that is watched: when bytes arrive, and whether writing still moves.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Set whenever bytes arrive; whoever cares clears it.
pub(crate) type Heard = Arc<AtomicBool>;

/// A stream whose writes end with `TimedOut` when the other side takes no byte for `stall_max`.
///
/// The measure is bytes taken, not answers given: a slow reader lives, one that stopped reading does not.
pub(crate) struct Watched<S> {
    inner: S,
    heard: Heard,
    stall_max: Duration,
    write_stalled: Stalled,
    flush_stalled: Stalled,
}

/// Runs while a step is pending; each kind of step has its own, because a plain socket's flush is always ready
/// and says nothing about its writes.
#[derive(Default)]
struct Stalled(Option<Pin<Box<Sleep>>>);

impl<S> Watched<S> {
    pub(crate) fn new(inner: S, heard: Heard, stall_max: Duration) -> Self {
        Self { inner, heard, stall_max, write_stalled: Stalled::default(), flush_stalled: Stalled::default() }
    }
}

impl Stalled {
    fn or<T>(
        &mut self,
        cx: &mut Context<'_>,
        max: Duration,
        step: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if step.is_ready() {
            self.0 = None;
            return step;
        }
        let bound = self.0.get_or_insert_with(|| Box::pin(sleep(max)));
        ready!(bound.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the other side stopped reading")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let step = Pin::new(&mut self.inner).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.heard.store(true, Ordering::Relaxed);
        }
        step
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let step = Pin::new(&mut this.inner).poll_write(cx, bytes);
        this.write_stalled.or(cx, this.stall_max, step)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let step = Pin::new(&mut this.inner).poll_write_vectored(cx, slices);
        this.write_stalled.or(cx, this.stall_max, step)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let step = Pin::new(&mut this.inner).poll_flush(cx);
        this.flush_stalled.or(cx, this.stall_max, step)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let step = Pin::new(&mut this.inner).poll_shutdown(cx);
        this.flush_stalled.or(cx, this.stall_max, step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const STALL_MAX: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stopped_is_given_up_after_the_bound_and_not_before() {
        let (near, _far) = tokio::io::duplex(8);
        let mut near = Watched::new(near, Heard::default(), STALL_MAX);
        let start = tokio::time::Instant::now();
        let error = near.write_all(&[0; 9]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), STALL_MAX.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_lives_as_long_as_it_takes_bytes() {
        let (near, mut far) = tokio::io::duplex(1);
        let mut near = Watched::new(near, Heard::default(), STALL_MAX);
        let slow = tokio::spawn(async move {
            let mut taken = 0;
            while taken < 10 {
                sleep(STALL_MAX - Duration::from_secs(1)).await;
                taken += far.read(&mut [0]).await.unwrap();
            }
        });
        near.write_all(&[0; 10]).await.unwrap();
        slow.await.unwrap();
    }

    #[tokio::test]
    async fn arriving_bytes_are_noticed() {
        let (near, mut far) = tokio::io::duplex(8);
        let heard = Heard::default();
        let mut near = Watched::new(near, heard.clone(), STALL_MAX);
        assert!(!heard.load(Ordering::Relaxed));
        far.write_all(b"x").await.unwrap();
        near.read_u8().await.unwrap();
        assert!(heard.load(Ordering::Relaxed));
    }
}
