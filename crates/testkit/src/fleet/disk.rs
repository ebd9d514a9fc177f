//! The whole binary on a disk that fails: every system call on a file of its home may be struck, or be the last one.
//!
//! Callers of all doors ask at once: sends and read marks at the daemon's socket, messages at the broker's HTTP door,
//! writes at the relay. After each life the product is killed, started on a disk that works, and asked for each request.
//!
//! Invariants:
//! - A request that was acknowledged is there; one that was refused in words that deny its storage is not.
//! - An answer whose words leave it open, and no answer, may be followed by either.
//! - The words are read where a caller reads them: in the answer's message, and in what its code means.

mod asking;
mod restart;
mod steering;

use super::FleetError;
use crate::bin::{Binary, Home, Options, Product};
use crate::port;
use crate::seeded::Seeded;
use crate::stopwatch::Stopwatch;
use asking::{AskedRequest, CallerAnswer, CallerRequest, ProductDoors};
use std::collections::BTreeMap;
use std::time::Duration;
use steering::{HomeFile, StrikeError, StrikePlan, SystemCall, SystemCallShim};

pub use restart::{
    RestartedStore, TracedRestart, outboxes_set_aside_by_failing_reads, syncs_before_first_answer,
};

/// Faults of one life; a store that stopped has no use for more.
const STRIKES_PER_LIFE: u64 = 4;
/// Lives after which nothing more is expected to be met.
const LIVES_PER_FAULT: u64 = 3;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The product.
    pub binary: Binary,
    /// How many faults.
    pub faults: u64,
    /// Decides which.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Faults that were met, by call and error.
    pub faults: BTreeMap<String, u64>,
    /// Starts of the product.
    pub lives: u64,
    /// Requests acknowledged.
    pub acknowledged: u64,
    /// Requests refused in words that deny their storage.
    pub denied: u64,
    /// Requests without an answer, or with one that leaves it open.
    pub unknown: u64,
    /// Of these, how many were there.
    pub unknown_and_stored: u64,
    /// Acknowledged and not there, a sentence each.
    pub lost: Vec<String>,
    /// Refused in words that deny their storage, and there.
    pub kept: Vec<String>,
    /// What else must not be.
    pub broken: Vec<String>,
    /// Real time.
    pub elapsed: Duration,
}

impl Outcome {
    /// Faults that were met.
    pub fn met(&self) -> u64 {
        self.faults.values().sum()
    }

    /// Nothing lost, kept or broken.
    pub fn holds(&self) -> bool {
        self.lost.is_empty() && self.kept.is_empty() && self.broken.is_empty()
    }

    /// Both together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (fault, times) in other.faults {
            *self.faults.entry(fault).or_default() += times;
        }
        self.lives += other.lives;
        self.acknowledged += other.acknowledged;
        self.denied += other.denied;
        self.unknown += other.unknown;
        self.unknown_and_stored += other.unknown_and_stored;
        self.lost.extend(other.lost);
        self.kept.extend(other.kept);
        self.broken.extend(other.broken);
        self.elapsed = self.elapsed.max(other.elapsed);
        self
    }

    /// Everything that must not be, a sentence each.
    pub fn findings(&self) -> Vec<String> {
        [&self.lost, &self.kept, &self.broken].into_iter().flatten().cloned().collect()
    }
}

/// Strikes, kills, starts again, asks and compares.
///
/// # Errors
/// When the run cannot be finished; findings are no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, FleetError> {
    let watch = Stopwatch::start();
    let home = Home::new(plan.binary.clone())?;
    let shim = SystemCallShim::compile()?;
    let relay = std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, port::free()?));
    let options = Options {
        args: relay_arguments(relay, &home)?,
        env: shim.environment(&home.path()),
        ..Options::default()
    };
    let mut run = CampaignRun {
        seeded: Seeded::new(plan.seed),
        outcome: Outcome::default(),
        asked: Vec::new(),
        next: 0,
    };
    let mut product = start(&home, &options)?;
    let mut doors = ProductDoors::open(&product, &home, relay)?;
    run.outcome.lives = 1;
    while run.outcome.met() < plan.faults && run.outcome.lives < plan.faults * LIVES_PER_FAULT {
        for _ in 0..STRIKES_PER_LIFE {
            let aim = run.draw(&RUNNING);
            shim.arm(aim)?;
            let open = run.ask(&mut doors, aim);
            run.note_strike(&shim, aim)?;
            if !product.is_running() || !open {
                break;
            }
        }
        product.kill9();
        // Some lives end before they have begun.
        if run.seeded.chance(40) {
            let aim = run.draw(&STARTING);
            shim.arm(aim)?;
            if let Ok(started) = start(&home, &options) {
                doors.renew(&started);
                run.ask(&mut doors, aim);
                started.kill9();
            }
            run.note_strike(&shim, aim)?;
            run.outcome.lives += 1;
        }
        shim.disarm()?;
        product = match start(&home, &options) {
            Ok(product) => product,
            Err(error) => {
                run.outcome.broken.push(format!("it does not start on a disk that works: {error}"));
                break;
            }
        };
        run.outcome.lives += 1;
        doors.renew(&product);
        run.judge(&mut doors)?;
    }
    run.outcome.elapsed = watch.elapsed();
    Ok(run.outcome)
}

/// Whether a call of this request was not refused in words that deny its storage.
fn may_be_stored(asked: &[AskedRequest], request: &CallerRequest) -> bool {
    let mut calls = asked.iter().filter(|asked| asked.request == *request);
    calls.any(|asked| !matches!(asked.said, CallerAnswer::Denied(_)))
}

