//! Text frames as a server writes them, and the way they take to the stream.
//!
//! A server's frames are not masked: the bytes are the same for everybody who gets them. So they are made once, and
//! written beside the library, which keeps the reading, the answers to pings and the close.
//!
//! - What stands beside is written before anything the library writes, and never inside of it: frames stay whole.
//! - It is written out when the library flushes, so that whoever waits for a flush waits for both.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::Bytes;

use super::Text;

/// Final, text.
const TEXT: u8 = 0x81;
/// Longer payloads say so in two more bytes.
const SHORT_MAX: usize = 125;
const TWO_BYTES: u8 = 126;
const EIGHT_BYTES: u8 = 127;
/// Pieces handed to the system in one call.
const TOGETHER_MAX: usize = 32;

/// Text frames one after the other. Clones share them.
#[derive(Clone, Debug)]
pub struct Frames {
    pub(super) texts: Arc<[Text]>,
    pub(super) bytes: Bytes,
}

impl FromIterator<Text> for Frames {
    fn from_iter<I: IntoIterator<Item = Text>>(texts: I) -> Self {
        let texts: Arc<[Text]> = texts.into_iter().collect();
        let mut bytes = Vec::with_capacity(texts.iter().map(|text| text.len() + 10).sum());
        for text in texts.iter() {
            write_head(text.len(), &mut bytes);
            bytes.extend_from_slice(text.as_bytes());
        }
        Self { texts, bytes: bytes.into() }
    }
}

fn write_head(length: usize, into: &mut Vec<u8>) {
    into.push(TEXT);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if length <= SHORT_MAX => into.push(short),
        (_, Ok(length)) => {
            into.push(TWO_BYTES);
            into.extend_from_slice(&length.to_be_bytes());
        }
        (_, Err(_)) => {
            into.push(EIGHT_BYTES);
            into.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

/// Whole frames that wait to be written.
#[derive(Clone, Default)]
pub(super) struct Beside(Arc<Mutex<VecDeque<Bytes>>>);

impl Beside {
    pub(super) fn text(&self, text: Text) {
        let mut head = Vec::with_capacity(10);
        write_head(text.len(), &mut head);
        self.lock().extend([head.into(), text.into()]);
    }

    pub(super) fn frames(&self, frames: &Frames) {
        self.lock().push_back(frames.bytes.clone());
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The library's stream, with frames beside it.
pub(super) struct Spliced<S> {
    inner: S,
    beside: Beside,
    /// The library's last write was cut short: its rest comes next, before anything else.
    inside: bool,
}

impl<S> Spliced<S> {
    pub(super) fn new(inner: S) -> (Self, Beside) {
        let beside = Beside::default();
        (Self { inner, beside: beside.clone(), inside: false }, beside)
    }
}

impl<S: AsyncWrite + Unpin> Spliced<S> {
    fn poll_beside(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.inside {
            return Poll::Ready(Ok(()));
        }
        let mut waiting = self.beside.lock();
        while !waiting.is_empty() {
            let mut pieces = [IoSlice::new(&[]); TOGETHER_MAX];
            let count = waiting.len().min(TOGETHER_MAX);
            for (piece, bytes) in pieces.iter_mut().zip(waiting.iter()) {
                *piece = IoSlice::new(bytes);
            }
            let written = Pin::new(&mut self.inner).poll_write_vectored(cx, &pieces[..count]);
            let written = ready!(written)?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            take(&mut waiting, written);
        }
        Poll::Ready(Ok(()))
    }
}

/// Forgets the first `written` bytes, and empty pieces at the front.
fn take(waiting: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(first) = waiting.front_mut() {
        if written < first.len() {
            drop(first.split_to(written));
            return;
        }
        written -= first.len();
        waiting.pop_front();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Spliced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Spliced<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_beside(cx))?;
        let written = ready!(Pin::new(&mut this.inner).poll_write(cx, bytes))?;
        this.inside = written < bytes.len();
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_beside(cx))?;
        Pin::new(&mut this.inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn a_frame_says_its_length_as_the_protocol_wants_it() {
        for (length, head) in [
            (0, vec![TEXT, 0]),
            (125, vec![TEXT, 125]),
            (126, vec![TEXT, 126, 0, 126]),
            (65_535, vec![TEXT, 126, 0xff, 0xff]),
            (65_536, vec![TEXT, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let frames: Frames = [Text::from("x".repeat(length))].into_iter().collect();
            assert_eq!(frames.bytes[..head.len()], head, "{length}");
            assert_eq!(frames.bytes.len(), head.len() + length);
        }
    }

    #[tokio::test]
    async fn what_stands_beside_goes_first_and_never_into_the_middle_of_a_write() {
        let (near, mut far) = tokio::io::duplex(4);
        let (mut near, beside) = Spliced::new(near);
        let writing = tokio::spawn(async move {
            beside.text(Text::from("abc"));
            // Cut short after four bytes at most, since nobody reads yet.
            let first = near.write(b"CONTROL").await.unwrap();
            beside.frames(&[Text::from("d"), Text::from("")].into_iter().collect());
            near.write_all(&b"CONTROL"[first..]).await.unwrap();
            near.flush().await.unwrap();
        });
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        writing.await.unwrap();
        assert_eq!(read, b"\x81\x03abcCONTROL\x81\x01d\x81\x00");
    }
}
