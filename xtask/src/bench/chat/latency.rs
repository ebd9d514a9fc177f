//! Publishers at a steady pace, one follower; from before the publish to after the receipt.

use crate::bench::median;
use crate::bench::peer::nats::{Push, Server};
use crate::bench::peer::redis::{Stream, address_of};
use anyhow::{Context, bail, ensure};
use serde_json::json;
use std::collections::VecDeque;
use std::time::Duration;
use testkit::fleet::chat::{Frame, Probe, Venue};
use testkit::stopwatch::Stopwatch;

/// Without a message for so long, none is coming.
const PATIENCE: Duration = Duration::from_secs(20);
/// Before the number that says which message it is.
const MARK: &str = "message number ";

/// How often something is published.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) per_second: u64,
    /// Connections that publish in turn: one waits for each answer and could not keep a fast pace.
    pub(super) publishers: usize,
}

/// One round of one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) pace: Pace,
    pub(super) messages: usize,
    /// Makes the round's names its own.
    pub(super) number: usize,
}

impl Round {
    fn name(&self) -> String {
        format!("latency{}-{}", self.pace.per_second, self.number)
    }

    /// When the `n`-th message is due.
    fn due(&self, n: usize) -> Duration {
        Duration::from_secs(n as u64) / u32::try_from(self.pace.per_second).unwrap_or(u32::MAX)
    }

    /// The middle wait, in microseconds. `next` waits for the follower's next message, at most its own patience.
    pub(super) fn run<P, F>(&self, publishers: Vec<P>, mut next: F) -> anyhow::Result<f64>
    where
        P: FnMut(usize, &str) -> anyhow::Result<()> + Send,
        F: FnMut() -> anyhow::Result<String> + Send,
    {
        let (watch, turns) = (Stopwatch::start(), publishers.len());
        let (asked, received) = std::thread::scope(|scope| {
            let follower = scope.spawn(move || receipts(watch, self.messages, &mut next));
            let publishers: Vec<_> = (0..turns)
                .zip(publishers)
                .map(|(first, publish)| scope.spawn(move || self.publish(watch, (first, turns), publish)))
                .collect();
            let asked: anyhow::Result<Vec<_>> =
                publishers.into_iter().map(|one| one.join().expect("it ends with an error")).collect();
            (asked, follower.join().expect("it ends with an error"))
        });
        let (asked, received) = (asked?.concat(), received?);
        let wait = |(n, asked): &(usize, u64)| received[*n].saturating_sub(*asked) as f64;
        Ok(median(&mut asked.iter().map(wait).collect::<Vec<_>>()))
    }

