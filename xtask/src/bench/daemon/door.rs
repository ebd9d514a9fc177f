//! A caller at the local door: HTTP/1.1 over the home's socket, written out, so that the callers cost as little as
//! the peers' do.

use super::Caller;
use crate::bench::connection::Connection;
use anyhow::{Context, ensure};
use std::path::Path;
use testkit::seeded::Seeded;
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
    door: Connection<UnixStream>,
    to: String,
    body: String,
    ids: Option<Seeded>,
}

impl Sender {
    pub async fn connect(socket: &Path, number: usize, bytes: usize, ids: Ids) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(socket).await.context("the local door")?;
        let ids = match ids {
            Ids::Minted => None,
            Ids::Random { seed } => Some(Seeded::new(seed << 8 | number as u64)),
        };
        Ok(Self {
            door: Connection::new(stream),
            to: format!("#lane-{number}"),
            body: "x".repeat(bytes),
            ids,
        })
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
        let status = self.door.ask(request.as_bytes()).await?;
        ensure!(status == 202, "{status} {}", self.door.body());
        Ok(())
    }
}
