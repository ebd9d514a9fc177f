//! The reading half.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::SplitStream;
use model::limits::CLOSE_TIMEOUT;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::close::{Close, Closing, Ended, verdict};
use super::{Stream, Text};

/// Reads a socket's text frames. Dropping it closes the socket.
pub struct Reader {
    stream: SplitStream<Stream>,
    closing: Closing,
    silence_max: Duration,
    heard_at: Instant,
}

impl Reader {
    pub(super) fn new(stream: SplitStream<Stream>, closing: Closing, silence_max: Duration) -> Self {
        Self { stream, closing, silence_max, heard_at: Instant::now() }
    }

    /// The next text frame. Pings are answered on the way; whatever the other end must not say ends the socket.
    ///
    /// Cancel-safe: a frame is either returned or still to be read, and silence is counted from the last frame,
    /// not from the call.
    pub async fn next(&mut self) -> Result<Text, Ended> {
        loop {
            let frame = tokio::select! {
                biased;
                frame = timeout_at(self.heard_at + self.silence_max, self.stream.next()) => frame,
                () = closed_long_enough(&self.closing) => return Err(Ended::ClosedHere),
            };
            self.heard_at = Instant::now();
            match frame {
                Ok(Some(Ok(Message::Text(text)))) => return Ok(text),
                Ok(Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)))) => {}
                Ok(Some(Ok(Message::Binary(_)))) => {
                    return Err(self.refuse(Close::new(Close::NOT_TEXT, "text frames only")));
                }
                Ok(Some(Ok(Message::Close(frame)))) => return Err(self.closed(frame.into()).await),
                Ok(Some(Err(error))) => return Err(self.broken(error)),
                Ok(None) => return Err(self.over(Ended::ClosedHere)),
                Err(_elapsed) => {
                    self.closing.want(Close::new(Close::GOING_AWAY, "no frame for too long"));
                    return Err(Ended::Silent);
                }
            }
        }
    }

    /// The answer to their close goes out with the next step of the stream.
    async fn closed(&mut self, close: Close) -> Ended {
        // Whether the answer arrives changes nothing: the other end has stopped listening.
        let _ = timeout(CLOSE_TIMEOUT, self.stream.next()).await;
        self.over(Ended::Closed(close))
    }

    fn broken(&mut self, error: Error) -> Ended {
        match verdict(error) {
            Ended::Refused(close) => self.refuse(close),
            ended @ (Ended::Closed(_) | Ended::ClosedHere | Ended::Silent | Ended::Broken(_)) => {
                self.over(ended)
            }
        }
    }

    fn refuse(&mut self, close: Close) -> Ended {
        self.closing.want(close.clone());
        Ended::Refused(close)
    }

    /// Lets the writing half end too.
    fn over(&mut self, ended: Ended) -> Ended {
        self.closing.want(Close::new(Close::NORMAL, ""));
        ended
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.closing.want(Close::new(Close::NORMAL, ""));
    }
}

async fn closed_long_enough(closing: &Closing) {
    closing.written_out.cancelled().await;
    sleep(CLOSE_TIMEOUT).await;
}
