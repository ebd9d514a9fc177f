//! A private Redis: free port, temporary folder, nothing kept on disk.
//!
//! Invariant: memory is all it has, so a restart forgets everything, which is the fault the product must bear.

use crate::port;
use crate::process::{Channel, LineNeverCame, Orphaned, Process};
use std::io::{BufRead, BufReader, Error, ErrorKind, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Names the run's server; `cargo xtask test` sets it.
pub const URL_VARIABLE: &str = "POSTRIDER_TEST_REDIS";
/// Debian's package that brings the server.
pub const PACKAGE: &str = "redis-server";

const START_BOUND: Duration = Duration::from_secs(30);
const START_TRIES: u32 = 5;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It could not be run, or its folder not be made.
    #[error("redis-server: {0}; if it is missing, install the package `{PACKAGE}`")]
    Io(#[from] std::io::Error),
    /// It never became ready, on any of the tried ports.
    #[error("redis-server did not become ready: {0}")]
    NotReady(#[from] LineNeverCame),
}

/// A server of one's own, to freeze, kill and restart at will; ended and removed on drop.
#[derive(Debug)]
pub struct Private {
    // Declared before the folder: fields drop in this order.
    server: Process,
    folder: TempDir,
    port: u16,
}

/// A place in some Redis where no other test writes.
#[derive(Debug)]
pub struct Keyspace {
    url: String,
    prefix: String,
    _own: Option<Private>,
}

impl Private {
    /// Starts one.
    pub fn start() -> Result<Self, StartError> {
        let folder = tempfile::Builder::new().prefix("postrider-redis-").tempdir()?;
        let mut tries = 1;
        loop {
            let port = port::free()?;
            match serve(&folder, port) {
                Ok(server) => return Ok(Self { server, folder, port }),
                Err(StartError::NotReady(_)) if tries < START_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Asks one command, its words separated by spaces; the strings and numbers of the answer, in order.
    pub fn ask(&self, command: &str) -> std::io::Result<Vec<String>> {
        let mut stream = BufReader::new(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?);
        stream.get_mut().set_read_timeout(Some(START_BOUND))?;
        stream.get_mut().write_all(format!("{command}\r\n").as_bytes())?;
        let mut values = Vec::new();
        read_values(&mut stream, &mut values)?;
        Ok(values)
    }

    /// kill -9.
    pub fn kill9(&mut self) {
        self.server.kill9();
    }

    /// Stands still with its connections open, until [`Self::thaw`].
    pub fn freeze(&mut self) {
        self.server.freeze();
    }

    /// Goes on after [`Self::freeze`].
    pub fn thaw(&mut self) {
        self.server.thaw();
    }

    /// Starts again on the same port, empty.
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.server.kill9();
        self.server = serve(&self.folder, self.port)?;
        Ok(())
    }
}

impl Keyspace {
    /// A fresh prefix on the run's server or, outside a run, on a server of its own.
    pub fn create() -> Result<Self, StartError> {
        let (url, own) = match std::env::var(URL_VARIABLE) {
            Ok(url) => (url, None),
            Err(_) => {
                let own = Private::start()?;
                (own.url(), Some(own))
            }
        };
        let mut bytes = [0_u8; 8];
        getrandom::fill(&mut bytes).expect("the kernel has random bytes");
        Ok(Self { url, prefix: format!("t{:016x}:", u64::from_ne_bytes(bytes)), _own: own })
    }

    /// The server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What every key of the test begins with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

/// One value of the server's protocol: a line, or a count with as many bytes or values behind it.
fn read_values(stream: &mut impl BufRead, values: &mut Vec<String>) -> std::io::Result<()> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let (kind, rest) = line.trim_end().split_at_checked(1).ok_or(ErrorKind::UnexpectedEof)?;
    let count = || rest.parse::<usize>().map_err(|_| Error::new(ErrorKind::InvalidData, rest.to_owned()));
    match kind {
        "*" => (0..count()?).try_for_each(|_| read_values(stream, values)),
        "$" if rest == "-1" => Ok(()),
        "$" => {
            let mut bytes = vec![0; count()? + 2];
            stream.read_exact(&mut bytes)?;
            values.push(String::from_utf8_lossy(&bytes).trim_end().to_owned());
            Ok(())
        }
        "+" | ":" => {
            values.push(rest.to_owned());
            Ok(())
        }
        _ => Err(Error::new(ErrorKind::InvalidData, line.trim_end().to_owned())),
    }
}

fn serve(folder: &TempDir, port: u16) -> Result<Process, StartError> {
    let mut command = Command::new("redis-server");
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(["--daemonize", "no", "--logfile", "", "--dir"])
        .arg(folder.path())
        .env("LC_ALL", "C");
    let server = Process::spawn(command, b"", &Orphaned::Reaped { folder: folder.path().to_owned() })?;
    server.line(Channel::Stdout, "redis-server to be ready", START_BOUND, |line| {
        line.contains("Ready to accept connections")
    })?;
    Ok(server)
}
