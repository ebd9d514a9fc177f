//! A caller at the local door: HTTP/1.1 over the home's socket, written out, so that the callers cost as little as
//! the peers' do.

use super::Caller;
use anyhow::{Context, ensure};
use std::path::Path;
use testkit::seeded::Seeded;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// Whose ids.
#[derive(Clone, Copy, Debug)]
pub enum Ids {
    /// The daemon mints them.
    Minted,
    /// The caller draws them.
    Random {
        /// Tells this round's from others'.
        seed: u64,
    },
}

/// One connection.
pub struct Sender {
    stream: BufReader<UnixStream>,
    to: String,
    body: String,
    ids: Option<Seeded>,
    line: String,
    answer: Vec<u8>,
}

impl Sender {
    pub async fn connect(socket: &Path, number: usize, bytes: usize, ids: Ids) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(socket).await.context("the local door")?;
        let ids = match ids {
            Ids::Minted => None,
            Ids::Random { seed } => Some(Seeded::new(seed << 8 | number as u64)),
        };
        Ok(Self {
            stream: BufReader::new(stream),
            to: format!("#lane-{number}"),
            body: "x".repeat(bytes),
            ids,
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

impl Caller for Sender {
    async fn call(&mut self, _n: u64) -> anyhow::Result<()> {
        let id = match &mut self.ids {
            Some(dice) => {
                format!(r#","client_message_id":"{:016x}{:016x}""#, dice.next_u64(), dice.next_u64())
            }
            None => String::new(),
        };
        let body = format!(r#"{{"to":"{}","body":"{}"{id}}}"#, self.to, self.body);
        let request = format!(
            "POST /v1/send HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        let status = self.status().await?;
        ensure!(status == 202, "{status} {}", String::from_utf8_lossy(&self.answer));
        Ok(())
    }
}
