//! One client's connection to the local door: plain HTTP/1.1 over the home's socket, kept open between calls.
//!
//! Written out here on the standard library: a client that shares the product's own HTTP code would share its
//! mistakes about where an answer ends.

use serde_json::Value;
use std::io::{BufRead, BufReader, Error, ErrorKind, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Longer than the longest poll asked for, on a busy machine.
const ANSWER_BOUND: Duration = Duration::from_secs(30);

/// A client of the local door, as one member.
#[derive(Debug)]
pub(crate) struct Door {
    socket: PathBuf,
    /// Whom the operator acts as; none for the home's person itself.
    acting_as: Option<String>,
    stream: Option<BufReader<UnixStream>>,
}

/// An answer that came whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Door {
    pub(crate) fn new(socket: PathBuf, acting_as: Option<String>) -> Self {
        Self { socket, acting_as, stream: None }
    }

    /// Connects when it is not connected. Nothing was asked yet, so a refusal here says nothing about a message.
    pub(crate) fn connect(&mut self) -> Result<()> {
        if self.stream.is_none() {
            let stream = UnixStream::connect(&self.socket)?;
            stream.set_read_timeout(Some(ANSWER_BOUND))?;
            stream.set_write_timeout(Some(ANSWER_BOUND))?;
            self.stream = Some(BufReader::new(stream));
        }
        Ok(())
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<Answer> {
        self.ask("GET", path, "")
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<Answer> {
        self.ask("POST", path, &body.to_string())
    }

    /// Asks and reads the whole answer; after an error the connection is gone and the outcome unknown.
    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        self.connect()?;
        let mut stream = self.stream.take().ok_or(ErrorKind::NotConnected)?;
        let acting_as =
            self.acting_as.as_ref().map(|name| format!("postrider-as: {name}\r\n")).unwrap_or_default();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n{acting_as}\r\n{body}"
        );
        stream.get_mut().write_all(request.as_bytes())?;
        let answer = read_answer(&mut stream)?;
        self.stream = Some(stream);
        Ok(answer)
    }
}

pub(crate) fn read_answer(stream: &mut impl BufRead) -> Result<Answer> {
    let head = read_line(stream)?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| malformed(&head))?;
    let mut length = None;
    loop {
        let line = read_line(stream)?;
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok();
            }
            Some(_) => {}
            None => break,
        }
    }
    if status == 204 {
        return Ok(Answer { status, body: Value::Null });
    }
    let mut body = vec![0; length.ok_or_else(|| malformed("no content-length"))?];
    stream.read_exact(&mut body)?;
    Ok(Answer { status, body: serde_json::from_slice(&body)? })
}

/// A line of the head; the end of the stream inside the head is no answer.
fn read_line(stream: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 || !line.ends_with('\n') {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("no HTTP answer: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_to_its_length_and_no_further() {
        let mut stream = &b"HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\nx: y\r\n\r\n{\"a\": 1}HTTP"[..];
        let answer = read_answer(&mut stream).unwrap();
        assert_eq!((answer.status, answer.body["a"].as_u64()), (202, Some(1)));
        assert_eq!(stream, b"HTTP");
    }

    #[test]
    fn an_answer_cut_anywhere_is_no_answer() {
        let whole = b"HTTP/1.1 202 Accepted\r\ncontent-length: 8\r\n\r\n{\"a\": 1}";
        for end in 0..whole.len() {
            assert!(read_answer(&mut &whole[..end]).is_err(), "{end}");
        }
    }
}
