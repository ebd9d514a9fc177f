//! Many followers of one conversation. They only count frames, so that what is measured is the server.

use crate::bench::peer::bare::BareServer;
use anyhow::{Context, ensure};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use testkit::fleet::chat::{Probe, Venue};
use testkit::stopwatch::Stopwatch;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Callers that write while a crowd is measured.
const WRITERS: u64 = 32;
const PATIENCE: Duration = Duration::from_secs(120);
const BODY: &str = "a message of a usual length, such as people and agents send to each other all day long";
const TEXT: u8 = 1;
const PING: u8 = 9;
/// An empty one, masked as a client's frames are.
const PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];
/// Messages of a paced round.
const PACED: usize = 150;
const PACED_EVERY: Duration = Duration::from_millis(20);

/// Whether somebody in the crowd takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stalled {
    None,
    One,
}

/// A crowd that is connected and counts.
struct Crowd {
    runtime: tokio::runtime::Runtime,
    tally: Arc<Tally>,
}

/// Frames that came, and who waits for them.
#[derive(Default)]
struct Tally {
    frames: Mutex<u64>,
    more: Condvar,
}

impl Tally {
    fn add(&self, frames: u64) {
        *self.frames.lock().unwrap_or_else(PoisonError::into_inner) += frames;
        self.more.notify_all();
    }

    /// Until so many came, at most `patience`; how many it were.
    fn wait(&self, frames: u64, patience: Duration) -> u64 {
        let held = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.more.wait_timeout_while(held, patience, |came| *came < frames);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Crowd {
    fn new() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Self { runtime, tally: Arc::default() })
    }

    /// Connects `followers`; each says `hello` first.
    fn gather(&self, address: SocketAddr, token: &str, followers: usize, hello: &str) -> anyhow::Result<()> {
        for _ in 0..followers {
            let stream = self.runtime.block_on(open(address, token, hello))?;
            self.runtime.spawn(count(stream, self.tally.clone()));
        }
        Ok(())
    }

    fn wait_for(&self, frames: u64) -> anyhow::Result<()> {
        let came = self.tally.wait(frames, PATIENCE);
        ensure!(came >= frames, "{came} of {frames} frames came");
        Ok(())
    }
}

/// Deliveries a second while 32 callers write `messages`.
pub(super) fn product(venue: &Venue, followers: usize, messages: u64) -> anyhow::Result<f64> {
    let made = venue.poster().post("#crowd", "first", BODY)?;
    let conversation = made["conversation"].as_str().context("a conversation")?;
    let crowd = Crowd::new()?;
    let hello = json!({"type": "subscribe", "conversation_id": conversation}).to_string();
    crowd.gather(venue.addresses()[0], venue.token(), followers, &hello)?;
    // What waits for an answer, the first message, and that it is caught up.
    crowd.wait_for(3 * followers as u64)?;
    let watch = Stopwatch::start();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut poster = venue.poster();
                    (writer..messages)
                        .step_by(WRITERS as usize)
                        .try_for_each(|n| poster.post("#crowd", &format!("m{n}"), BODY).map(drop))
                })
            })
            .collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer ends with an error"))
    })?;
    let deliveries = messages * followers as u64;
    crowd.wait_for(3 * followers as u64 + deliveries)?;
    Ok(deliveries as f64 / watch.elapsed().as_secs_f64())
}

/// The same of a server that does nothing else.
pub(super) fn bare(server: &BareServer, followers: usize, messages: u64) -> anyhow::Result<f64> {
    let crowd = Crowd::new()?;
    crowd.gather(server.address(), "none", followers, "{}")?;
    server.wait_for(followers)?;
    let watch = Stopwatch::start();
    for n in 0..messages {
        server.publish(
            &json!({"type": "message", "n": n, "body": BODY, "filled": "x".repeat(260)}).to_string(),
        );
    }
    let deliveries = messages * followers as u64;
    crowd.wait_for(deliveries)?;
    Ok(deliveries as f64 / watch.elapsed().as_secs_f64())
}

