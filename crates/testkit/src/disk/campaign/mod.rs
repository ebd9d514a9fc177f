//! Stores that live through faults of their disk, and what they said of each request compared with what they hold.
//!
//! A trial is three openings of one folder. The first is sound and is abandoned, as a kill would, so that the second finds
//! a log to recover. In the second one act fails, at the opening or while requests are committed together, and it is
//! abandoned too, at once or some requests later. The third is sound: it is asked for every request.
//!
//! Invariants:
//! - A request that was acknowledged is there; one whose refusal says that nothing was stored is not.
//! - Only a request that was told that its outcome is unknown may be either.
//! - A store that ran out of room works again once there is room, without a restart.
//! - Requests of one wave wait behind a job that holds the writer: they are one transaction.
//! - What fails is decided by a number; the same number gives the same trial, but for what two threads do at once.

mod gate;
mod rows;
mod trial;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use sqlite::fault::Disk;
use sqlite::{Bounds, Db, StorageError};

use crate::disk::{ActPlace, FaultyDisk, HoldingDisk, Repeat, Trouble, mount};

pub use gate::answer_to;
pub use rows::RowsDriver;

/// A store that can be asked.
pub trait StoreDriver: Sync {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// How many kinds of requests it knows.
    fn kinds(&self) -> u64;

    /// Opens it in `folder` as the product does, but with `bounds` and on `disk`.
    ///
    /// # Errors
    /// What the opening said.
    fn open(&self, folder: &Path, bounds: &AdjustBounds, disk: Disk) -> Result<Box<dyn OpenStore>, String>;
}

/// How a campaign changes the bounds that a store asks for.
pub type AdjustBounds = dyn Fn(Bounds) -> Bounds;

/// An answer on its way.
pub type PendingAnswer<'store> = Pin<Box<dyn Future<Output = StoreAnswer> + 'store>>;

/// A store that is open.
pub trait OpenStore {
    /// Its engine.
    fn db(&self) -> &Db;

    /// Asks; nothing happens before the answer is polled for.
    fn ask(&self, request: Request) -> PendingAnswer<'_>;

    /// Whether what the request asked for is there.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn holds(&self, request: Request) -> Result<bool, String>;
}

/// One request; its number is its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Never given twice within a folder.
    pub number: u64,
    /// Below [`StoreDriver::kinds`].
    pub kind: u64,
    /// Bytes of its body, where it has one.
    pub bytes: usize,
}

/// What a store said of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAnswer {
    /// It is stored.
    Stored,
    /// Nothing of it is stored, in these words.
    Denied(String),
    /// It may be stored or not, in these words.
    Unknown(String),
    /// The request could not be put; nothing is to be judged.
    NotPut,
}

impl StoreAnswer {
    /// What an error of the engine says of the request that it answers.
    pub fn of(error: &StorageError) -> Self {
        let words = error.to_string();
        if error.denies_storage() { Self::Denied(words) } else { Self::Unknown(words) }
    }
}

/// What is wrong with the disk on purpose, beyond the fault of the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Nothing: no finding may come.
    Nothing,
    /// Bytes of the log are held back, and dropped at a write that fails.
    DroppedBytes,
    /// A commit whose frames are whole is refused for lack of room behind them.
    FullBehindCommit,
    /// A group whose transaction SQLite rolled back goes on one by one, each in a transaction of its own.
    GroupGoesOn,
}

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    /// How many faults to inject; a control ends with its first finding.
    pub faults: u64,
    /// Decides what fails, when, and what is asked meanwhile.
    pub seed: u64,
    /// The control, if it is one.
    pub control: Control,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Faults that were met, by act and error.
    pub faults: BTreeMap<String, u64>,
    /// Trials, those whose fault was not met included.
    pub trials: u64,
    /// Requests that were acknowledged.
    pub acknowledged: u64,
    /// Requests refused in words that deny their storage.
    pub denied: u64,
    /// Requests whose outcome was said to be unknown.
    pub unknown: u64,
    /// Of these, how many were there.
    pub unknown_and_stored: u64,
    /// What must not be.
    pub findings: Vec<TrialFinding>,
}

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialFinding {
    /// What kind of promise it breaks.
    pub broken: BrokenPromise,
    /// The store, the trial, the fault and the request.
    pub sentence: String,
}

/// A promise that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BrokenPromise {
    /// Acknowledged, and not there.
    Lost,
    /// Refused with a word that denies storage, and there.
    Kept,
    /// The file contradicts itself, or does not open any more.
    Damaged,
    /// Writing stopped for lack of room.
    StoppedForRoom,
    /// A request was never answered.
    Unanswered,
}

