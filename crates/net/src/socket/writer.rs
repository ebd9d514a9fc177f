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
use super::frames::Beside;
use super::{Bounds, Frames, Stream, Text};

/// Writes text frames to a socket. Dropping the last one closes the socket.
#[derive(Clone)]
pub struct Writer {
    waiting: mpsc::Sender<Waiting>,
    places: Arc<Semaphore>,
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

/// What a writer may be handed.
enum Parcel {
    Text(Text),
    Frames(Frames),
}

/// What is handed over, with the places and the room it takes, given back once it is written.
struct Waiting {
    parcel: Parcel,
    taken: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// How frames get to the stream.
pub(super) enum Way {
    /// Made here, or before.
    Beside(Beside),
    /// Made by the library.
    Library,
}

type Sink = SplitSink<Stream, Message>;

pub(super) fn open(
    sink: Sink,
    way: Way,
    bounds: Bounds,
) -> (Writer, Closing, impl Future<Output = ()> + Send + use<>) {
    let (frames_max, bytes_max) = (bounds.waiting_frames_max, bounds.waiting_bytes_max);
    let (sender, waiting) = mpsc::channel(frames_max);
    let closing = Closing::new();
    let writer = Writer {
        waiting: sender,
        places: Arc::new(Semaphore::new(frames_max)),
        room: Arc::new(Semaphore::new(bytes_max)),
        closing: closing.clone(),
        frame_bytes_max: bounds.frame_bytes_max,
    };
    let work = write_out(Out { sink, way, written: Vec::new() }, waiting, closing.clone(), bounds);
    (writer, closing, work)
}

impl Parcel {
    fn texts(&self) -> &[Text] {
        match self {
            Parcel::Text(text) => std::slice::from_ref(text),
            Parcel::Frames(frames) => &frames.texts,
        }
    }
}

impl Writer {
    /// Hands the frame over, waiting for room. Taken means it will be written unless the socket breaks.
    pub async fn send(&self, text: impl Into<Text>) -> Result<(), SendError> {
        self.hand_over(Parcel::Text(text.into())).await
    }

    /// Hands the frame over if there is room now.
    pub fn try_send(&self, text: impl Into<Text>) -> Result<(), TrySendError> {
        self.try_hand_over(Parcel::Text(text.into()))
    }

    /// [`Writer::send`] for several frames at once. No more of them than a socket lets wait, or they wait for ever.
    pub async fn send_frames(&self, frames: &Frames) -> Result<(), SendError> {
        self.hand_over(Parcel::Frames(frames.clone())).await
    }

    /// [`Writer::try_send`] for several frames at once.
    pub fn try_send_frames(&self, frames: &Frames) -> Result<(), TrySendError> {
        self.try_hand_over(Parcel::Frames(frames.clone()))
    }

    async fn hand_over(&self, parcel: Parcel) -> Result<(), SendError> {
        let (frames, bytes) = self.size(&parcel).ok_or(SendError::TooLarge)?;
        let places = self.places.clone().acquire_many_owned(frames).await.map_err(|_| SendError::Gone)?;
        let room = self.room.clone().acquire_many_owned(bytes).await.map_err(|_| SendError::Gone)?;
        let waiting = Waiting { parcel, taken: (places, room) };
        self.waiting.send(waiting).await.map_err(|_| SendError::Gone)
    }

    fn try_hand_over(&self, parcel: Parcel) -> Result<(), TrySendError> {
        use tokio::sync::TryAcquireError;
        use tokio::sync::mpsc::error::TrySendError as Full;
        let (frames, bytes) = self.size(&parcel).ok_or(TrySendError::TooLarge)?;
        let refused = |refused| match refused {
            TryAcquireError::Closed => TrySendError::Gone,
            TryAcquireError::NoPermits => TrySendError::Stalled,
        };
        let places = self.places.clone().try_acquire_many_owned(frames).map_err(refused)?;
        let room = self.room.clone().try_acquire_many_owned(bytes).map_err(refused)?;
        let waiting = Waiting { parcel, taken: (places, room) };
        self.waiting.try_send(waiting).map_err(|refused| match refused {
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

    /// Frames, and bytes without their heads; nothing when one of them is over the bound.
    fn size(&self, parcel: &Parcel) -> Option<(u32, u32)> {
        let texts = parcel.texts();
        if texts.iter().any(|text| text.len() > self.frame_bytes_max) {
            return None;
        }
        let bytes = texts.iter().map(|text| text.len()).sum::<usize>();
        Some((u32::try_from(texts.len()).ok()?, u32::try_from(bytes).ok()?))
    }
}

/// The way out of a socket.
struct Out {
    sink: Sink,
    way: Way,
    /// What the parcels under way have taken; kept for its allocation.
    written: Vec<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

async fn write_out(mut out: Out, mut waiting: mpsc::Receiver<Waiting>, closing: Closing, bounds: Bounds) {
    let ended = tokio::select! {
        ended = write(&mut out, &mut waiting, &closing, bounds) => ended,
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
    out: &mut Out,
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
                out.write_together(&mut batch).await?;
            }
            _ = ping.tick() => {
                out.say(Message::Ping(Bytes::new())).await?;
            }
            close = &mut wanted => break close,
        }
    };
    waiting.close();
    while waiting.recv_many(&mut batch, bounds.waiting_frames_max).await > 0 {
        out.write_together(&mut batch).await?;
    }
    out.say(Message::Close(Some(close.frame()))).await
}

impl Out {
    async fn write_together(&mut self, batch: &mut Vec<Waiting>) -> Result<(), Error> {
        for Waiting { parcel, taken } in batch.drain(..) {
            // Held until the flush: what is in a buffer still waits.
            self.written.push(taken);
            match (&self.way, parcel) {
                (Way::Beside(beside), Parcel::Text(text)) => beside.text(text),
                (Way::Beside(beside), Parcel::Frames(frames)) => beside.frames(&frames),
                (Way::Library, parcel) => {
                    for text in parcel.texts() {
                        feed(&mut self.sink, Message::Text(text.clone())).await?;
                    }
                }
            }
        }
        self.sink.flush().await?;
        self.written.clear();
        Ok(())
    }

    /// A frame of the protocol's own.
    async fn say(&mut self, message: Message) -> Result<(), Error> {
        feed(&mut self.sink, message).await?;
        self.sink.flush().await
    }
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
