//! A caller over TCP: HTTP/1.1 written out, one connection, one request at a time.

use crate::bench::callers::Caller;
use crate::bench::connection::Connection;
use anyhow::{Context, ensure};
use std::net::SocketAddr;
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
    door: Connection<TcpStream>,
    request: Vec<u8>,
    wanted: u16,
}

impl Asker {
    pub async fn connect(address: SocketAddr, asked: &Asked, session: usize) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("the door")?;
        stream.set_nodelay(true)?;
        let (line, headers, body) = (asked.line, &asked.headers, &asked.body);
        let request = format!(
            "{line} HTTP/1.1\r\nhost: {address}\r\nstatehub-session: s{session}\r\n{headers}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        Ok(Self { door: Connection::new(stream), request: request.into_bytes(), wanted: asked.status })
    }
}

impl Caller for Asker {
    async fn call(&mut self, _n: u64) -> anyhow::Result<()> {
        let status = self.door.ask(&self.request).await?;
        ensure!(status == self.wanted, "{status} {}", self.door.body());
        Ok(())
    }
}
