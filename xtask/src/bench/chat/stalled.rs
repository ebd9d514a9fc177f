//! What one follower that takes nothing does to the others: the same crowd, message by message, without it and beside
//! it, in turn.

use super::crowd::{BODY, Crowd, FRAMES_AROUND};
use crate::bench::{Bar, Row, Table, measuring};
use anyhow::Context;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::bin::Binary;
use testkit::fleet::chat::{Poster, Probe, Venue};
use testkit::fleet::races::Store;
use testkit::stopwatch::Stopwatch;

const EVERY: Duration = Duration::from_millis(20);
/// More than a connection's buffers hold, so that whoever takes nothing is soon waited for.
const FILLING: usize = 120;
const FILLING_BYTES: usize = 60_000;
const TO: &str = "#paced";

/// How much is measured. A round's share beside the stalled one is shorter than the broker's patience with it.
pub(super) struct Scale {
    pub(super) rounds: usize,
    pub(super) followers: usize,
    pub(super) messages: usize,
}

/// A conversation that a crowd follows.
struct Paced {
    venue: Venue,
    poster: Poster,
    crowd: Crowd,
    hello: Value,
    followers: u64,
    /// Messages so far, which make ids.
    posted: u64,
    /// Frames the crowd has had or is about to have.
    due: u64,
}

/// E2: the p99 of all rounds together, since a round has too few messages for one.
pub(super) fn measure(binary: &Binary, scale: &Scale, table: &mut Table) -> anyhow::Result<()> {
    let mut paced = Paced::open(binary, scale.followers)?;
    let (mut without, mut beside) = (Vec::new(), Vec::new());
    for round in 0..scale.rounds {
        measuring(format_args!("beside a stalled reader, round {} of {}", round + 1, scale.rounds));
        // Whatever comes first meets another machine than what comes second.
        if round % 2 == 0 {
            paced.undisturbed(scale.messages, &mut without)?;
            paced.beside(scale.messages, &mut beside)?;
        } else {
            paced.beside(scale.messages, &mut beside)?;
            paced.undisturbed(scale.messages, &mut without)?;
        }
    }
    let (without, beside) = (p99(&mut without), p99(&mut beside));
    let crowd = format!("{} followers at 50/s, p99 until all have it", scale.followers);
    table.push(Row::measured(crowd, without, "µs"));
    table.push(Row::measured("the same beside one that takes nothing, p99", beside, "µs"));
    let ratio = beside / without;
    table.push(Row::ratio("E2: p99 beside a stalled reader / without", ratio, Bar::AtMost(1.1)));
    Ok(())
}

impl Paced {
    fn open(binary: &Binary, followers: usize) -> anyhow::Result<Self> {
        let venue = Venue::open(binary, Store::Sqlite, &[])?;
        let (mut poster, crowd) = (venue.poster(), Crowd::new()?);
        let made = poster.post(TO, "first", BODY)?;
        let conversation = made["conversation"].as_str().context("a conversation")?;
        let hello = json!({"type": "subscribe", "conversation_id": conversation});
        crowd.gather(venue.addresses()[0], venue.token(), followers, &hello.to_string())?;
        let followers = followers as u64;
        let due = (FRAMES_AROUND + 1) * followers;
        crowd.wait_for(due)?;
        Ok(Self { venue, poster, crowd, hello, followers, posted: 0, due })
    }

    /// Until the whole crowd has one more message.
    fn post(&mut self, body: &str) -> anyhow::Result<u64> {
        let watch = Stopwatch::start();
        self.posted += 1;
        self.poster.post(TO, &format!("m{}", self.posted), body)?;
        self.due += self.followers;
        self.crowd.wait_for(self.due)?;
        Ok(watch.elapsed_us())
    }

    fn waits(&mut self, messages: usize, waits: &mut Vec<u64>) -> anyhow::Result<()> {
        for _ in 0..messages {
            let wait = self.post(BODY)?;
            waits.push(wait);
            self.crowd.pause(EVERY.saturating_sub(Duration::from_micros(wait)));
        }
        Ok(())
    }

    /// After the same large messages as beside one that takes nothing: they leave the store busy for a while.
    fn undisturbed(&mut self, messages: usize, waits: &mut Vec<u64>) -> anyhow::Result<()> {
        self.fill()?;
        self.waits(messages, waits)
    }

    /// The same while somebody holds a connection open and never reads.
    fn beside(&mut self, messages: usize, waits: &mut Vec<u64>) -> anyhow::Result<()> {
        let mut takes_nothing = Probe::open(self.venue.addresses()[0], self.venue.token())?;
        takes_nothing.say(&self.hello)?;
        self.fill()?;
        self.waits(messages, waits).context("beside a stalled reader")
    }

    fn fill(&mut self) -> anyhow::Result<()> {
        let large = "x".repeat(FILLING_BYTES);
        (0..FILLING).try_for_each(|_| self.post(&large).map(drop))
    }
}

fn p99(waits: &mut [u64]) -> f64 {
    waits.sort_unstable();
    waits.len().checked_sub(1).map_or(f64::NAN, |last| waits[last * 99 / 100] as f64)
}

#[cfg(test)]
mod tests {
    use super::p99;

    #[test]
    fn one_wait_in_a_hundred_is_longer() {
        assert!((p99(&mut (1..=101).rev().collect::<Vec<_>>()) - 100.0).abs() < 0.1);
        assert!(p99(&mut []).is_nan());
    }
}
