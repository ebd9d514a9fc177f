//! A raw WebSocket: one thread, one stream, as few bytes of its own as possible, so that what is measured and judged is
//! the other end.

use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// A client's frames are masked; a mask of zeros is one, too.
const MASK: [u8; 4] = [0; 4];
/// Larger frames are not this product's.
const FRAME_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// An open socket.
#[derive(Debug)]
pub struct Probe {
    stream: BufReader<TcpStream>,
    held: Vec<u8>,
}

/// What comes in.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'probe> {
    /// A text.
    Text(&'probe str),
    /// The other end closed.
    Closed {
        /// Its code.
        code: u16,
        /// Its reason.
        reason: String,
    },
    /// Nothing in the time given.
    Nothing,
}

/// Why there is no frame.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The connection.
    #[error("the connection: {0}")]
    Io(#[from] std::io::Error),
    /// The door refused the upgrade.
    #[error("refused: {0}")]
    Refused(String),
    /// Bytes that are no frame of this protocol.
    #[error("not a frame: {0}")]
    NotAFrame(&'static str),
}

impl Probe {
    /// Opens `/v1/subscribe` at `address` as the bearer of `token`.
    ///
    /// # Errors
    /// When nobody listens there, or the door refuses.
    pub fn open(address: SocketAddr, token: &str) -> Result<Self, ProbeError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut probe = Self { stream: BufReader::with_capacity(64 * 1024, stream), held: Vec::new() };
        let request = format!(
            "GET /v1/subscribe HTTP/1.1\r\nhost: {address}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             sec-websocket-protocol: postrider.v1\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        probe.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        probe.stream.read_line(&mut line)?;
        if !line.starts_with("HTTP/1.1 101") {
            return Err(ProbeError::Refused(line.trim().to_owned()));
        }
        while line.trim() != "" {
            line.clear();
            probe.stream.read_line(&mut line)?;
        }
        Ok(probe)
    }

    /// Sends a text frame.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn say(&mut self, frame: &Value) -> Result<(), ProbeError> {
        self.send(TEXT, frame.to_string().as_bytes())
    }

    /// The next frame, when one begins within `patience`.
    ///
    /// # Errors
    /// When the connection breaks, or what comes is no frame.
    pub fn next(&mut self, patience: Duration) -> Result<Frame<'_>, ProbeError> {
        loop {
            if self.stream.buffer().is_empty() {
                self.stream.get_ref().set_read_timeout(Some(patience))?;
                match self.stream.fill_buf() {
                    Ok([]) => return Err(ProbeError::Io(ErrorKind::UnexpectedEof.into())),
                    Ok(_) => {}
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                        return Ok(Frame::Nothing);
                    }
                    Err(error) => return Err(error.into()),
                }
                // A frame that began comes whole, or the connection is broken.
                self.stream.get_ref().set_read_timeout(Some(Duration::from_secs(30)))?;
            }
            match self.read()? {
                TEXT => {
                    let text = std::str::from_utf8(&self.held);
                    return text.map(Frame::Text).map_err(|_| ProbeError::NotAFrame("not UTF-8"));
                }
                PING => {
                    let body = std::mem::take(&mut self.held);
                    self.send(PONG, &body)?;
                }
                PONG => {}
                CLOSE => {
                    let code = self.held.first_chunk().map_or(1005, |code| u16::from_be_bytes(*code));
                    let reason = self.held.get(2..).unwrap_or_default();
                    return Ok(Frame::Closed { code, reason: String::from_utf8_lossy(reason).into_owned() });
                }
                _ => return Err(ProbeError::NotAFrame("another kind of frame")),
            }
        }
    }

    /// Reads one frame into `held`; answers with its kind.
    fn read(&mut self) -> Result<u8, ProbeError> {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head)?;
        if head[0] & 0x80 == 0 || head[1] & 0x80 != 0 {
            return Err(ProbeError::NotAFrame("in parts, or masked"));
        }
        let length = match head[1] {
            126 => {
                let mut long = [0; 2];
                self.stream.read_exact(&mut long)?;
                u64::from(u16::from_be_bytes(long))
            }
            127 => {
                let mut long = [0; 8];
                self.stream.read_exact(&mut long)?;
                u64::from_be_bytes(long)
            }
            short => u64::from(short),
        };
        if length > FRAME_BYTES_MAX {
            return Err(ProbeError::NotAFrame("too large"));
        }
        self.held.resize(usize::try_from(length).expect("a few megabytes"), 0);
        self.stream.read_exact(&mut self.held)?;
        Ok(head[0] & 0x0f)
    }

    fn send(&mut self, kind: u8, body: &[u8]) -> Result<(), ProbeError> {
        let mut frame = vec![0x80 | kind];
        match body.len() {
            short @ 0..126 => frame.push(0x80 | u8::try_from(short).expect("below 126")),
            long @ 126..65_536 => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(long).expect("below 65,536").to_be_bytes());
            }
            longer => {
                frame.push(0x80 | 127);
                frame.extend((longer as u64).to_be_bytes());
            }
        }
        frame.extend(MASK);
        frame.extend(body);
        Ok(self.stream.get_mut().write_all(&frame)?)
    }
}
