//! Runs of the tool, side by side, until enough calls were made.

use super::tool::{Invention, Tool};
use anyhow::anyhow;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;
use testkit::fleet::hostile::Besieged;
use testkit::stopwatch::Stopwatch;

/// About as many addresses as the document has.
const ADDRESSES: u64 = 50;
/// A run takes some seconds to begin: less than this is not worth one, unless nothing else is left.
const SHARE_MIN: u64 = 500;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Stranger,
    Member,
}

/// What the hooks counted.
#[derive(Debug, Default, Deserialize)]
pub struct Counted {
    pub begun: u64,
    pub answered: u64,
    pub statuses: BTreeMap<String, u64>,
    /// Every address of the document, with its calls.
    pub addresses: BTreeMap<String, u64>,
    pub broken: Vec<String>,
}

/// A broker, and what is thrown at it.
pub struct Siege<'a> {
    pub tool: &'a Tool,
    pub besieged: &'a Besieged,
    pub name: &'a str,
    pub seed: u64,
}

/// What the runs of a siege share.
struct Tally {
    /// Calls that no run has taken on.
    left: u64,
    runs: u64,
    counted: Counted,
}

impl Siege<'_> {
    /// Runs the tool on every processor, with one seed after the other.
    pub fn lay(&self, who: Who, calls: u64) -> anyhow::Result<Counted> {
        let lanes = thread::available_parallelism().map_or(1, |processors| processors.get() as u64);
        let watch = Stopwatch::start();
        let shared = Mutex::new(Tally { left: calls, runs: 0, counted: Counted::default() });
        let lane = || -> anyhow::Result<()> {
            // Let go before the run, which takes long.
            let next = || lock(&shared).take(who, self.seed, lanes);
            while let Some(invention) = next() {
                let counted = self.tool.invent(self.besieged, &invention)?;
                let mut shared = lock(&shared);
                shared.left += invention.calls.saturating_sub(counted.begun);
                shared.counted.add(counted);
                let (begun, seconds) = (shared.counted.begun, watch.elapsed().as_secs_f64());
                let rate = begun as f64 / seconds;
                println!(
                    "{}, {who:?}: {begun} of {calls} calls after {seconds:.0} s, {rate:.0} a second",
                    self.name
                );
            }
            Ok(())
        };
        thread::scope(|scope| {
            let running: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
            running
                .into_iter()
                .try_for_each(|run| run.join().map_err(|_| anyhow!("a lane of the siege broke"))?)
        })?;
        Ok(shared.into_inner().unwrap_or_else(PoisonError::into_inner).counted)
    }
}

impl Tally {
    /// The next run. It takes on its share of what is left and gives back what it did not call.
    fn take<'a>(&mut self, who: Who, seed: u64, lanes: u64) -> Option<Invention<'a>> {
        let calls = self.left.div_ceil(lanes).max(SHARE_MIN).min(self.left);
        if calls == 0 {
            return None;
        }
        let run = self.runs;
        self.left -= calls;
        self.runs += 1;
        let (phase, examples) = match run {
            // Spread over all addresses, however few calls there are.
            0 => ("fuzzing", calls / ADDRESSES),
            // The edges of every field are the same with every seed: one run tries them. So with chains of calls,
            // of which the document allows few.
            1 => ("coverage", calls),
            2 => ("stateful", calls),
            // More than it may make, so that it ends at its last call and leaves no rest.
            _ => ("fuzzing", 4 + calls / ADDRESSES * 2),
        };
        Some(Invention { phase, examples: examples.max(1), seed: seed + run, calls, who })
    }
}

impl Counted {
    pub fn add(&mut self, other: Self) {
        self.begun += other.begun;
        self.answered += other.answered;
        for (into, from) in [(&mut self.statuses, other.statuses), (&mut self.addresses, other.addresses)] {
            for (name, times) in from {
                *into.entry(name).or_default() += times;
            }
        }
        self.broken.extend(other.broken);
    }

    pub fn uncalled(&self) -> impl Iterator<Item = &String> {
        self.addresses.iter().filter(|(_, times)| **times == 0).map(|(address, _)| address)
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
