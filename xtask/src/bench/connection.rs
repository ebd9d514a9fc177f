//! A caller's HTTP/1.1 connection, written out, so that callers cost as little as the peers' do.

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// One connection, one request at a time.
pub struct Connection<S> {
    stream: BufReader<S>,
    line: String,
    body: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub fn new(stream: S) -> Self {
        Self { stream: BufReader::new(stream), line: String::new(), body: Vec::new() }
    }

    /// The status of the answer to a request written out.
    pub async fn ask(&mut self, request: &[u8]) -> anyhow::Result<u16> {
        self.stream.get_mut().write_all(request).await?;
        self.line.clear();
        self.stream.read_line(&mut self.line).await?;
        let status = self.line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.with_context(|| format!("no answer: {:?}", self.line))?;
        let mut length = 0;
        loop {
            self.line.clear();
            self.stream.read_line(&mut self.line).await?;
            match self.line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().context("a length")?;
                }
                Some(_) => {}
                None => break,
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).await?;
        Ok(status)
    }

    /// The body of the last answer.
    pub fn body(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
