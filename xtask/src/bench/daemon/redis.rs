//! The peer to beat: one script that looks an id up and stores its message, synced before the answer.

use super::{Caller, Measured, round as all_at_once};
use anyhow::{Context, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const SCRIPT: &str = "if redis.call('SET', KEYS[1], ARGV[1], 'NX') then \
    return redis.call('XADD', 'log', '*', 'id', KEYS[1], 'body', ARGV[2]) end return false";
const FINGERPRINT: [u8; 32] = [b'7'; 32];

struct Sender {
    stream: BufReader<TcpStream>,
    sha: String,
    prefix: String,
    body: String,
    line: String,
}

/// One round, a connection for each caller.
pub async fn round(url: &str, callers: usize, bytes: usize, seed: u64) -> anyhow::Result<Measured> {
    let address = url.trim_start_matches("redis://").trim_end_matches('/');
    let address = address.split('/').next().unwrap_or_default();
    let mut senders = Vec::with_capacity(callers);
    for number in 0..callers {
        let stream = TcpStream::connect(address).await.with_context(|| format!("Redis at {address}"))?;
        stream.set_nodelay(true)?;
        let mut sender = Sender {
            stream: BufReader::new(stream),
            sha: String::new(),
            // Time first, as everybody's ids here.
            prefix: format!("{seed:08}-{number:02}"),
            body: "x".repeat(bytes),
            line: String::new(),
        };
        sender.sha = sender.ask(&["SCRIPT", "LOAD", SCRIPT]).await?;
        senders.push(sender);
    }
    all_at_once(senders).await
}

impl Sender {
    /// Asks, and reads one bulk answer.
    async fn ask(&mut self, words: &[&str]) -> anyhow::Result<String> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        self.line.clear();
        self.stream.read_line(&mut self.line).await?;
        let length = self.line.trim_end().strip_prefix('$').and_then(|length| length.parse::<usize>().ok());
        let length = length.with_context(|| format!("every message of a round is new: {:?}", self.line))?;
        let mut answer = vec![0; length + 2];
        self.stream.read_exact(&mut answer).await?;
        answer.truncate(length);
        Ok(String::from_utf8(answer)?)
    }
}

impl Caller for Sender {
    async fn call(&mut self, n: u64) -> anyhow::Result<()> {
        let key = format!("{n:010}-{}", self.prefix);
        let (sha, body) = (self.sha.clone(), std::mem::take(&mut self.body));
        let fingerprint = std::str::from_utf8(&FINGERPRINT).context("a fingerprint")?;
        let place = self.ask(&["EVALSHA", &sha, "1", &key, fingerprint, &body]).await;
        self.body = body;
        ensure!(place?.contains('-'), "a place in the log");
        Ok(())
    }
}
