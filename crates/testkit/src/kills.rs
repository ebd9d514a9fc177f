//! The whole product killed again and again while clients use it, then healed, read out and judged.
//!
//! Writers send numbered messages under their own ids and ask again, with the same id, whatever was not answered;
//! followers read every inbox along. Meanwhile the product dies at crash points or by SIGKILL at a random moment,
//! and is started again on the same home. At the end everything is read from the start.
//!
//! Invariants:
//! - Crash points are learned from the binary itself: a life that is only watched names what it reaches. A walk
//!   that no longer reaches one of the three commits is an error, not a smaller proof.
//! - Writers record what they asked and were answered, readers what they saw; the judge sees nothing else.
//! - Waiting for the end needs no quiet time: a last message in every lane, seen, says that all before it is there.

pub(crate) mod audience;
pub(crate) mod closing;
pub(crate) mod door;
mod follower;
mod judge;
mod life;
mod schedule;
mod stage;
pub(crate) mod told;
mod writer;

use crate::bin::{Binary, CliError, Home, UpError};
use crate::history::{Broken, Verdict};
use crate::stopwatch::Stopwatch;
use crate::wait::WaitedTooLong;
use schedule::Kill;
use stage::{Phase, Stage};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tempfile::TempDir;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A binary with faults.
    pub binary: Binary,
    /// How often it dies.
    pub kills: u64,
    /// Decides points, visits, moments and what writers do.
    pub seed: u64,
    /// What is wrong with the binary on purpose.
    pub planted: Planted,
}

/// A bug for the run to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// None: nothing may be found.
    Nothing,
    /// The answer that stands on this commit is given before it; something must be found.
    AnswerBefore(Commit),
}

/// The three commits of the walk that answers stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// ①: the row is in the outbox, so the caller is told `queued`.
    Outbox,
    /// ②: the message is in the ledger, so the daemon is told `accepted`.
    Ledger,
    /// ③: the row is in the inbox, so the broker is told `delivered`.
    Inbox,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Deaths by kind: the crash point's name, or [`AT_RANDOM`] and its likes.
    pub kills: BTreeMap<String, u64>,
    /// Every crash point the watched life reached.
    pub points: Vec<String>,
    /// The history's verdict.
    pub verdict: Verdict,
    /// Receipts that named a message's id and place, and that the logs do not bear out: a sentence each.
    pub gone: Vec<String>,
    /// What else must not be and the history's format cannot say: a changed text, a refusal, a row that is not done.
    pub amiss: Vec<String>,
    /// Calls that got no answer.
    pub unanswered: u64,
    /// Of these, how many were asked again with the same id.
    pub asked_again: u64,
    /// Receipts that named a message's id and place.
    pub receipts: u64,
    /// Real time, from the first start to the verdict.
    pub elapsed: Duration,
}