impl Outcome {
    /// Faults that were met.
    pub fn met(&self) -> u64 {
        self.faults.values().sum()
    }

    /// How many findings are of that kind.
    pub fn count(&self, broken: BrokenPromise) -> u64 {
        self.findings.iter().filter(|finding| finding.broken == broken).count() as u64
    }

    /// Whether there is no finding.
    pub fn holds(&self) -> bool {
        self.findings.is_empty()
    }

    /// How many findings of which kind, and the first of each.
    pub fn summary(&self) -> String {
        let mut first = BTreeMap::new();
        for finding in &self.findings {
            first.entry(finding.broken).or_insert(finding);
        }
        let line = |finding: &&TrialFinding| format!("{} times {finding}", self.count(finding.broken));
        first.values().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Both together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (fault, times) in other.faults {
            *self.faults.entry(fault).or_default() += times;
        }
        self.trials += other.trials;
        self.acknowledged += other.acknowledged;
        self.denied += other.denied;
        self.unknown += other.unknown;
        self.unknown_and_stored += other.unknown_and_stored;
        self.findings.extend(other.findings);
        self
    }
}

/// Injects the faults and judges.
///
/// # Errors
/// When a sound disk does not do its part: the folder cannot be made, or a store does not open on it.
pub fn run(driver: &dyn StoreDriver, campaign: &Campaign) -> Result<Outcome, String> {
    let ground = SurveyedActs::survey(driver, campaign.control)?;
    let mut outcome = Outcome::default();
    let mut number = 0;
    let is_over = |outcome: &Outcome| {
        let found = campaign.control != Control::Nothing && !outcome.holds();
        outcome.met() >= campaign.faults || found
    };
    // A fault drawn for an act that this trial does not reach is not met; most are.
    while !is_over(&outcome) && number < campaign.faults * 4 {
        let seed = campaign.seed.wrapping_mul(1_000_003).wrapping_add(number);
        outcome = outcome.and(trial::run(driver, &ground, seed)?);
        number += 1;
    }
    Ok(outcome)
}

/// Runs one trial again, by the number that its finding named.
///
/// # Errors
/// As [`run`].
pub fn replay(driver: &dyn StoreDriver, control: Control, trial: u64) -> Result<Outcome, String> {
    trial::run(driver, &SurveyedActs::survey(driver, control)?, trial)
}

/// A disk under a trial, and the name that SQLite knows it by.
struct TrialDisk {
    faults: Arc<FaultyDisk>,
    vfs: String,
}

impl TrialDisk {
    fn new(control: Control) -> Self {
        let faults = Arc::new(FaultyDisk::default());
        let vfs = match control {
            Control::Nothing | Control::FullBehindCommit | Control::GroupGoesOn => mount(faults.clone()),
            Control::DroppedBytes => mount(Arc::new(HoldingDisk::before(Arc::clone(&faults)))),
        };
        Self { faults, vfs }
    }

    fn as_option(&self) -> Disk {
        Disk { vfs: Some(self.vfs.clone()), ..Disk::default() }
    }
}

/// What a store does on a sound disk: the acts among which a trial draws.
struct SurveyedActs {
    control: Control,
    acts: BTreeMap<trial::TrialLoad, BTreeMap<ActPlace, u64>>,
}

impl SurveyedActs {
    fn survey(driver: &dyn StoreDriver, control: Control) -> Result<Self, String> {
        let acts = trial::TrialLoad::ALL.map(|load| Ok((load, trial::survey(driver, control, load)?)));
        Ok(Self { control, acts: acts.into_iter().collect::<Result<_, String>>()? })
    }
}

/// The fault of a trial.
#[derive(Debug, Clone, Copy)]
struct PlannedFault {
    place: ActPlace,
    trouble: Trouble,
    /// Acts at the place that still pass.
    spare: u64,
    repeat: Repeat,
}

impl PlannedFault {
    /// Lack of room that ends by itself is no reason to stop. A sync that fails is, whatever it says.
    fn is_lack_of_room(self) -> bool {
        matches!(self.trouble, Trouble::NoSpace | Trouble::ShortNoSpace)
    }
}

impl fmt::Display for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.trouble, self.place)?;
        match self.repeat {
            Repeat::Once => Ok(()),
            Repeat::FromThenOn => f.write_str(" until there is room"),
        }
    }
}

impl fmt::Display for TrialFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = match self.broken {
            BrokenPromise::Lost => "acknowledged and lost",
            BrokenPromise::Kept => "refused and stored",
            BrokenPromise::Damaged => "damaged",
            BrokenPromise::StoppedForRoom => "stopped for lack of room",
            BrokenPromise::Unanswered => "never answered",
        };
        write!(f, "{broken}: {}", self.sentence)
    }
}
