//! The writing half: one task, one bounded queue, one flush for all that waits together.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use model::limits::CLOSE_TIMEOUT;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use tracing::debug;

use super::close::{Close, Closing};
use super::{Bounds, Stream, Text};

/// Writes text frames to a socket. Dropping the last one closes the socket.
#[derive(Clone)]
pub struct Writer {
    frames: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
    closing: Closing,
    frame_bytes_max: usize,
}

/// Why a frame was not taken by [`Writer::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The frame is over the bound; the other end would close on it.
    #[error("the frame is over its bound")]
    TooLarge,
    /// The socket is closed.
    #[error("the socket is closed")]
    Gone,
}

/// Why a frame was not taken by [`Writer::try_send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrySendError {
    /// The frame is over the bound; the other end would close on it.
    #[error("the frame is over its bound")]
    TooLarge,
    /// The socket is closed.
    #[error("the socket is closed")]
    Gone,
    /// The other end reads too slowly.
    #[error("the other end reads too slowly")]
    Stalled,
}

/// A frame with the room it takes, given back once it is written.
struct Waiting {
    text: Text,
    room: OwnedSemaphorePermit,
}

type Sink = SplitSink<Stream, Message>;

pub(super) fn open(sink: Sink, bounds: Bounds) -> (Writer, Closing, impl Future<Output = ()> + Send + use<>) {
    let (frames, waiting) = mpsc::channel(bounds.waiting_frames_max);
    let room = Arc::new(Semaphore::new(bounds.waiting_bytes_max));
    let closing = Closing::new();
    let work = write_out(sink, waiting, closing.clone(), bounds);
    let writer = Writer { frames, room, closing: closing.clone(), frame_bytes_max: bounds.frame_bytes_max };
    (writer, closing, work)
}

impl Writer {
    /// Hands the frame over, waiting for room. Taken means it will be written unless the socket breaks.
    pub async fn send(&self, text: impl Into<Text>) -> Result<(), SendError> {
        let text = text.into();
        let bytes = self.size(&text).ok_or(SendError::TooLarge)?;
        let room = self.room.clone().acquire_many_owned(bytes).await.map_err(|_| SendError::Gone)?;
        self.frames.send(Waiting { text, room }).await.map_err(|_| SendError::Gone)
    }

    /// Hands the frame over if there is room now.
    pub fn try_send(&self, text: impl Into<Text>) -> Result<(), TrySendError> {
        use tokio::sync::TryAcquireError;
        use tokio::sync::mpsc::error::TrySendError as Full;
        let text = text.into();
        let bytes = self.size(&text).ok_or(TrySendError::TooLarge)?;
        let room = self.room.clone().try_acquire_many_owned(bytes).map_err(|refused| match refused {
            TryAcquireError::Closed => TrySendError::Gone,
            TryAcquireError::NoPermits => TrySendError::Stalled,
        })?;
        self.frames.try_send(Waiting { text, room }).map_err(|refused| match refused {
            Full::Closed(_) => TrySendError::Gone,
            Full::Full(_) => TrySendError::Stalled,
        })
    }

    /// Closes the socket: what waits goes first, then `close`. The first wish counts.
    pub fn close(&self, close: Close) {
        self.closing.want(close);
    }

    /// Until the socket is closed for writing, by whoever.
    pub async fn closed(&self) {
        self.closing.written_out.cancelled().await;
    }

    fn size(&self, text: &Text) -> Option<u32> {
        let bytes = text.len();
        if bytes > self.frame_bytes_max { None } else { u32::try_from(bytes).ok() }
    }
}

async fn write_out(mut sink: Sink, mut waiting: mpsc::Receiver<Waiting>, closing: Closing, bounds: Bounds) {
    let ended = tokio::select! {
        ended = write(&mut sink, &mut waiting, &closing, bounds) => ended,
        () = close_is_late(&closing) => Err(Error::AlreadyClosed),
    };
    if let Err(error) = ended {
        debug!(%error, "a socket was cut");
    }
    // Gives back all room: whoever waited for some finds nobody to hand the frame to.
    drop(waiting);
    closing.written_out.cancel();
}

async fn write(
    sink: &mut Sink,
    waiting: &mut mpsc::Receiver<Waiting>,
    closing: &Closing,
    bounds: Bounds,
) -> Result<(), Error> {
    let mut ping = pings(bounds);
    let mut batch = Vec::new();
    let mut wanted = pin!(closing.wanted());
    let close = loop {
        tokio::select! {
            taken = waiting.recv_many(&mut batch, bounds.waiting_frames_max) => {
                if taken == 0 {
                    // Nobody is left to write; the last one may have said how to close.
                    closing.want(Close::new(Close::NORMAL, ""));
                    break wanted.await;
                }
                write_together(sink, &mut batch).await?;
            }
            _ = ping.tick() => {
                feed(sink, Message::Ping(Bytes::new())).await?;
                sink.flush().await?;
            }
            close = &mut wanted => break close,
        }
    };
    waiting.close();
    while waiting.recv_many(&mut batch, bounds.waiting_frames_max).await > 0 {
        write_together(sink, &mut batch).await?;
    }
    feed(sink, Message::Close(Some(close.frame()))).await?;
    sink.flush().await
}

async fn write_together(sink: &mut Sink, batch: &mut Vec<Waiting>) -> Result<(), Error> {
    // Held until the flush: what is in the library's buffer still waits.
    let mut rooms = Vec::with_capacity(batch.len());
    for Waiting { text, room } in batch.drain(..) {
        rooms.push(room);
        feed(sink, Message::Text(text)).await?;
    }
    sink.flush().await
}

async fn feed(sink: &mut Sink, message: Message) -> Result<(), Error> {
    match sink.feed(message).await {
        // Answers to pings took the room; they go first.
        Err(Error::WriteBufferFull(message)) => {
            sink.flush().await?;
            sink.feed(*message).await
        }
        fed => fed,
    }
}

fn pings(bounds: Bounds) -> Interval {
    let mut ping = interval_at(Instant::now() + bounds.ping_every, bounds.ping_every);
    // After a stall one ping says as much as ten.
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping
}

async fn close_is_late(closing: &Closing) {
    closing.wanted().await;
    sleep(CLOSE_TIMEOUT).await;
}