/// From publish until the whole crowd has the message, p99 of a paced round.
pub(super) fn p99_us(venue: &Venue, followers: usize, stalled: Stalled) -> anyhow::Result<f64> {
    let mut poster = venue.poster();
    let name = match stalled {
        Stalled::None => "paced-none",
        Stalled::One => "paced-one",
    };
    let to = format!("#{name}");
    let made = poster.post(&to, &format!("{name}-first"), BODY)?;
    let conversation = made["conversation"].as_str().context("a conversation")?;
    let hello = json!({"type": "subscribe", "conversation_id": conversation});
    // Held open and never read.
    let _takes_nothing = match stalled {
        Stalled::None => None,
        Stalled::One => {
            let mut probe = Probe::open(venue.addresses()[0], venue.token())?;
            probe.say(&hello)?;
            let large = "x".repeat(60_000);
            for n in 0..120 {
                poster.post(&to, &format!("{name}-fill{n}"), &large)?;
            }
            Some(probe)
        }
    };
    let crowd = Crowd::new()?;
    let page = json!({"type": "subscribe", "conversation_id": conversation, "since_cursor": ""});
    crowd.gather(venue.addresses()[0], venue.token(), followers, &page.to_string())?;
    let there = match stalled {
        Stalled::None => 1,
        Stalled::One => 121,
    };
    let mut due = (2 + there) * followers as u64;
    crowd.wait_for(due)?;
    let mut waits = Vec::with_capacity(PACED);
    for n in 0..PACED {
        let watch = Stopwatch::start();
        poster.post(&to, &format!("{name}-{n}"), BODY)?;
        due += followers as u64;
        crowd.wait_for(due)?;
        waits.push(watch.elapsed_us());
        // Nothing is on its way: a wait for the next moment.
        crowd.tally.wait(due + 1, PACED_EVERY.saturating_sub(watch.elapsed()));
    }
    waits.sort_unstable();
    Ok(waits[(waits.len() - 1) * 99 / 100] as f64)
}

async fn open(address: SocketAddr, token: &str, hello: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let request = format!(
        "GET /v1/subscribe HTTP/1.1\r\nhost: {address}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         sec-websocket-protocol: postrider.v1\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    ensure!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    let length = u8::try_from(hello.len()).context("a short hello")?;
    let mut frame = vec![0x81];
    if length < 126 {
        frame.push(0x80 | length);
    } else {
        frame.extend([0x80 | 126, 0, length]);
    }
    frame.extend([0; 4]);
    frame.extend(hello.as_bytes());
    stream.write_all(&frame).await?;
    Ok(stream)
}

/// Counts text frames by their heads, and answers pings.
async fn count(mut stream: TcpStream, tally: Arc<Tally>) {
    let (mut buffer, mut held) = (vec![0; 64 * 1024], Vec::new());
    while let Ok(read) = stream.read(&mut buffer).await {
        if read == 0 {
            return;
        }
        held.extend_from_slice(&buffer[..read]);
        let (mut at, mut seen) = (0, 0);
        while let Some((kind, length)) = frame_at(&held[at..]) {
            if at + length > held.len() {
                break;
            }
            match kind {
                TEXT => seen += 1,
                // Whoever says nothing for long is taken for dead.
                PING if stream.write_all(&PONG).await.is_err() => return,
                _ => {}
            }
            at += length;
        }
        held.drain(..at);
        tally.add(seen);
    }
}

/// The frame's kind, and its length with its head.
fn frame_at(bytes: &[u8]) -> Option<(u8, usize)> {
    let (kind, short) = (*bytes.first()?, *bytes.get(1)?);
    let length = match short {
        126 => 4 + usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)),
        127 => 10 + usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?,
        short => 2 + usize::from(short),
    };
    Some((kind & 0x0f, length))
}

#[cfg(test)]
mod tests {
    use super::{PING, TEXT, frame_at};

    #[test]
    fn frames_are_counted_by_their_heads() {
        assert_eq!(frame_at(&[0x81, 5, 0, 0]), Some((TEXT, 7)));
        assert_eq!(frame_at(&[0x89, 0]), Some((PING, 2)));
        assert_eq!(frame_at(&[0x81, 126, 1, 0]), Some((TEXT, 260)));
        assert_eq!(frame_at(&[0x81, 126, 1]), None);
        assert_eq!(frame_at(&[]), None);
    }
}
