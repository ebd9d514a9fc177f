//! A caller over TCP: HTTP/1.1 written out, one connection, one request at a time.

use crate::bench::callers::Caller;
use anyhow::{Context, ensure};
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// What every caller of a round asks.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `GET /x`.
    pub line: &'static str,
    /// Whole header lines.
    pub headers: String,
    /// The body; nothing for a read.
    pub body: String,
    /// What it must be answered with.
    pub status: u16,
}

/// One connection.
pub struct Asker {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    wanted: u16,
    line: String,
    answer: Vec<u8>,
}

impl Asker {
    pub async fn connect(address: SocketAddr, asked: &Asked, number: usize) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("the door")?;
        stream.set_nodelay(true)?;
        let (line, headers, body) = (asked.line, &asked.headers, &asked.body);
        // A session of its own: writes of one session wait for each other, and that is not what is measured.
        let request = format!(
            "{line} HTTP/1.1\r\nhost: {address}\r\nstatehub-session: s{number}\r\n{headers}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        Ok(Self {
            stream: BufReader::new(stream),
            request: request.into_bytes(),
            wanted: asked.status,
            line: String::new(),
            answer: Vec::new(),
        })
    }

    async fn status(&mut self) -> anyhow::Result<u16> {
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
        self.answer.resize(length, 0);
        self.stream.read_exact(&mut self.answer).await?;
        Ok(status)
    }
}

impl Caller for Asker {
    async fn call(&mut self, _n: u64) -> anyhow::Result<()> {
        self.stream.get_mut().write_all(&self.request).await?;
        let status = self.status().await?;
        ensure!(status == self.wanted, "{status} {}", String::from_utf8_lossy(&self.answer));
        Ok(())
    }
}
