//! A caller over TCP: HTTP/1.1 written out, one connection, one request at a time.

use crate::bench::callers::{Caller, id};
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
    /// The body before and after the text, which differs from write to write as people's do; nothing for a read.
    pub body: Option<[&'static str; 2]>,
    /// What it must be answered with.
    pub status: u16,
}

/// Bytes of a write's text.
const TEXT: usize = 256;
/// Digits of the number in it.
const DIGITS: usize = 12;

/// One connection.
pub struct Asker {
    door: Connection<TcpStream>,
    request: Vec<u8>,
    /// Where the text's number ends; nothing for a read.
    number_end: Option<usize>,
    wanted: u16,
}

impl Asker {
    pub async fn connect(address: SocketAddr, asked: &Asked, session: usize) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("the door")?;
        stream.set_nodelay(true)?;
        let (line, headers) = (asked.line, &asked.headers);
        let body = asked.body.map_or_else(String::new, |[before, after]| {
            format!("{before}{:x<width$}{:0DIGITS$}{after}", id().as_str(), 0, width = TEXT - DIGITS)
        });
        let request = format!(
            "{line} HTTP/1.1\r\nhost: {address}\r\nstatehub-session: s{session}\r\n{headers}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let number_end = asked.body.map(|[_, after]| request.len() - after.len());
        let (door, request) = (Connection::new(stream), request.into_bytes());
        Ok(Self { door, request, number_end, wanted: asked.status })
    }

    fn number(&mut self, mut n: u64) {
        let Some(end) = self.number_end else { return };
        for digit in self.request[end - DIGITS..end].iter_mut().rev() {
            *digit = b'0' + u8::try_from(n % 10).unwrap_or_default();
            n /= 10;
        }
    }
}

impl Caller for Asker {
    async fn call(&mut self, n: u64) -> anyhow::Result<()> {
        self.number(n);
        let status = self.door.ask(&self.request).await?;
        ensure!(status == self.wanted, "{status} {}", self.door.body());
        Ok(())
    }
}
