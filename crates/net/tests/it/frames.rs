//! A WebSocket client that can say anything: frames are made by hand, right or wrong.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scene::{Line, Scene};

pub const TEXT: u8 = 0x1;
pub const BINARY: u8 = 0x2;
pub const CLOSE: u8 = 0x8;
pub const PING: u8 = 0x9;
pub const PONG: u8 = 0xa;
pub const FIN: u8 = 0x80;

/// A frame as it was received.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub opcode: u8,
    pub payload: Vec<u8>,
}

impl Frame {
    /// The code of a close frame.
    pub fn close_code(&self) -> u16 {
        assert_eq!(self.opcode, CLOSE, "{self:?}");
        u16::from_be_bytes([self.payload[0], self.payload[1]])
    }
}

/// A masked frame; the mask is zero, which is a mask.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = head(first, payload.len() as u64, 0x80);
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

/// The first bytes of a frame that announces `length`.
pub fn head(first: u8, length: u64, mask: u8) -> Vec<u8> {
    let mut bytes = vec![first];
    match length {
        0..126 => bytes.push(mask | u8::try_from(length).unwrap()),
        126..65_536 => {
            bytes.push(mask | 126);
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        65_536.. => {
            bytes.push(mask | 127);
            bytes.extend(length.to_be_bytes());
        }
    }
    bytes
}

/// A line that was upgraded at `/socket`.
pub async fn upgraded(scene: &Scene) -> Line {
    let mut line = scene.line().await;
    line.say(&upgrade_head(scene, "postrider.v1, ticket.RIGHT", "dGhlIHNhbXBsZSBub25jZQ==")).await;
    let answer = line.until("\r\n\r\n").await.to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 101 "), "{answer}");
    assert!(answer.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{answer}");
    assert!(answer.contains("sec-websocket-protocol: postrider.v1\r\n"), "{answer}");
    line
}

pub fn upgrade_head(scene: &Scene, protocols: &str, key: &str) -> String {
    let protocols = format!("sec-websocket-protocol: {protocols}");
    let key = format!("sec-websocket-key: {key}");
    let lines = ["upgrade: websocket", "sec-websocket-version: 13", &key, &protocols];
    scene.head("GET /socket", &lines).replace("connection: close", "connection: keep-alive, Upgrade")
}

impl Line {
    /// Writes what the other side may no longer want.
    pub async fn push(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
    }

    /// The next frame, unmasked as a server's are.
    pub async fn frame(&mut self) -> Frame {
        let opcode = self.0.read_u8().await.unwrap() & 0x0f;
        let length = match self.0.read_u8().await.unwrap() {
            126 => u64::from(self.0.read_u16().await.unwrap()),
            127 => self.0.read_u64().await.unwrap(),
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut payload).await.unwrap();
        Frame { opcode, payload }
    }
}
