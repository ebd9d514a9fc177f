//! A direct caller: HTTP/1.1 with a token, over a connection kept open, to whichever broker listens.

use crate::kills::door::{Answer, read_answer};
use serde_json::Value;
use std::io::{BufReader, ErrorKind, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any answer takes on a busy machine.
pub(super) const ANSWER_BOUND: Duration = Duration::from_secs(30);

/// One connection's owner. Asking and reading are apart, so that many calls can be under way from one thread.
pub(super) struct Caller {
    addresses: Vec<SocketAddr>,
    at: usize,
    token: String,
    stream: Option<BufReader<TcpStream>>,
}

impl Caller {
    pub(super) fn new(addresses: Vec<SocketAddr>, at: usize, token: &str) -> Self {
        Self { addresses, at, token: token.to_owned(), stream: None }
    }

    /// Connects when it is not connected: to the next broker when this one does not listen.
    pub(super) fn connect(&mut self) -> Result<()> {
        if self.stream.is_none() {
            let address = self.addresses[self.at % self.addresses.len()];
            let connected = TcpStream::connect(address).inspect_err(|_| self.at += 1)?;
            connected.set_nodelay(true)?;
            connected.set_write_timeout(Some(ANSWER_BOUND))?;
            self.stream = Some(BufReader::new(connected));
        }
        Ok(())
    }

    /// Hands a message over; the answer is still to be read.
    pub(super) fn ask(&mut self, message: &Value) -> Result<()> {
        self.connect()?;
        let mut stream = self.stream.take().ok_or(ErrorKind::NotConnected)?;
        let (body, token) = (message.to_string(), &self.token);
        let (host, length) = (stream.get_ref().peer_addr()?, body.len());
        let request = format!(
            "POST /v1/meshes/home/messages HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.get_mut().write_all(request.as_bytes())?;
        self.stream = Some(stream);
        Ok(())
    }

    /// The answer, when it comes within `patience`; otherwise the connection is gone and the outcome unknown.
    pub(super) fn answer(&mut self, patience: Duration) -> Result<Answer> {
        let mut stream = self.stream.take().ok_or(ErrorKind::NotConnected)?;
        stream.get_ref().set_read_timeout(Some(patience))?;
        let answer = read_answer(&mut stream)?;
        self.stream = Some(stream);
        Ok(answer)
    }
}
