//! A caller at the local door: HTTP/1.1 over the home's socket, written out and woken by answers alone, so that the
//! callers cost as little as the peers' do.

use super::Caller;
use crate::bench::connection::Connection;
use anyhow::{Context, ensure};
use net::quiet::QuietStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use testkit::seeded::Seeded;

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
    door: Connection<QuietStream>,
    to: String,
    body: String,
    ids: Option<Seeded>,
    /// What it asks; without an id of its own always the same.
    request: String,
}

impl Sender {
    pub fn connect(socket: &Path, number: usize, bytes: usize, ids: Ids) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(socket).context("the local door")?;
        stream.set_nonblocking(true)?;
        let ids = match ids {
            Ids::Minted => None,
            Ids::Random { seed } => Some(Seeded::new(seed << 8 | number as u64)),
        };
        let (to, body) = (format!("#lane-{number}"), "x".repeat(bytes));
        let request = request(&to, &body, "");
        Ok(Self { door: Connection::new(QuietStream::from_std(stream)?), to, body, ids, request })
    }
}

impl Caller for Sender {
    async fn call(&mut self, _n: u64) -> anyhow::Result<()> {
        if let Some(dice) = &mut self.ids {
            let id = format!(r#","client_message_id":"{:016x}{:016x}""#, dice.next_u64(), dice.next_u64());
            self.request = request(&self.to, &self.body, &id);
        }
        let status = self.door.ask(self.request.as_bytes()).await?;
        ensure!(status == 202, "{status} {}", self.door.body());
        Ok(())
    }
}

fn request(to: &str, body: &str, id: &str) -> String {
    let json = format!(r#"{{"to":"{to}","body":"{body}"{id}}}"#);
    let length = json.len();
    format!(
        "POST /v1/send HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{json}"
    )
}
