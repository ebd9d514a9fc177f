//! One who follows: joins when it likes, goes away, comes back with the cursor it kept.

use super::probe::{Frame, Probe, ProbeError};
use super::{Outcome, Stage};
use crate::seeded::Seeded;
use crate::wait::wait_for;
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Without a frame for so long after the last message was written, none is coming.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longer than any run.
const RUN_MAX: Duration = Duration::from_secs(1_800);
/// Rows after which a connection goes away, at most.
const STAY_MAX: u64 = 4_000;
/// A subscriber that needs more is not getting anywhere.
const CONNECTIONS_MAX: u64 = 2_000;

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    history_id: u64,
    #[serde(default, borrow)]
    cursor: Option<Cow<'a, str>>,
}

/// What one subscriber has seen.
struct Seen {
    rows: Vec<bool>,
    last: u64,
    cursor: String,
    outcome: Outcome,
}

/// Follows one conversation to its end.
pub(super) fn follow(stage: &Stage, number: u64, mut seeded: Seeded) -> Outcome {
    let place = usize::try_from(number % stage.conversations.len() as u64).unwrap_or(0);
    let all = usize::try_from(stage.rows_each).unwrap_or(0);
    let mut seen =
        Seen { rows: vec![false; all], last: 0, cursor: String::new(), outcome: Outcome::default() };
    // Joins somewhere on the way: before the first, amid them, or near the end.
    let joins_at = seeded.below(stage.conversations.len() as u64 * stage.rows_each);
    let joined = wait_for("the moment to join", RUN_MAX, || {
        let there = stage.written.load(Ordering::Relaxed) >= joins_at;
        (there || stage.writers_done.load(Ordering::Relaxed)).then_some(())
    });
    seen.outcome.broken.extend(joined.err().map(|waited| waited.to_string()));
    while !seen.is_whole() && seen.outcome.connections < CONNECTIONS_MAX {
        match seen.connect(stage, place, &mut seeded) {
            Ok(Stay::Leaves) => {}
            Ok(Stay::Quiet) => break,
            Err(ProbeError::Refused(why)) => {
                seen.outcome.broken.push(format!("subscriber {number} was refused: {why}"));
                break;
            }
            // Cut on the way; the cursor is kept.
            Err(ProbeError::Io(_)) => seen.outcome.connections += 1,
            Err(error @ ProbeError::NotAFrame(_)) => {
                seen.outcome.broken.push(format!("subscriber {number}: {error}"));
                break;
            }
        }
    }
    seen.outcome.missed = seen.rows.iter().filter(|had| !**had).count() as u64;
    seen.outcome
}

/// Why a connection ended.
enum Stay {
    /// The subscriber went away.
    Leaves,
    /// Nothing comes any more.
    Quiet,
}

impl Seen {
    fn is_whole(&self) -> bool {
        self.outcome.taken >= self.rows.len() as u64 && self.rows.iter().all(|had| *had)
    }

    /// One connection, from the cursor on, for as long as it likes.
    fn connect(&mut self, stage: &Stage, place: usize, seeded: &mut Seeded) -> Result<Stay, ProbeError> {
        let address = stage.addresses[seeded.index(stage.addresses.len())];
        let mut probe = Probe::open(address, &stage.token)?;
        self.outcome.connections += 1;
        probe.say(&json!({"type": "subscribe", "conversation_id": stage.conversations[place],
            "since_cursor": self.cursor, "sub": self.outcome.connections.to_string()}))?;
        let stays = 1 + seeded.below(STAY_MAX);
        let until = self.outcome.taken + stays;
        while self.outcome.taken < until && !(self.last as usize >= self.rows.len() && self.is_whole()) {
            match probe.next(PATIENCE)? {
                Frame::Text(text) => self.take(text),
                Frame::Closed { .. } => return Ok(Stay::Leaves),
                Frame::Nothing if stage.writers_done.load(Ordering::Relaxed) => return Ok(Stay::Quiet),
                Frame::Nothing => {}
            }
        }
        Ok(Stay::Leaves)
    }

    fn take(&mut self, text: &str) {
        let said: Said<'_> = match serde_json::from_str(text) {
            Ok(said) => said,
            Err(error) => return self.outcome.broken.push(format!("{error}: {text}")),
        };
        match said.kind.as_ref() {
            "message" => {}
            "escalations" | "subscribed" => return,
            _ => return self.outcome.broken.push(text.to_owned()),
        }
        self.outcome.taken += 1;
        let row = usize::try_from(said.history_id).unwrap_or(usize::MAX).checked_sub(1);
        match row.and_then(|row| self.rows.get_mut(row)) {
            Some(had) if *had => self.outcome.repeated += 1,
            Some(had) => *had = true,
            None => self.outcome.broken.push(format!("a row nobody wrote: {text}")),
        }
        self.outcome.swapped += u64::from(said.history_id < self.last);
        self.last = said.history_id;
        self.cursor = said.cursor.map_or_else(String::new, Cow::into_owned);
    }
}