/// A death by SIGKILL at a moment nobody chose.
pub const AT_RANDOM: &str = "SIGKILL at random";
/// A death by SIGKILL because the armed point was not reached in time.
pub const POINT_NOT_REACHED: &str = "SIGKILL, the armed point not reached";

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum KillsError {
    /// The first start did not come up.
    #[error(transparent)]
    Up(#[from] UpError),
    /// A command gave no output.
    #[error(transparent)]
    Cli(#[from] CliError),
    /// A file of the run, or the driver.
    #[error("the run's own files: {0}")]
    Io(#[from] std::io::Error),
    /// Something did not happen in time.
    #[error(transparent)]
    Waited(#[from] WaitedTooLong),
    /// It ended, and nobody had killed it.
    #[error("the product ended by itself ({how}); it had printed:\n{printed}")]
    EndedByItself {
        /// Its exit status.
        how: String,
        /// Both streams.
        printed: String,
    },
    /// A commit of the walk was not among the points reached.
    #[error("the walk no longer reaches {0}; it reaches: {1}")]
    NotOnTheWalk(String, String),
    /// An answer without what it must hold.
    #[error("{asked}: {answered}")]
    Unreadable {
        /// The question.
        asked: String,
        /// What came.
        answered: String,
    },
}

/// Kills, heals, reads and judges.
///
/// # Errors
/// When the run cannot be finished; losses are no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, KillsError> {
    let watch = Stopwatch::start();
    let home = Home::new(plan.binary.clone())?;
    let history = TempDir::new()?;
    let stage = Stage::open(&home, history.path(), plan.seed)?;
    let ran = perform(plan, &stage)?;
    let judged = judge::judge(&stage, ran.counts)?;
    Ok(Outcome {
        kills: ran.kills,
        points: ran.points,
        verdict: judged.verdict,
        gone: judged.gone,
        amiss: judged.amiss,
        unanswered: stage.tally.unanswered(),
        asked_again: stage.tally.asked_again(),
        receipts: judged.receipts,
        elapsed: watch.elapsed(),
    })
}

impl Commit {
    /// All three, in the order of the walk.
    pub const ALL: [Self; 3] = [Self::Outbox, Self::Ledger, Self::Inbox];

    /// The writer's job that commits it.
    pub fn job(self) -> &'static str {
        match self {
            Self::Outbox => "mailbox.accept",
            Self::Ledger => "ledger.accept",
            Self::Inbox => "mailbox.record",
        }
    }

    /// Its crash points.
    pub fn points(self) -> [String; 2] {
        ["before_commit", "after_commit"].map(|moment| format!("{}.{moment}", self.job()))
    }
}

impl Planted {
    /// What the binary is told besides its crash points.
    fn faults(self) -> Vec<String> {
        match self {
            Self::Nothing => Vec::new(),
            Self::AnswerBefore(commit) => {
                let early = format!("bug:{}:{}", sqlite::fault::ANSWER_BEFORE_COMMIT, commit.job());
                match commit {
                    // The mark of receipt would bring back mail that was acknowledged too early.
                    Commit::Inbox => vec![early, "bug:daemon.mark_of_receipt_untold".to_owned()],
                    Commit::Outbox | Commit::Ledger => vec![early],
                }
            }
        }
    }
}

impl Outcome {
    /// Nothing lost, nothing doubled, nothing amiss.
    pub fn holds(&self) -> bool {
        self.verdict.holds() && self.gone.is_empty() && self.amiss.is_empty()
    }

    /// How often it died.
    pub fn deaths(&self) -> u64 {
        self.kills.values().sum()
    }

    /// How many acknowledgements were not kept: messages that a reader lacks, and receipts the logs do not bear out.
    pub fn losses(&self) -> u64 {
        let lost = self.verdict.broken.iter().filter_map(|broken| match broken {
            Broken::Lost { key, .. } => Some(key),
            _ => None,
        });
        (lost.collect::<BTreeSet<_>>().len() + self.gone.len()) as u64
    }

    /// Points that the watched life reached and at which nothing died.
    pub fn points_left_out(&self) -> Vec<&str> {
        let left_out = self.points.iter().filter(|point| !self.kills.contains_key(*point));
        left_out.map(String::as_str).collect()
    }

    /// Everything that must not be, a sentence each.
    pub fn findings(&self) -> Vec<String> {
        let others = self.gone.iter().chain(&self.amiss).cloned();
        self.verdict.broken.iter().map(ToString::to_string).chain(others).collect()
    }
}

/// What the threads leave behind.
struct Ran {
    kills: BTreeMap<String, u64>,
    points: Vec<String>,
    counts: closing::Counts,
}

fn perform(plan: &Plan, stage: &Stage<'_>) -> Result<Ran, KillsError> {
    std::thread::scope(|scope| {
        let writers: Vec<_> =
            stage.writers()?.into_iter().map(|writer| scope.spawn(|| writer.write())).collect();
        let followers: Vec<_> =
            stage.followers()?.into_iter().map(|follower| scope.spawn(|| follower.follow())).collect();
        let killed = kill_again_and_again(plan, stage);
        // Whatever stopped the killing must also stop those who wait for the next life.
        stage.enter(if killed.is_ok() { Phase::Closing } else { Phase::Over });
        let closed = killed.and_then(|(kills, points)| {
            let life = life::heal(stage)?;
            for writer in writers {
                writer.join().expect("a writer ends with an error, not with a panic")?;
            }
            let counts = closing::close(stage)?;
            Ok((Ran { kills, points, counts }, life))
        });
        stage.enter(Phase::Over);
        for follower in followers {
            let followed = follower.join().expect("a follower ends with an error, not with a panic");
            if closed.is_ok() {
                followed?;
            }
        }
        closed.map(|(ran, _life)| ran)
    })
}

type Deaths = (BTreeMap<String, u64>, Vec<String>);

fn kill_again_and_again(plan: &Plan, stage: &Stage<'_>) -> Result<Deaths, KillsError> {
    let watched = life::watch(stage)?;
    let schedule: Vec<Kill> = match plan.planted {
        Planted::Nothing => schedule::all_points(&watched, plan.kills, plan.seed)?,
        Planted::AnswerBefore(commit) => schedule::around(commit, &watched, plan.kills, plan.seed),
    };
    let mut kills = BTreeMap::new();
    for kill in &schedule {
        *kills.entry(life::kill(stage, kill, &plan.planted.faults())?).or_default() += 1;
    }
    Ok((kills, watched.points.into_keys().collect()))
}
