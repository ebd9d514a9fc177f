//! One client's connection to the local door: plain HTTP/1.1 over the home's socket, kept open between calls.
//!
//! Written out here on the standard library: a client that shares the product's own HTTP code would share its
//! mistakes about where an answer ends.

use model::ErrorCode;
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

/// Words that deny storage. Written out here: a driver that asks the product what its words mean agrees with it.
const DENIALS: [&str; 3] = ["nothing was stored", "nothing of this was stored", "nothing of it was stored"];

impl Answer {
    /// Whether a refusal says that nothing of the request is stored, in its message or in what its code means. What was
    /// refused for its form or for its caller never came to a store; a 409 speaks of what is stored.
    pub(crate) fn denies_storage(&self) -> bool {
        let at_the_door = (400..500).contains(&self.status) && self.status != 409;
        let words = self.refusal();
        at_the_door || self.status >= 500 && DENIALS.iter().any(|denial| words.contains(denial))
    }

    /// A refusal as its caller reads it: status, code, message and the code's meaning in docs/errors.md.
    pub(crate) fn refusal(&self) -> String {
        let code = self.body["error"].as_str().unwrap_or_default();
        let meaning = ErrorCode::parse(code).map_or("", ErrorCode::meaning);
        format!("{} {code}: {}; {meaning}", self.status, self.body["message"].as_str().unwrap_or_default())
    }
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

    #[test]
    fn a_refusal_denies_storage_by_its_words_or_by_coming_from_the_door() {
        let answer = |status, error: &str, message: &str| Answer {
            status,
            body: serde_json::json!({"error": error, "message": message}),
        };
        for (status, error, message, denies) in [
            (507, "insufficient_storage", "", true),
            (503, "storage_busy", "", true),
            (503, "storage_stopped", "", true),
            (503, "outcome_unknown", "", false),
            (503, "broker_unreachable", "", false),
            (500, "internal", "", false),
            (500, "internal", "/x.db: the disk failed: nothing of this was stored", true),
            (409, "idempotency_key_reused", "", false),
            (400, "invalid_request", "", true),
            (202, "", "nothing was stored", false),
        ] {
            assert_eq!(answer(status, error, message).denies_storage(), denies, "{status} {error} {message}");
        }
    }
}
