//! Callers that send messages which are deduped by their ids.

use super::{HELLO, Line, Server, stream, text_of};
use crate::bench::Measured;
use crate::bench::callers::{Caller, round as all_at_once};
use anyhow::{Context, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

struct Sender {
    stream: BufReader<TcpStream>,
    inbox: String,
    prefix: String,
    body: String,
    line: String,
}

impl Server {
    /// One round, a connection for each caller.
    pub async fn round(&self, callers: usize, bytes: usize, seed: u64) -> anyhow::Result<Measured> {
        let mut first = Sender::connect(&self.address, 0, bytes, seed).await?;
        first.make_stream().await?;
        let mut senders = vec![first];
        for number in 1..callers {
            senders.push(Sender::connect(&self.address, number, bytes, seed).await?);
        }
        all_at_once(senders).await
    }
}

impl Sender {
    async fn connect(address: &str, number: usize, bytes: usize, seed: u64) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("NATS")?;
        stream.set_nodelay(true)?;
        let mut sender = Self {
            stream: BufReader::new(stream),
            inbox: format!("_INBOX.{seed}.{number}"),
            prefix: format!("{seed:08}-{number:02}"),
            body: "x".repeat(bytes),
            line: String::new(),
        };
        sender.read_line().await?;
        let hello = format!("{HELLO}SUB {} 1\r\n", sender.inbox);
        sender.stream.get_mut().write_all(hello.as_bytes()).await?;
        Ok(sender)
    }

    /// The stream that holds everything, once a server.
    async fn make_stream(&mut self) -> anyhow::Result<()> {
        let (ask, config) = stream("BENCH", "bench");
        let request = format!("PUB {ask} {} {}\r\n{config}\r\n", self.inbox, config.len());
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        let answer = self.answer().await?;
        ensure!(!answer.contains("\"error\""), "{answer}");
        Ok(())
    }

    async fn read_line(&mut self) -> anyhow::Result<()> {
        self.line.clear();
        let read = self.stream.read_line(&mut self.line).await?;
        ensure!(read > 0, "NATS closed the connection");
        Ok(())
    }

    /// The next message to the inbox; pings are answered on the way.
    async fn answer(&mut self) -> anyhow::Result<String> {
        loop {
            self.read_line().await?;
            match Line::parse(&self.line)? {
                Line::Ping => self.stream.get_mut().write_all(b"PONG\r\n").await?,
                Line::Message { bytes } => {
                    let mut payload = vec![0; bytes + 2];
                    self.stream.read_exact(&mut payload).await?;
                    return Ok(text_of(&payload));
                }
                Line::Other => {}
            }
        }
    }
}

impl Caller for Sender {
    async fn call(&mut self, n: u64) -> anyhow::Result<()> {
        let head = format!("NATS/1.0\r\nNats-Msg-Id: {n:010}-{}\r\n\r\n", self.prefix);
        let (inbox, total) = (&self.inbox, head.len() + self.body.len());
        let request = format!("HPUB bench {inbox} {} {total}\r\n{head}{}\r\n", head.len(), self.body);
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        let answer = self.answer().await?;
        ensure!(answer.contains("\"seq\"") && !answer.contains("duplicate"), "{answer}");
        Ok(())
    }
}
