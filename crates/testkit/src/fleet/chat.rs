//! Writers and subscribers of a few conversations at real brokers: everybody who follows a log sees each of its rows
//! once and in order, whenever it joined and however often its connection went away.
//!
//! Invariants:
//! - A subscriber keeps one thing: the cursor of the last message it took. It drops nothing and sorts nothing.
//! - Rows of a log are numbered from one without gaps, so that what was missed, repeated or swapped shows in the numbers
//!   alone.
//! - On PostgreSQL there are two brokers; writers and subscribers change between them.
//! - A writer that is refused in words that deny storage may take another id: what was stored all the same is a row too many.

mod probe;
mod reader;
mod venue;
mod writer;

use super::FleetError;
use super::caller::Caller;
use super::races::Store;
use crate::bin::Binary;
use crate::refusals::{Refusals, Refused};
use crate::seeded::Seeded;
use crate::stopwatch::Stopwatch;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub use probe::{Frame, Probe, ProbeError};
pub use venue::{Poster, Venue};

/// A bug for the run to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// None: nothing may be found.
    Nothing,
    /// Messages are stamped before their log's lock, and logs are read by the stamps.
    TimestampCursor,
    /// Messages are refused and stored; on a file only.
    RefusedAndStored,
}

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
    /// What is wrong with the brokers on purpose.
    pub planted: Planted,
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
    /// What writers were refused.
    pub refused: Refused,
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
    /// Nothing missed, repeated or swapped, and nothing stored that was refused.
    pub fn holds(&self) -> bool {
        let counted = self.missed + self.repeated + self.swapped;
        counted == 0 && self.broken.is_empty() && self.refused.stored.is_empty()
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
    let faults: Vec<String> = plan.planted.fault().map(str::to_owned).into_iter().collect();
    let mut venue = Venue::open(&plan.binary, plan.store, &faults)?;
    let mut stage = Stage {
        addresses: venue.addresses(),
        token: venue.token().to_owned(),
        conversations: Vec::new(),
        rows_each: plan.messages / plan.conversations,
        written: AtomicU64::new(0),
        writers_done: AtomicBool::new(false),
    };
    stage.conversations = writer::begin(&stage, plan.conversations)?;
    let (mut outcome, refusals) = play(plan, &stage);
    venue.kill_and_restart()?;
    let mut caller = Caller::new(venue.addresses(), 0, venue.token());
    outcome.refused = refusals.judge(|id| caller.is_known(id))?;
    Ok(outcome)
}

impl Planted {
    fn fault(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::TimestampCursor => Some("bug:ledger.timestamp_cursor"),
            Self::RefusedAndStored => Some(super::REFUSED_AND_STORED),
        }
    }
}

fn play(plan: &Plan, stage: &Stage) -> (Outcome, Refusals) {
    let watch = Stopwatch::start();
    let mut outcome = Outcome { accepted: plan.conversations, ..Outcome::default() };
    let mut refusals = Refusals::default();
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
                Ok(written) => {
                    outcome.accepted += written.accepted;
                    outcome.broken.extend(written.wrong);
                    refusals.add(written.refusals);
                }
                Err(error) => outcome.broken.push(format!("a writer gave up: {error}")),
            }
        }
        stage.writers_done.store(true, Ordering::Relaxed);
        for follower in followers {
            outcome.add(follower.join().expect("a subscriber ends with an outcome, not a panic"));
        }
    });
    outcome.elapsed = watch.elapsed();
    (outcome, refusals)
}
