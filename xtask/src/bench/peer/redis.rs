//! A Redis stream over its own protocol, on a blocking socket.

use anyhow::{Context, bail, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One connection.
pub struct Stream(BufReader<TcpStream>);

/// Host and port of a URL.
pub fn address_of(url: &str) -> String {
    let rest = url.trim_start_matches("redis://");
    rest.split('/').next().unwrap_or_default().to_owned()
}

impl Stream {
    pub fn connect(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("Redis at {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Appends a row; answers with its id.
    pub fn add(&mut self, key: &str, body: &str) -> anyhow::Result<String> {
        self.ask(&["XADD", key, "*", "body", body])?;
        self.bulk()
    }

    /// Waits for rows after `last`; answers with their ids and texts.
    pub fn next(&mut self, key: &str, last: &str) -> anyhow::Result<Vec<(String, String)>> {
        self.ask(&["XREAD", "COUNT", "1000", "BLOCK", "20000", "STREAMS", key, last])?;
        // One stream, of two things: its key and its rows; each row, of two things: its id and its fields.
        self.array()?;
        self.array()?;
        self.bulk()?;
        let mut rows = Vec::new();
        for _ in 0..self.array()? {
            self.array()?;
            let (id, mut text) = (self.bulk()?, String::new());
            for _ in 0..self.array()? {
                text = self.bulk()?;
            }
            rows.push((id, text));
        }
        Ok(rows)
    }

    fn ask(&mut self, words: &[&str]) -> anyhow::Result<()> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        Ok(self.0.get_mut().write_all(request.as_bytes())?)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.0.read_line(&mut line)? > 0, "Redis closed the connection");
        Ok(line.trim_end().to_owned())
    }

    fn array(&mut self) -> anyhow::Result<usize> {
        let line = self.line()?;
        match line.strip_prefix('*').and_then(|count| count.parse().ok()) {
            Some(count) => Ok(count),
            None => bail!("an array, not {line}"),
        }
    }

    fn bulk(&mut self) -> anyhow::Result<String> {
        let line = self.line()?;
        let length: usize = match line.strip_prefix('$').and_then(|length| length.parse().ok()) {
            Some(length) => length,
            None => bail!("a text, not {line}"),
        };
        let mut text = vec![0; length + 2];
        self.0.read_exact(&mut text)?;
        text.truncate(length);
        Ok(String::from_utf8(text)?)
    }
}
