//! Publishers of a stream and its push consumer, on blocking sockets.

use super::{HELLO, Line, READY, Server, stream, text_of};
use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A publisher with its stream.
pub struct Push {
    address: String,
    wire: Wire,
    name: String,
}

/// The consumer's end.
pub struct Pushed(Wire);

struct Wire {
    stream: BufReader<TcpStream>,
    line: String,
    inbox: String,
}

impl Push {
    /// A stream of its own with a consumer that pushes to a subject.
    pub fn open(server: &Server, name: &str) -> anyhow::Result<Self> {
        let wire = Wire::connect(&server.address, &format!("_INBOX.{name}.0"))?;
        let mut push = Self { address: server.address.clone(), wire, name: name.to_owned() };
        let (ask, config) = stream(name, &push.subject());
        push.wire.ask(&ask, &config)?;
        let consumer = format!(
            "{{\"stream_name\":\"{name}\",\"config\":{{\"deliver_subject\":\"push.{name}\",\
             \"deliver_policy\":\"all\",\"ack_policy\":\"none\",\"replay_policy\":\"instant\"}}}}"
        );
        push.wire.ask(&format!("$JS.API.CONSUMER.CREATE.{name}"), &consumer)?;
        Ok(push)
    }

    /// The `number`-th other publisher to the same stream, on a connection of its own.
    pub fn another(&self, number: usize) -> anyhow::Result<Self> {
        let wire = Wire::connect(&self.address, &format!("_INBOX.{}.{}", self.name, number + 1))?;
        Ok(Self { address: self.address.clone(), wire, name: self.name.clone() })
    }

    /// The consumer's end, on a connection of its own.
    pub fn reader(&self) -> anyhow::Result<Pushed> {
        let mut wire = Wire::connect(&self.address, &format!("push.{}", self.name))?;
        wire.say("PING\r\n")?;
        while wire.line.trim_end() != "PONG" {
            wire.read_line()?;
        }
        Ok(Pushed(wire))
    }

    /// Publishes and waits for the stream's answer.
    pub fn publish(&mut self, body: &str) -> anyhow::Result<()> {
        let subject = self.subject();
        self.wire.ask(&subject, body).map(drop)
    }

    fn subject(&self) -> String {
        format!("bench.{}", self.name)
    }
}

impl Pushed {
    /// The next message.
    pub fn next(&mut self) -> anyhow::Result<String> {
        self.0.message()
    }
}

impl Wire {
    /// A connection that listens to `inbox`.
    fn connect(address: &str, inbox: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).context("NATS")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READY))?;
        let (line, inbox) = (String::new(), inbox.to_owned());
        let mut wire = Self { stream: BufReader::new(stream), line, inbox };
        wire.read_line()?;
        wire.say(&format!("{HELLO}SUB {} 1\r\n", wire.inbox))?;
        Ok(wire)
    }

    fn say(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(self.stream.get_mut().write_all(text.as_bytes())?)
    }

    fn ask(&mut self, subject: &str, body: &str) -> anyhow::Result<String> {
        self.say(&format!("PUB {subject} {} {}\r\n{body}\r\n", self.inbox, body.len()))?;
        let answer = self.message()?;
        ensure!(!answer.contains("\"error\""), "{subject}: {answer}");
        Ok(answer)
    }

    fn read_line(&mut self) -> anyhow::Result<()> {
        self.line.clear();
        ensure!(self.stream.read_line(&mut self.line)? > 0, "NATS closed the connection");
        Ok(())
    }

    fn message(&mut self) -> anyhow::Result<String> {
        loop {
            self.read_line()?;
            match Line::parse(&self.line)? {
                Line::Ping => self.say("PONG\r\n")?,
                Line::Message { bytes } => {
                    let mut payload = vec![0; bytes + 2];
                    self.stream.read_exact(&mut payload)?;
                    return Ok(text_of(&payload));
                }
                Line::Other => {}
            }
        }
    }
}
