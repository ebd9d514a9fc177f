//! Writers and subscribers of a few conversations at real brokers: everybody who follows a log sees each of its rows
//! once and in order, whenever it joined and however often its connection went away.
//!
//! Invariants:
//! - A subscriber keeps one thing: the cursor of the last message it took. It drops nothing and sorts nothing.
//! - Rows of a log are numbered from one without gaps, so that what was missed, repeated or swapped shows in the numbers
//!   alone.
//! - On PostgreSQL there are two brokers; writers and subscribers change between them.

mod probe;
mod reader;
mod venue;
mod writer;

use super::FleetError;
use super::races::Store;
use crate::bin::Binary;
use crate::seeded::Seeded;
use crate::stopwatch::Stopwatch;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub use probe::{Frame, Probe, ProbeError};
pub use venue::{Poster, Venue};

/// The bug the proof must find: messages are stamped before their log's lock, and logs are read by the stamps.
const TIMESTAMP_CURSOR: &str = "bug:ledger.timestamp_cursor";

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A binary with faults.
    pub binary: Binary,
    /// Where the brokers keep their books.
    pub store: Store,
    /// Callers that write at once.
    pub writers: u64,
    /// Those who follow, each one conversation.
    pub subscribers: u64,
    /// Messages of all conversations together.
    pub messages: u64,
    /// Conversations.
    pub conversations: u64,
    /// Decides who joins, leaves and returns when.
    pub seed: u64,
    /// Whether the timestamp cursor is planted; something must be found then.
    pub planted: bool,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Messages that were answered 201.
    pub accepted: u64,
    /// Frames that subscribers took.
    pub taken: u64,
    /// Rows that some subscriber never got.
    pub missed: u64,
    /// Rows that some subscriber got twice.
    pub repeated: u64,
    /// Rows that came after a later one.
    pub swapped: u64,
    /// Connections that subscribers opened.
    pub connections: u64,
    /// Everything else that must not be, a sentence each.
    pub broken: Vec<String>,
    /// Real time, without the setting up.
    pub elapsed: Duration,
}

/// What the threads of a run share.
struct Stage {
    addresses: Vec<SocketAddr>,
    token: String,
    conversations: Vec<String>,
    rows_each: u64,
    written: AtomicU64,
    writers_done: AtomicBool,
}

impl Outcome {
    /// Nothing missed, repeated or swapped.
    pub fn holds(&self) -> bool {
        self.broken.is_empty() && self.missed == 0 && self.repeated == 0 && self.swapped == 0
    }

    fn add(&mut self, one: Outcome) {
        self.taken += one.taken;
        self.missed += one.missed;
        self.repeated += one.repeated;
        self.swapped += one.swapped;
        self.connections += one.connections;
        self.broken.extend(one.broken);
    }
}

/// Writes, follows and judges.
///
/// # Errors
/// When the run cannot be finished; what subscribers missed is no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, FleetError> {
    let faults: Vec<String> = plan.planted.then(|| TIMESTAMP_CURSOR.to_owned()).into_iter().collect();
    let venue = Venue::open(&plan.binary, plan.store, &faults)?;
    let mut stage = Stage {
        addresses: venue.addresses(),
        token: venue.token().to_owned(),
        conversations: Vec::new(),
        rows_each: plan.messages / plan.conversations,
        written: AtomicU64::new(0),
        writers_done: AtomicBool::new(false),
    };
    stage.conversations = writer::begin(&stage, plan.conversations)?;
    Ok(play(plan, &stage))
}

fn play(plan: &Plan, stage: &Stage) -> Outcome {
    let watch = Stopwatch::start();
    let mut outcome = Outcome { accepted: plan.conversations, ..Outcome::default() };
    std::thread::scope(|scope| {
        let followers: Vec<_> = (0..plan.subscribers)
            .map(|number| {
                let seeded = Seeded::new(plan.seed ^ (number + 1) << 20);
                scope.spawn(move || reader::follow(stage, number, seeded))
            })
            .collect();
        let writers: Vec<_> = (0..plan.writers)
            .map(|number| scope.spawn(move || writer::write(stage, number, plan.writers)))
            .collect();
        for writer in writers {
            match writer.join().expect("a writer ends with an error, not a panic") {
                Ok(accepted) => outcome.accepted += accepted,
                Err(error) => outcome.broken.push(format!("a writer gave up: {error}")),
            }
        }
        stage.writers_done.store(true, Ordering::Relaxed);
        for follower in followers {
            outcome.add(follower.join().expect("a subscriber ends with an outcome, not a panic"));
        }
    });
    outcome.elapsed = watch.elapsed();
    outcome
}
