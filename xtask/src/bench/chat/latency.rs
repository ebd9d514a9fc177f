//! One publisher at a steady pace, one follower; from before the publish to after the receipt.

use crate::bench::median;
use crate::bench::peer::nats::{Push, Server};
use crate::bench::peer::redis::{Stream, address_of};
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use testkit::fleet::chat::{Frame, Probe, Venue};
use testkit::stopwatch::Stopwatch;

const MESSAGES: usize = 400;
const EVERY: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(20);
const BODY: &str = "a message of a usual length, such as people and agents send to each other all day long";

/// The middle wait of a round, in microseconds. `arrived` tells the instants of receipt, in order.
fn paced(
    watch: Stopwatch,
    arrived: &Receiver<u64>,
    mut publish: impl FnMut(usize) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let mut waits = Vec::with_capacity(MESSAGES);
    for n in 0..MESSAGES {
        let asked = watch.elapsed_us();
        publish(n)?;
        let received = arrived.recv_timeout(PATIENCE).context("a message did not arrive")?;
        waits.push(received.saturating_sub(asked) as f64);
        let next = asked + u64::try_from(EVERY.as_micros()).unwrap_or(0);
        // Nothing is on its way: a wait for the next moment.
        let left = Duration::from_micros(next.saturating_sub(watch.elapsed_us()));
        ensure!(arrived.recv_timeout(left).is_err(), "a message came twice");
    }
    Ok(median(&mut waits))
}

/// The product: `POST` on a kept connection, a WebSocket that follows the conversation.
pub(super) fn product(venue: &Venue, round: usize) -> anyhow::Result<f64> {
    let (mut poster, to) = (venue.poster(), format!("#latency{round}"));
    let made = poster.post(&to, &format!("first{round}"), BODY)?;
    let conversation = made["conversation"].as_str().context("a conversation")?.to_owned();
    let mut probe = Probe::open(venue.addresses()[0], venue.token())?;
    probe.say(&json!({"type": "subscribe", "conversation_id": conversation}))?;
    loop {
        match probe.next(PATIENCE)? {
            Frame::Text(text) if text.contains("\"type\":\"subscribed\"") => break,
            Frame::Text(_) => {}
            Frame::Closed { .. } | Frame::Nothing => bail!("the conversation is not followed"),
        }
    }
    let (tell, arrived) = sync_channel(1);
    let watch = Stopwatch::start();
    let follower = std::thread::spawn(move || {
        for _ in 0..MESSAGES {
            match probe.next(PATIENCE) {
                Ok(Frame::Text(text)) => {
                    let at = watch.elapsed_us();
                    let frame: Value = serde_json::from_str(text).unwrap_or_default();
                    if frame["type"] != "message" || tell.send(at).is_err() {
                        return;
                    }
                }
                Ok(Frame::Closed { .. } | Frame::Nothing) | Err(_) => return,
            }
        }
    });
    let p50 = paced(watch, &arrived, |n| Ok(poster.post(&to, &format!("m{round}-{n}"), BODY).map(drop)?))?;
    follower.join().ok().context("the follower ended badly")?;
    Ok(p50)
}

/// Redis with every write synced: `XADD`, and a reader that blocks in `XREAD`.
pub(super) fn redis(server: &testkit::redis::Private, round: usize) -> anyhow::Result<f64> {
    crate::bench::peer::redis::make_durable(server)?;
    let address = address_of(&server.url());
    let (mut writer, mut reader) = (Stream::connect(&address)?, Stream::connect(&address)?);
    let key = format!("latency{round}");
    let (tell, arrived) = sync_channel(1);
    let watch = Stopwatch::start();
    let read_key = key.clone();
    let follower = std::thread::spawn(move || {
        let mut last = "0".to_owned();
        for _ in 0..MESSAGES {
            let Ok(id) = reader.next(&read_key, &last) else { return };
            if tell.send(watch.elapsed_us()).is_err() {
                return;
            }
            last = id;
        }
    });
    let p50 = paced(watch, &arrived, |_| writer.add(&key, BODY).map(drop))?;
    follower.join().ok().context("the reader ended badly")?;
    Ok(p50)
}

/// JetStream with every write synced, and a push consumer.
pub(super) fn nats(server: &Server, round: usize) -> anyhow::Result<f64> {
    let mut push = Push::open(server, &format!("latency{round}"))?;
    let (tell, arrived) = sync_channel(1);
    let watch = Stopwatch::start();
    let mut reader = push.reader()?;
    let follower = std::thread::spawn(move || {
        for _ in 0..MESSAGES {
            if reader.next().is_err() || tell.send(watch.elapsed_us()).is_err() {
                return;
            }
        }
    });
    let p50 = paced(watch, &arrived, |_| push.publish(BODY))?;
    follower.join().ok().context("the consumer ended badly")?;
    Ok(p50)
}
