//! A direct caller: HTTP/1.1 with a token, over a connection kept open, to whichever broker listens.

use super::FleetError;
use crate::kills::door::{Answer, read_answer};
use serde_json::{Value, json};
use std::io::{BufReader, Error, ErrorKind, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any answer takes on a busy machine.
pub(super) const ANSWER_BOUND: Duration = Duration::from_secs(30);

/// A message that is put off this often in a row is not about to be answered.
pub(super) const TRIES_MAX: u32 = 200;

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

    /// Asks and waits for the answer.
    pub(super) fn call(&mut self, message: &Value) -> Result<Answer> {
        self.ask(message)?;
        self.answer(ANSWER_BOUND)
    }

    /// The receipt of a message, which is asked for under one id until there is one.
    pub(super) fn post(&mut self, message: &Value) -> std::result::Result<Value, FleetError> {
        let mut last = String::new();
        for _ in 0..TRIES_MAX {
            match self.call(message) {
                Ok(Answer { status: 200 | 201, body }) => return Ok(body),
                Ok(answer) if matches!(answer.status, 429 | 503) => last = answer.refusal(),
                Ok(answer) => return Err(unreadable(message, answer.refusal())),
                Err(error) => last = error.to_string(),
            }
        }
        Err(unreadable(message, last))
    }

    /// Whether the broker knows `id` of this caller: offered again with other words, one that is free is taken.
    pub(super) fn is_known(&mut self, id: &str) -> Result<bool> {
        let answer = self.call(&json!({"to": "#known", "body": "is it free?", "client_message_id": id}))?;
        match answer.status {
            200 | 409 => Ok(true),
            201 => Ok(false),
            _ => Err(Error::other(format!("asking about {id}: {}", answer.refusal()))),
        }
    }
}

fn unreadable(message: &Value, answered: String) -> FleetError {
    FleetError::Unreadable { asked: message.to_string(), answered }
}