fn start<'home>(home: &'home Home, options: &Options) -> Result<Product<'home>, FleetError> {
    Product::up(home, options).map_err(|error| FleetError::Unreadable {
        asked: "the product's start".to_owned(),
        answered: error.to_string(),
    })
}

/// Its upstream is away, so every write waits in the relay's file.
fn relay_arguments(listen: std::net::SocketAddr, home: &Home) -> Result<Vec<String>, FleetError> {
    let token = home.path().with_file_name("upstream-token");
    std::fs::write(&token, "a-token-of-an-upstream-that-is-away")?;
    Ok(vec![
        format!("--relay=http://127.0.0.1:{}/hub", port::free()?),
        format!("--relay-listen={listen}"),
        "--relay-auth-mode=relay".to_owned(),
        format!("--relay-token-file={}", token.display()),
    ])
}

/// What may be struck while callers ask: the call, the file, how many of them a round makes, and its weight.
const RUNNING: [(SystemCall, HomeFile, u64, u64); 8] = [
    (SystemCall::Write, HomeFile::Log, 160, 10),
    (SystemCall::Sync, HomeFile::Log, 24, 6),
    (SystemCall::Write, HomeFile::Data, 8, 1),
    (SystemCall::Sync, HomeFile::Data, 1, 1),
    (SystemCall::Read, HomeFile::Data, 4, 2),
    (SystemCall::Read, HomeFile::Log, 4, 1),
    (SystemCall::Size, HomeFile::Index, 1, 1),
    (SystemCall::Write, HomeFile::Other, 2, 1),
];

/// What may be struck from the start on.
const STARTING: [(SystemCall, HomeFile, u64, u64); 12] = [
    (SystemCall::Open, HomeFile::Data, 12, 2),
    (SystemCall::Open, HomeFile::Log, 8, 1),
    (SystemCall::Open, HomeFile::Index, 3, 1),
    (SystemCall::Open, HomeFile::Other, 16, 2),
    (SystemCall::Map, HomeFile::Index, 3, 2),
    (SystemCall::Size, HomeFile::Index, 3, 1),
    (SystemCall::Write, HomeFile::Index, 8, 1),
    (SystemCall::Read, HomeFile::Data, 40, 3),
    (SystemCall::Read, HomeFile::Log, 60, 3),
    (SystemCall::Write, HomeFile::Log, 60, 3),
    (SystemCall::Sync, HomeFile::Log, 8, 3),
    (SystemCall::Name, HomeFile::Other, 3, 2),
];

struct CampaignRun {
    seeded: Seeded,
    outcome: Outcome,
    /// In the life that has not been judged yet.
    asked: Vec<AskedRequest>,
    next: u64,
}

impl CampaignRun {
    fn draw(&mut self, table: &[(SystemCall, HomeFile, u64, u64)]) -> StrikePlan {
        let all = table.iter().map(|(.., weight)| weight).sum();
        let mut left = self.seeded.below(all);
        let drawn = table.iter().find(|(.., weight)| {
            let is_drawn = left < *weight;
            left = left.saturating_sub(*weight);
            is_drawn
        });
        let (call, file, most, _) = *drawn.unwrap_or(&table[0]);
        let changes =
            matches!(call, SystemCall::Write | SystemCall::Size | SystemCall::Name | SystemCall::Open);
        let strike = match self.seeded.below(10) {
            0 => StrikeError::KillBefore,
            1 => StrikeError::KillAfter,
            2 | 3 if changes => StrikeError::NoSpace { lasts: true },
            4 | 5 if changes => StrikeError::NoSpace { lasts: false },
            6 if call == SystemCall::Write => StrikeError::ShortNoSpace,
            _ => StrikeError::Error,
        };
        StrikePlan { call, file, nth: 1 + self.seeded.below(most), strike }
    }

    /// A round of requests at every door; false when a store has stopped.
    fn ask(&mut self, doors: &mut ProductDoors, aim: StrikePlan) -> bool {
        let asked = doors.ask_all(&mut self.next, &mut self.seeded, aim);
        let stopped = asked.iter().any(|asked| matches!(asked.said, CallerAnswer::Open(_)));
        self.asked.extend(asked);
        !stopped
    }

    fn note_strike(&mut self, shim: &SystemCallShim, aim: StrikePlan) -> Result<(), FleetError> {
        if shim.hits()? > 0 {
            *self.outcome.faults.entry(format!("binary: {aim}")).or_default() += 1;
        }
        Ok(shim.disarm()?)
    }

    fn judge(&mut self, doors: &mut ProductDoors) -> Result<(), FleetError> {
        let asked = std::mem::take(&mut self.asked);
        for AskedRequest { request, said, aim } in &asked {
            let is_there = doors.holds(request)?;
            match said {
                // What one life refused, the next may have been asked again.
                CallerAnswer::Denied(_) if may_be_stored(&asked, request) => self.outcome.unknown += 1,
                CallerAnswer::Stored => {
                    self.outcome.acknowledged += 1;
                    if !is_there {
                        self.outcome.lost.push(format!("acknowledged and lost: {request:?}, {aim}"));
                    }
                }
                CallerAnswer::Denied(words) => {
                    self.outcome.denied += 1;
                    if is_there {
                        self.outcome
                            .kept
                            .push(format!("refused and stored: {request:?} was told {words}, {aim}"));
                    }
                }
                CallerAnswer::Open(_) | CallerAnswer::Nothing => {
                    self.outcome.unknown += 1;
                    self.outcome.unknown_and_stored += u64::from(is_there);
                }
            }
        }
        Ok(())
    }
}
