//! The peer to beat: one script that looks an id up and stores its message, synced before the answer.

use super::Measured;
use super::callers::{self, Caller, id};
use anyhow::ensure;
use redis::aio::MultiplexedConnection;
use redis::{Client, Script};
use testkit::redis::Private;

/// The id and the message.
pub const PLAIN: &str = "if redis.call('SET', KEYS[1], ARGV[1], 'NX') then \
    return redis.call('XADD', 'log', '*', 'id', KEYS[1], 'body', ARGV[2]) end return false";
/// And an entry for each of ten readers.
pub const FANNED: &str = "if redis.call('SET', KEYS[1], ARGV[1], 'NX') then \
    local at = redis.call('XADD', 'log', '*', 'id', KEYS[1], 'body', ARGV[2]) \
    for reader = 1, 10 do redis.call('RPUSH', 'mail:' .. reader, at) end return at end return false";

const BODY: [u8; 256] = [b'x'; 256];
const FINGERPRINT: [u8; 32] = [7; 32];

struct Sender {
    connection: MultiplexedConnection,
    script: Script,
}

/// Every write is synced before it is answered.
pub fn make_durable(server: &Private) -> anyhow::Result<()> {
    for setting in ["appendfsync always", "auto-aof-rewrite-percentage 0", "appendonly yes"] {
        let answer = server.ask(&format!("CONFIG SET {setting}"))?;
        ensure!(answer == ["OK"], "CONFIG SET {setting}: {answer:?}");
    }
    // The first file is written by a child; nothing is measured before it is done.
    testkit::wait::wait_for("the append-only file", std::time::Duration::from_secs(30), || {
        let info = server.ask("INFO persistence").ok()?.concat();
        info.contains("aof_rewrite_in_progress:0").then_some(())
    })?;
    Ok(())
}

/// One round, a connection for each caller.
pub async fn round(url: &str, script: &'static str, callers: usize) -> anyhow::Result<Measured> {
    let client = Client::open(url)?;
    let mut senders = Vec::with_capacity(callers);
    for _ in 0..callers {
        let connection = client.get_multiplexed_async_connection().await?;
        senders.push(Sender { connection, script: Script::new(script) });
    }
    callers::round(senders).await
}

impl Caller for Sender {
    async fn call(&mut self, _: u64) -> anyhow::Result<()> {
        let mut call = self.script.key(id().as_str());
        call.arg(&FINGERPRINT[..]).arg(&BODY[..]);
        let place: Option<String> = call.invoke_async(&mut self.connection).await?;
        ensure!(place.is_some(), "every message of a round is new");
        Ok(())
    }
}
