//! nginx, the server others put in front of an API: as a proxy that keeps its connections, and as the API itself.

use crate::bench::Request;
use anyhow::Context;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use testkit::process::{Orphaned, Process};
use testkit::wait_for;

const READY: Duration = Duration::from_secs(30);
/// As many processes as the machine has cores here; both roles get the same.
const WORKERS: usize = 2;

/// A private server; ends with its handle.
pub struct Server {
    address: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

impl Server {
    /// An API whose every answer is the same short JSON.
    pub fn api(request: &Request<'_>) -> anyhow::Result<Self> {
        let answer = "default_type application/json; return 200 '{\"status\":\"ok\"}';";
        Self::start(request, |address| format!("server {{ listen {address}; location / {{ {answer} }} }}"))
    }

    /// A proxy before `upstream`, with its connections kept open on both sides.
    pub fn proxy(request: &Request<'_>, upstream: SocketAddr) -> anyhow::Result<Self> {
        Self::start(request, |address| {
            format!(
                "upstream api {{ server {upstream}; keepalive 128; keepalive_requests 1000000000; }}\n\
                 server {{ listen {address}; location / {{ proxy_pass http://api; proxy_http_version 1.1; \
                 proxy_set_header Connection \"\"; }} }}"
            )
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn start(request: &Request<'_>, servers: impl Fn(SocketAddr) -> String) -> anyhow::Result<Self> {
        let folder = request.folder()?;
        let address = SocketAddr::from(([127, 0, 0, 1], testkit::port::free()?));
        let config = folder.path().join("nginx.conf");
        std::fs::write(&config, whole(folder.path(), &servers(address)))?;
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&config).arg("-e").arg(folder.path().join("errors"));
        let orphaned = Orphaned::Reaped { folder: folder.path().to_owned() };
        let process = Process::spawn(command, b"", &orphaned).context("nginx cannot be run")?;
        wait_for("nginx to listen", READY, || std::net::TcpStream::connect(address).ok())?;
        Ok(Self { address, _process: process, _folder: folder })
    }
}

/// Nothing of it lies outside its folder.
fn whole(folder: &Path, servers: &str) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("{kind}_temp_path {};", folder.join(kind).display()))
        .collect();
    format!(
        "daemon off; worker_processes {WORKERS}; pid {};\nevents {{ worker_connections 1024; }}\n\
         http {{ access_log off; keepalive_requests 1000000000; {temporary}\n{servers} }}\n",
        folder.join("pid").display()
    )
}
