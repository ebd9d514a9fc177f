//! Many followers of one conversation. They only count frames, so that what is measured is the server.

use super::frames;
use crate::bench::peer::bare::BareServer;
use anyhow::{Context, ensure};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use testkit::fleet::chat::{Poster, Venue};
use testkit::stopwatch::Stopwatch;

/// Callers that write while a crowd is measured.
const WRITERS: u64 = 32;
const CONNECT_MAX: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(120);
pub(super) const BODY: &str =
    "a message of a usual length, such as people and agents send to each other all day long";

/// What a follower is told of before a conversation's rows and after them: what waits for an answer, and that it is
/// caught up.
pub(super) const FRAMES_AROUND: u64 = 2;

/// A crowd that is connected and counts.
pub(super) struct Crowd {
    runtime: tokio::runtime::Runtime,
    tally: Arc<Tally>,
}

/// Frames that came, and who waits for them.
#[derive(Default)]
pub(super) struct Tally {
    came: Mutex<Came>,
    more: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Came {
    frames: u64,
    bytes: u64,
}

/// One round of a crowd.
pub(super) struct Delivered {
    pub(super) per_second: f64,
    /// Of one frame, with its head.
    pub(super) frame_bytes: usize,
}

impl Tally {
    pub(super) fn add(&self, frames: u64, bytes: u64) {
        let mut came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        came.frames += frames;
        came.bytes += bytes;
        drop(came);
        self.more.notify_all();
    }

    /// Until so many frames came, at most `patience`; what came.
    fn wait(&self, frames: u64, patience: Duration) -> Came {
        let held = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.more.wait_timeout_while(held, patience, |came| came.frames < frames);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Crowd {
    pub(super) fn new() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Self { runtime, tally: Arc::default() })
    }

    /// Connects `followers`; each says `hello` first.
    pub(super) fn gather(
        &self,
        address: SocketAddr,
        token: &str,
        followers: usize,
        hello: &str,
    ) -> anyhow::Result<()> {
        for _ in 0..followers {
            let opening =
                async { tokio::time::timeout(CONNECT_MAX, frames::open(address, token, hello)).await };
            let stream = self.runtime.block_on(opening).context("a follower was not let in")??;
            self.runtime.spawn(frames::count(stream, self.tally.clone()));
        }
        Ok(())
    }

    /// Until so many frames came in all.
    pub(super) fn wait_for(&self, frames: u64) -> anyhow::Result<()> {
        self.came(frames).map(drop)
    }

    /// A while in which nothing is due.
    pub(super) fn pause(&self, pause: Duration) {
        self.tally.wait(u64::MAX, pause);
    }

    fn came(&self, frames: u64) -> anyhow::Result<Came> {
        let came = self.tally.wait(frames, PATIENCE);
        ensure!(came.frames >= frames, "{} of {frames} frames came", came.frames);
        Ok(came)
    }
}

/// Deliveries a second while 32 callers write `messages`.
pub(super) fn product(venue: &Venue, followers: usize, messages: u64) -> anyhow::Result<Delivered> {
    let made = venue.poster().post("#crowd", "first", BODY)?;
    let conversation = made["conversation"].as_str().context("a conversation")?;
    let crowd = Crowd::new()?;
    let hello = json!({"type": "subscribe", "conversation_id": conversation}).to_string();
    crowd.gather(venue.addresses()[0], venue.token(), followers, &hello)?;
    let before = (FRAMES_AROUND + 1) * followers as u64;
    let there = crowd.came(before)?;
    let watch = Stopwatch::start();
    write(&|| venue.poster(), messages)?;
    let deliveries = messages * followers as u64;
    let came = crowd.came(before + deliveries)?;
    let per_second = deliveries as f64 / watch.elapsed().as_secs_f64();
    let frame_bytes = usize::try_from((came.bytes - there.bytes) / deliveries)?;
    Ok(Delivered { per_second, frame_bytes })
}

fn write(poster: &(impl Fn() -> Poster + Sync), messages: u64) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut poster = poster();
                    (writer..messages)
                        .step_by(WRITERS as usize)
                        .try_for_each(|n| poster.post("#crowd", &format!("m{n}"), BODY).map(drop))
                })
            })
            .collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer ends with an error"))
    })?;
    Ok(())
}

/// The same of a server that does nothing else, with the same callers and frames as long.
pub(super) fn bare(server: &BareServer, followers: usize, messages: u64) -> anyhow::Result<f64> {
    let crowd = Crowd::new()?;
    crowd.gather(server.address(), "none", followers, "{}")?;
    server.wait_for(followers)?;
    let watch = Stopwatch::start();
    write(&|| Poster::at(server.address(), "none"), messages)?;
    let deliveries = messages * followers as u64;
    crowd.wait_for(deliveries)?;
    Ok(deliveries as f64 / watch.elapsed().as_secs_f64())
}