    /// One publisher's share; answers with when it asked for each.
    fn publish(
        &self,
        watch: Stopwatch,
        (first, turns): (usize, usize),
        mut publish: impl FnMut(usize, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<(usize, u64)>> {
        let mut asked = Vec::with_capacity(self.messages / turns + 1);
        for n in (first..self.messages).step_by(turns) {
            while let Some(left) = self.due(n).checked_sub(watch.elapsed()).filter(|left| !left.is_zero()) {
                std::thread::park_timeout(left);
            }
            asked.push((n, watch.elapsed_us()));
            publish(n, &body(n))?;
        }
        Ok(asked)
    }
}

/// When each message came, by its number; each comes once.
fn receipts(
    watch: Stopwatch,
    messages: usize,
    next: &mut impl FnMut() -> anyhow::Result<String>,
) -> anyhow::Result<Vec<u64>> {
    let mut received: Vec<Option<u64>> = vec![None; messages];
    for _ in 0..messages {
        let text = next()?;
        let at = watch.elapsed_us();
        let place = number_in(&text).and_then(|n| received.get_mut(n)).with_context(|| text.clone())?;
        ensure!(place.replace(at).is_none(), "a message came twice: {text}");
    }
    Ok(received.into_iter().flatten().collect())
}

fn body(n: usize) -> String {
    format!("{MARK}{n:06} of a usual length, such as people and agents send to each other all day long")
}

fn number_in(text: &str) -> Option<usize> {
    let (_, rest) = text.split_once(MARK)?;
    rest.get(..6)?.parse().ok()
}

/// The product: `POST` on kept connections, a WebSocket that follows the conversation.
pub(super) fn product(venue: &Venue, round: &Round) -> anyhow::Result<f64> {
    let (name, to) = (round.name(), format!("#{}", round.name()));
    let made = venue.poster().post(&to, &format!("{name}-first"), "first")?;
    let conversation = made["conversation"].as_str().context("a conversation")?.to_owned();
    let mut probe = Probe::open(venue.addresses()[0], venue.token())?;
    probe.say(&json!({"type": "subscribe", "conversation_id": conversation}))?;
    while !text_of(&mut probe)?.starts_with("{\"type\":\"subscribed\"") {}
    let publishers = (0..round.pace.publishers).map(|_| {
        let (mut poster, name, to) = (venue.poster(), name.clone(), to.clone());
        move |n: usize, body: &str| -> anyhow::Result<()> {
            poster.post(&to, &format!("{name}-{n}"), body)?;
            Ok(())
        }
    });
    round.run(publishers.collect(), move || text_of(&mut probe))
}

fn text_of(probe: &mut Probe) -> anyhow::Result<String> {
    match probe.next(PATIENCE)? {
        Frame::Text(text) => Ok(text.to_owned()),
        Frame::Closed { code, reason } => bail!("closed: {code} {reason}"),
        Frame::Nothing => bail!("nothing came for {PATIENCE:?}"),
    }
}

/// Redis with every write synced: `XADD`, and a reader that blocks in `XREAD`.
pub(super) fn redis(server: &testkit::redis::Private, round: &Round) -> anyhow::Result<f64> {
    let (address, key) = (address_of(&server.url()), round.name());
    let mut publishers = Vec::new();
    for _ in 0..round.pace.publishers {
        let (mut writer, key) = (Stream::connect(&address)?, key.clone());
        publishers.push(move |_: usize, body: &str| writer.add(&key, body).map(drop));
    }
    let (mut reader, mut last) = (Stream::connect(&address)?, "0".to_owned());
    let mut came = VecDeque::new();
    round.run(publishers, move || {
        while came.is_empty() {
            came.extend(reader.next(&key, &last)?);
        }
        let (id, body) = came.pop_front().context("a row that came")?;
        last = id;
        Ok(body)
    })
}

/// JetStream with every write synced, and a push consumer.
pub(super) fn nats(server: &Server, round: &Round) -> anyhow::Result<f64> {
    let push = Push::open(server, &round.name())?;
    let mut reader = push.reader()?;
    let mut publishers = Vec::new();
    for number in 0..round.pace.publishers {
        let mut push = push.another(number)?;
        publishers.push(move |_: usize, body: &str| push.publish(body));
    }
    round.run(publishers, move || reader.next())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Round = Round { pace: Pace { per_second: 2_000, publishers: 2 }, messages: 20, number: 0 };

    #[test]
    fn a_message_says_its_number_in_whatever_carries_it() {
        let frame = format!("{{\"type\":\"message\",\"body\":\"{}\"}}", body(1_234));
        assert_eq!(number_in(&frame), Some(1_234));
        assert_eq!(number_in("{\"type\":\"message\"}"), None);
    }

    #[test]
    fn every_message_is_timed_by_its_number_and_one_that_comes_twice_ends_the_round() {
        for (twice, holds) in [(false, true), (true, false)] {
            let (tell, told) = std::sync::mpsc::sync_channel(64);
            let publishers: Vec<_> = (0..2)
                .map(|_| {
                    let tell = tell.clone();
                    move |n: usize, body: &str| -> anyhow::Result<()> {
                        let text = if twice && n == 7 { super::body(6) } else { body.to_owned() };
                        tell.send(text)?;
                        Ok(())
                    }
                })
                .collect();
            let measured = ROUND.run(publishers, move || Ok(told.recv_timeout(PATIENCE)?));
            assert_eq!(measured.is_ok(), holds, "{measured:?}");
        }
    }
}
