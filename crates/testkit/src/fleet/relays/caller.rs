//! A caller of the relay, and its writes.

use super::Answered;
use crate::kills::door::{Answer, read_answer};
use crate::wait::wait_for;
use serde_json::{Value, json};
use std::io::{BufReader, ErrorKind, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longer than a write waits for its turn and for the upstream together.
const ANSWER_BOUND: Duration = Duration::from_secs(60);

/// A connection kept open.
pub(in crate::fleet) struct Caller {
    address: SocketAddr,
    headers: String,
    stream: Option<BufReader<TcpStream>>,
}

impl Caller {
    /// `headers` are whole lines, sent with every request.
    pub(in crate::fleet) fn new(address: SocketAddr, headers: String) -> Self {
        Self { address, headers, stream: None }
    }

    /// Asks and reads the whole answer; after an error the connection is gone and the outcome unknown.
    pub(in crate::fleet) fn ask(
        &mut self,
        method: &str,
        path: &str,
        more: &str,
        body: &Value,
    ) -> Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(ANSWER_BOUND))?;
                BufReader::new(stream)
            }
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (host, headers, length) = (self.address, &self.headers, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n{headers}{more}\r\n{body}"
        );
        stream.get_mut().write_all(request.as_bytes())?;
        let answer = read_answer(&mut stream).map_err(|error| match error.kind() {
            ErrorKind::InvalidData => std::io::Error::other(error.to_string()),
            _ => error,
        })?;
        self.stream = Some(stream);
        Ok(answer)
    }
}

/// One session's writes of a round, one after the other; each is asked again until it is answered.
pub(super) fn write_all(
    address: SocketAddr,
    token: &str,
    round: u64,
    session: u64,
    writes: u64,
    count: &AtomicU64,
) -> std::result::Result<Vec<Answered>, String> {
    let headers = format!("statehub-relay-token: {token}\r\nstatehub-session: s{session}\r\n");
    let mut caller = Caller::new(address, headers);
    let mut answers = Vec::new();
    for place in 0..writes {
        let key = format!("w-{round}-{session}-{place}");
        let body = json!({"summary": key, "session": format!("s{session}")});
        let more = format!("idempotency-key: {key}\r\n");
        let mut wrong = None;
        let answered = wait_for("an answer", ANSWER_BOUND, || {
            match caller.ask("POST", "/progress/", &more, &body) {
                Ok(answer) if matches!(answer.status, 200..=202) => Some(Some(answer.status == 202)),
                // Away, stopping, or a copy of it under way: asked again under the same key.
                Ok(answer) if matches!(answer.status, 429 | 500..=599) => None,
                Ok(answer) if answer.body["error"] == "idempotency_in_progress" => None,
                Ok(answer) => {
                    wrong = Some(format!("{key} was answered {}: {}", answer.status, answer.body));
                    Some(None)
                }
                Err(_) => None,
            }
        });
        let said = match (answered, wrong) {
            (Ok(Some(queued)), _) => {
                answers.push(Answered { key, session, queued });
                count.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            (Ok(None), wrong) => wrong.unwrap_or_default(),
            (Err(waited), _) => format!("{key}: {waited}"),
        };
        // The round must not wait for the rest of a session that ended.
        count.fetch_add(writes - place, Ordering::Relaxed);
        return Err(said);
    }
    Ok(answers)
}
