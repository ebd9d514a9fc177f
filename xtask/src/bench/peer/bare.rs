//! A WebSocket server that does nothing but fan out: frames are made once, and what waits for a connection together is
//! written together. It gets its messages as the product does, from callers that wait for each answer; it looks at none
//! of them and keeps none. It has no log to catch up from, so callers wait for connections that are far behind.

use model::limits;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use testkit::wait_for;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};

/// Frames a connection may be behind before callers wait: as far as the product's memory of a log reaches.
const BEHIND_MAX: usize = limits::TAIL_ROWS_MAX;
/// Frames written together.
const TOGETHER: usize = 64;
const PATIENCE: Duration = Duration::from_secs(30);
const SWITCHED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
const TAKEN: &str = "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

type Frames = broadcast::Sender<Arc<Frame>>;

/// One frame for all; its place is free again when the last connection took it.
struct Frame {
    bytes: Vec<u8>,
    _place: OwnedSemaphorePermit,
}

/// On a runtime of its own; ends with its handle.
pub struct BareServer {
    address: SocketAddr,
    frames: Frames,
    _runtime: Runtime,
}

impl BareServer {
    /// Every message it is given is fanned out as a frame of `frame_bytes`.
    pub fn start(frame_bytes: usize) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let frames = Frames::new(BEHIND_MAX);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let (address, sender) = (listener.local_addr()?, frames.clone());
        let places = Arc::new(Semaphore::new(BEHIND_MAX));
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, sender.clone(), places.clone(), frame_bytes));
            }
        });
        Ok(Self { address, frames, _runtime: runtime })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Until so many listen.
    pub fn wait_for(&self, listeners: usize) -> anyhow::Result<()> {
        let all = || (self.frames.receiver_count() >= listeners).then_some(());
        Ok(wait_for("all to listen", PATIENCE, all)?)
    }
}

async fn serve(stream: TcpStream, frames: Frames, places: Arc<Semaphore>, frame_bytes: usize) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_until(b'\n', &mut head).await.ok().filter(|read| *read > 0)?;
    }
    if head.starts_with(b"POST") {
        return take(stream, head, &frames, &places, frame_bytes).await;
    }
    let waiting = frames.subscribe();
    let mut stream = stream.into_inner();
    stream.write_all(SWITCHED.as_bytes()).await.ok()?;
    fan_out(stream, waiting).await
}

/// One caller's messages, from the first one's head on.
async fn take(
    mut stream: BufReader<TcpStream>,
    mut head: Vec<u8>,
    frames: &Frames,
    places: &Arc<Semaphore>,
    frame_bytes: usize,
) -> Option<()> {
    loop {
        let mut body = vec![0; length_in(&head)?];
        stream.read_exact(&mut body).await.ok()?;
        // Without listeners nobody is told.
        let _place = places.clone().acquire_owned().await.ok()?;
        let _ = frames.send(Arc::new(Frame { bytes: frame(frame_bytes), _place }));
        stream.get_mut().write_all(TAKEN.as_bytes()).await.ok()?;
        head.clear();
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_until(b'\n', &mut head).await.ok().filter(|read| *read > 0)?;
        }
    }
}

/// Made once, for all.
fn frame(bytes: usize) -> Vec<u8> {
    const HEAD: usize = 4;
    let length = u16::try_from(bytes - HEAD).expect("a benchmark's message is short");
    let mut frame = vec![b'x'; bytes];
    frame[..2].copy_from_slice(&[0x81, 126]);
    frame[2..HEAD].copy_from_slice(&length.to_be_bytes());
    frame
}

/// What a request's head says of its body.
pub fn length_in(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()
}

async fn fan_out(mut stream: TcpStream, mut waiting: broadcast::Receiver<Arc<Frame>>) -> Option<()> {
    let mut together = Vec::new();
    loop {
        together.clear();
        together.extend_from_slice(&waiting.recv().await.ok()?.bytes);
        for _ in 1..TOGETHER {
            match waiting.try_recv() {
                Ok(frame) => together.extend_from_slice(&frame.bytes),
                Err(_) => break,
            }
        }
        stream.write_all(&together).await.ok()?;
    }
}

#[cfg(test)]
mod tests {
    use super::{frame, length_in};

    #[test]
    fn a_frame_is_as_long_as_it_was_asked_to_be() {
        let frame = frame(300);
        assert_eq!((frame.len(), &frame[..4]), (300, &[0x81, 126, 1, 40][..]));
    }

    #[test]
    fn a_request_says_how_long_its_body_is() {
        assert_eq!(length_in(b"POST / HTTP/1.1\r\ncontent-length: 12\r\n\r\n"), Some(12));
        assert_eq!(length_in(b"POST / HTTP/1.1\r\n\r\n"), None);
    }
}
