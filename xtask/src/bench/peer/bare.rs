//! A WebSocket server that does nothing but fan out: frames are made once, and what waits for a connection together is
//! written together.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use testkit::wait_for;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::broadcast;

/// Frames a connection may be behind; a round has fewer.
const BEHIND_MAX: usize = 8_192;
/// Frames written together.
const TOGETHER: usize = 64;
const PATIENCE: Duration = Duration::from_secs(30);

/// On a runtime of its own; ends with its handle.
pub struct BareServer {
    address: SocketAddr,
    frames: broadcast::Sender<Arc<[u8]>>,
    _runtime: Runtime,
}

impl BareServer {
    pub fn start() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let frames = broadcast::Sender::new(BEHIND_MAX);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let (address, sender) = (listener.local_addr()?, frames.clone());
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, sender.clone()));
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

    /// Makes the frame once, for all.
    pub fn publish(&self, text: &str) {
        let length = u16::try_from(text.len()).expect("a benchmark's message is short");
        let mut frame = vec![0x81, 126];
        frame.extend(length.to_be_bytes());
        frame.extend(text.as_bytes());
        // Without listeners nobody is told.
        let _ = self.frames.send(frame.into());
    }
}

async fn serve(mut stream: TcpStream, frames: broadcast::Sender<Arc<[u8]>>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let mut waiting = frames.subscribe();
    let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    stream.write_all(answer.as_bytes()).await.ok()?;
    let mut together = Vec::new();
    loop {
        together.clear();
        together.extend_from_slice(&waiting.recv().await.ok()?);
        for _ in 1..TOGETHER {
            match waiting.try_recv() {
                Ok(frame) => together.extend_from_slice(&frame),
                Err(_) => break,
            }
        }
        stream.write_all(&together).await.ok()?;
    }
}
