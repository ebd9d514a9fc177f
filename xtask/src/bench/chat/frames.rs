//! A follower's WebSocket that only counts: what is measured is the server.

use super::crowd::Tally;
use anyhow::{Context, ensure};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TEXT: u8 = 1;
const PING: u8 = 9;
/// An empty one, masked as a client's frames are.
const PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];

/// Opens one and says `hello`.
pub(super) async fn open(address: SocketAddr, token: &str, hello: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let request = format!(
        "GET /v1/subscribe HTTP/1.1\r\nhost: {address}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         sec-websocket-protocol: postrider.v1\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    ensure!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    let length = u8::try_from(hello.len()).context("a short hello")?;
    let mut frame = vec![0x81];
    if length < 126 {
        frame.push(0x80 | length);
    } else {
        frame.extend([0x80 | 126, 0, length]);
    }
    frame.extend([0; 4]);
    frame.extend(hello.as_bytes());
    stream.write_all(&frame).await?;
    Ok(stream)
}

/// Counts text frames by their heads, and answers pings.
pub(super) async fn count(mut stream: TcpStream, tally: Arc<Tally>) {
    let (mut buffer, mut held) = (vec![0; 64 * 1024], Vec::new());
    while let Ok(read) = stream.read(&mut buffer).await {
        if read == 0 {
            return;
        }
        held.extend_from_slice(&buffer[..read]);
        let (mut at, mut seen, mut bytes) = (0, 0, 0);
        while let Some((kind, length)) = frame_at(&held[at..]) {
            if at + length > held.len() {
                break;
            }
            match kind {
                TEXT => {
                    seen += 1;
                    bytes += length as u64;
                }
                // Whoever says nothing for long is taken for dead.
                PING if stream.write_all(&PONG).await.is_err() => return,
                _ => {}
            }
            at += length;
        }
        held.drain(..at);
        tally.add(seen, bytes);
    }
}

/// The frame's kind, and its length with its head.
fn frame_at(bytes: &[u8]) -> Option<(u8, usize)> {
    let (kind, short) = (*bytes.first()?, *bytes.get(1)?);
    let length = match short {
        126 => 4 + usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)),
        127 => 10 + usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?,
        short => 2 + usize::from(short),
    };
    Some((kind & 0x0f, length))
}

#[cfg(test)]
mod tests {
    use super::{PING, TEXT, frame_at};

    #[test]
    fn frames_are_counted_by_their_heads() {
        assert_eq!(frame_at(&[0x81, 5, 0, 0]), Some((TEXT, 7)));
        assert_eq!(frame_at(&[0x89, 0]), Some((PING, 2)));
        assert_eq!(frame_at(&[0x81, 126, 1, 0]), Some((TEXT, 260)));
        assert_eq!(frame_at(&[0x81, 126, 1]), None);
        assert_eq!(frame_at(&[]), None);
    }
}
