//! A caller's HTTP/1.1 connection, written out, so that callers cost as little as the peers' do.

use anyhow::{Context, ensure};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Room for an answer; a longer one makes its own.
const ANSWER_BYTES: usize = 4 * 1024;

/// One connection, one request at a time.
pub struct Connection<S> {
    stream: S,
    /// The last answer, head and body.
    answer: Vec<u8>,
    head_bytes: usize,
}

/// What a head says of its answer.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    bytes: usize,
    body_bytes: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, answer: Vec::with_capacity(ANSWER_BYTES), head_bytes: 0 }
    }

    /// The status of the answer to a request written out.
    pub async fn ask(&mut self, request: &[u8]) -> anyhow::Result<u16> {
        self.stream.write_all(request).await?;
        self.answer.clear();
        let head = loop {
            self.more().await?;
            if let Some(head) = Head::of(&self.answer)? {
                break head;
            }
        };
        self.head_bytes = head.bytes;
        while self.answer.len() < head.bytes + head.body_bytes {
            self.more().await?;
        }
        ensure!(self.answer.len() == head.bytes + head.body_bytes, "more than an answer: {}", self.body());
        Ok(head.status)
    }

    /// The body of the last answer.
    pub fn body(&self) -> String {
        String::from_utf8_lossy(&self.answer[self.head_bytes..]).into_owned()
    }

    async fn more(&mut self) -> anyhow::Result<()> {
        ensure!(self.stream.read_buf(&mut self.answer).await? > 0, "the connection ended within an answer");
        Ok(())
    }
}

impl Head {
    /// Nothing while it is not whole.
    fn of(answer: &[u8]) -> anyhow::Result<Option<Self>> {
        let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(&answer[..end])?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.with_context(|| format!("no answer: {head:?}"))?;
        let length = lines.filter_map(|line| line.split_once(':'));
        let length = length.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let body_bytes =
            length.last().map_or(Ok(0), |(_, value)| value.trim().parse()).context("a length")?;
        Ok(Some(Self { status, bytes: end + 4, body_bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let answer = b"HTTP/1.1 202 Accepted\r\ncontent-type: a/b\r\nContent-Length: 12\r\n\r\nbody";
        for part in 0..answer.len() - 4 {
            assert_eq!(Head::of(&answer[..part]).unwrap(), None, "{part}");
        }
        let head = Head { status: 202, bytes: answer.len() - 4, body_bytes: 12 };
        assert_eq!(Head::of(answer).unwrap(), Some(head));
        assert_eq!(Head::of(b"HTTP/1.1 204 No\r\n\r\n").unwrap().unwrap().body_bytes, 0);
        assert!(Head::of(b"SSH-2.0\r\n\r\n").is_err());
    }
}
