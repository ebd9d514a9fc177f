//! A Unix socket that hears of bytes, and of room only while it lacks some.
//!
//! The kernel tells whoever listens for room each time the other side has read, needed or not: with a listener for both
//! at each end, every request and every answer wakes the thread that wrote it for nothing. A tenth of what a send
//! costs at a busy door was that. (TCP tells only of room that was missed.)

use std::cell::RefCell;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::net::{SendFlags, send};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// The most that is read at once.
const SCRATCH_BYTES: usize = 16 * 1024;

thread_local! {
    /// Where bytes land before they are copied to whoever reads. Whoever reads offers room that was never written, which
    /// safe code would have to fill first: thousands of bytes, for a request of hundreds.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into());
}

/// A connected Unix socket.
#[derive(Debug)]
pub struct QuietStream {
    socket: AsyncFd<UnixStream>,
    /// The same socket again, while the other side has not read what there was no room for.
    room: Option<AsyncFd<UnixStream>>,
}

impl QuietStream {
    /// Takes over a socket that does not block, on the runtime that calls.
    ///
    /// # Errors
    /// The runtime cannot listen to it.
    pub fn from_std(socket: UnixStream) -> io::Result<Self> {
        Ok(Self { socket: listen(socket, Interest::READABLE)?, room: None })
    }

    /// Writes as much as there is room for, once there is some.
    fn poll_put(
        &mut self,
        cx: &mut Context<'_>,
        mut put: impl FnMut(&UnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if let Some(room) = &self.room {
                ready!(room.poll_write_ready(cx))?.clear_ready();
            }
            match put(self.socket.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.listen_for_room()?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => {
                    self.room = None;
                    return Poll::Ready(done);
                }
            }
        }
    }

    fn listen_for_room(&mut self) -> io::Result<()> {
        if self.room.is_none() {
            let again = self.socket.get_ref().try_clone()?;
            self.room = Some(listen(again, Interest::WRITABLE)?);
        }
        Ok(())
    }
}

/// Reads up to `asked` bytes by way of the thread's scratch.
fn read_to(mut socket: &UnixStream, asked: usize, buf: &mut ReadBuf<'_>) -> io::Result<usize> {
    SCRATCH.with_borrow_mut(|scratch| {
        let bytes = socket.read(&mut scratch[..asked])?;
        buf.put_slice(&scratch[..bytes]);
        Ok(bytes)
    })
}

#[expect(
    deprecated,
    reason = "the function that took its place is unsafe, for what may change its descriptor; a UnixStream cannot"
)]
fn listen(socket: UnixStream, interest: Interest) -> io::Result<AsyncFd<UnixStream>> {
    AsyncFd::with_interest(socket, interest)
}

impl AsyncRead for QuietStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.socket.poll_read_ready(cx))?;
            let asked = buf.remaining().min(SCRATCH_BYTES);
            match read_to(self.socket.get_ref(), asked, buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(bytes) => {
                    // Fewer than asked for were all there were; the kernel tells of the next, and an end stays told.
                    if 0 < bytes && bytes < asked {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

/// Not vectored: answers are short, and to copy one is less than the kernel makes of a list.
impl AsyncWrite for QuietStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_put(cx, |socket| Ok(send(socket, bytes, SendFlags::NOSIGNAL)?))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.get_ref().shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    fn pair() -> (QuietStream, QuietStream) {
        let (one, other) = UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        (QuietStream::from_std(one).unwrap(), QuietStream::from_std(other).unwrap())
    }

    #[tokio::test]
    async fn words_go_both_ways_again_and_again() {
        let (mut near, mut far) = pair();
        for round in 0..1_000_u32 {
            near.write_all(&round.to_be_bytes()).await.unwrap();
            assert_eq!(far.read_u32().await.unwrap(), round);
            far.write_all(&round.to_le_bytes()).await.unwrap();
            assert_eq!(near.read_u32_le().await.unwrap(), round);
        }
    }

    /// Whether there is no room for it now.
    async fn waits(writing: Pin<&mut impl Future<Output = io::Result<()>>>) -> bool {
        let mut writing = writing;
        poll_fn(|cx| Poll::Ready(writing.as_mut().poll(cx).is_pending())).await
    }

    #[tokio::test]
    async fn more_than_there_is_room_for_waits_for_the_reader_and_arrives_whole() {
        let (mut near, mut far) = pair();
        let sent: Vec<u8> = (0..4_000_000_u32).map(|n| (n % 251) as u8).collect();
        let mut got = vec![0; sent.len()];
        {
            let mut writing = pin!(near.write_all(&sent));
            assert!(waits(writing.as_mut()).await);
            assert!(waits(writing.as_mut()).await, "nobody has read");
            let (written, read) = tokio::join!(writing, far.read_exact(&mut got));
            written.unwrap();
            read.unwrap();
        }
        assert!(got == sent);
        assert!(near.room.is_none(), "nobody listens for room that is there");
    }

    #[tokio::test]
    async fn an_end_that_came_with_the_last_bytes_is_heard() {
        let (mut near, mut far) = pair();
        near.write_all(b"last").await.unwrap();
        near.shutdown().await.unwrap();
        let mut words = [0; 64];
        assert_eq!(far.read(&mut words).await.unwrap(), 4, "fewer than asked for");
        let end = timeout(Duration::from_secs(5), far.read(&mut words)).await.expect("told at once").unwrap();
        assert_eq!(end, 0);
    }

    #[tokio::test]
    async fn bytes_that_come_after_a_short_read_are_heard_too() {
        let (mut near, mut far) = pair();
        let mut words = [0; 64];
        near.write_all(b"one").await.unwrap();
        assert_eq!(far.read(&mut words).await.unwrap(), 3);
        near.write_all(b"more").await.unwrap();
        let next = timeout(Duration::from_secs(5), far.read(&mut words)).await.expect("told").unwrap();
        assert_eq!(next, 4);
        near.write_all(&[7; 64]).await.unwrap();
        near.write_all(&[8; 64]).await.unwrap();
        assert_eq!(far.read(&mut words).await.unwrap(), 64, "as many as asked for: there may be more");
        let rest = timeout(Duration::from_secs(5), far.read(&mut words)).await.expect("without a new word");
        assert_eq!(rest.unwrap(), 64);
    }

    #[tokio::test]
    async fn a_peer_that_went_away_is_an_error_for_the_writer() {
        let (mut near, far) = pair();
        drop(far);
        let error = near.write_all(b"anybody?").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn a_peer_that_goes_away_ends_a_write_that_waits_for_room() {
        let (mut near, far) = pair();
        let bytes = vec![0; 4_000_000];
        let mut writing = pin!(near.write_all(&bytes));
        assert!(waits(writing.as_mut()).await);
        drop(far);
        let ended = timeout(Duration::from_secs(5), writing).await.expect("told");
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
