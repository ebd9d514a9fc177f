//! Agents that take turns while they and the daemon are killed, judged by the agents' own synced logs.
//!
//! A sender keeps two agents busy. An agent notes what it was handed before it works on it, and that a turn ended
//! after it was told so. It dies at every point of a turn: before it begins, with the answer unread, inside, before
//! the end, with the end's answer unread, after it. The product dies at the commits of turns and at random moments,
//! every second time together with its agents.
//!
//! Invariants:
//! - A life of an agent knows nothing of the one before but what the local door tells.
//! - Every note is synced before the agent goes on; the judge reads the files.
//! - The judge asks the product nothing: what was processed is known by the replies the sender received.

mod agent;
mod judge;
mod sender;
mod stage;

use crate::bin::{Binary, Home, Options, Product};
use crate::kills::door::Door;
use crate::kills::{AT_RANDOM, KillsError, POINT_NOT_REACHED};
use crate::process::Channel;
use crate::refusals::{Refusals, Refused};
use crate::seeded::Seeded;
use crate::stopwatch::Stopwatch;
use stage::{Phase, Stage};
use std::collections::BTreeMap;
use std::time::Duration;
use tempfile::TempDir;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A binary with faults.
    pub binary: Binary,
    /// How often the product dies; its agents die beside it, and by themselves.
    pub kills: u64,
    /// Decides points and moments.
    pub seed: u64,
    /// What is wrong with the binary on purpose.
    pub planted: Planted,
}

/// A bug for the run to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// None: nothing may be found.
    Nothing,
    /// A turn is handed out before its commit.
    BeginUnrecorded,
    /// A rerun is handed out as if it were the first attempt.
    Unmarked,
    /// The end commits alone, its reply after it.
    ReplyApart,
    /// Messages and turns are refused and stored.
    RefusedAndStored,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Deaths by kind, of the product and of agents.
    pub deaths: BTreeMap<String, u64>,
    /// Messages the sender was told are durable.
    pub acked: u64,
    /// Turns the agents' logs hold.
    pub begun: u64,
    /// Of these, marked as reruns.
    pub reruns: u64,
    /// Replies the sender received.
    pub replies: u64,
    /// Messages interrupted once too often, as the door lists them.
    pub given_up: u64,
    /// Acknowledged and neither answered nor listed, a sentence each.
    pub lost: Vec<String>,
    /// More than one first attempt, or more than one answer, a sentence each.
    pub doubled: Vec<String>,
    /// What the sender and the agents were refused.
    pub refused: Refused,
    /// Whatever else must not be.
    pub broken: Vec<String>,
    /// Real time.
    pub elapsed: Duration,
}

/// The commits of a turn.
const JOBS: [&str; 3] = ["mailbox.turn_begin", "mailbox.turn_end", "mailbox.turn_interrupt"];
/// A point that a life of this length does not reach is not reached.
const POINT_BOUND: Duration = Duration::from_secs(10);
/// A life without an armed point lasts up to this after its start.
const LIFE_MAX_MS: u64 = 600;

/// Kills, heals, reads and judges.
///
/// # Errors
/// When the run cannot be finished; losses are no error but part of the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, KillsError> {
    let watch = Stopwatch::start();
    let (home, logs) = (Home::new(plan.binary.clone())?, TempDir::new()?);
    let stage = Stage::open(&home, logs.path())?;
    let mut outcome = std::thread::scope(|scope| {
        let agents: Vec<_> = (0..stage.agents().len())
            .map(|n| {
                scope.spawn({
                    let stage = &stage;
                    move || agent::live(stage, n, plan.seed)
                })
            })
            .collect();
        let sender = scope.spawn(|| sender::send(&stage));
        let killed = kill_again_and_again(plan, &stage);
        stage.enter(if killed.is_ok() { Phase::Closing } else { Phase::Over });
        let closed = killed.and_then(|mut deaths| {
            let life = Product::up(&home, &Options::default())?;
            let sent = sender.join().expect("the sender ends with an error, not with a panic")?;
            let closing = sender::close(&stage, &sent.acked)?;
            stage.enter(Phase::Over);
            let mut lived = Vec::new();
            for agent in agents {
                let agent = agent.join().expect("an agent ends with an error, not with a panic")?;
                for (point, times) in agent.deaths {
                    *deaths.entry(point).or_default() += times;
                }
                lived.push(agent.refusals);
            }
            life.kill9();
            let _life = Product::up(&home, &Options::default())?;
            let mut outcome = judge::judge(&stage.logs()?, &closing, deaths);
            outcome.broken.extend(sent.wrong);
            outcome.refused = refused(&stage, sent.refusals, lived)?;
            Ok(outcome)
        });
        stage.enter(Phase::Over);
        closed
    })?;
    outcome.elapsed = watch.elapsed();
    Ok(outcome)
}

/// Looks for every message and every turn that was refused.
fn refused(stage: &Stage<'_>, sent: Refusals, turns: Vec<Refusals>) -> Result<Refused, KillsError> {
    let is_there = |door: &mut Door, path: &str| Ok::<_, KillsError>(door.get(path)?.status != 404);
    let mut door = stage.door(None);
    let mut all = sent.judge(|id| is_there(&mut door, &format!("/v1/messages/{id}")))?;
    for (agent, refusals) in stage.agents().iter().zip(turns) {
        let mut door = stage.door(Some(agent));
        all.add(refusals.judge(|turn| is_there(&mut door, &format!("/v1/turns/{turn}")))?);
    }
    Ok(all)
}

impl Planted {
    fn faults(self) -> Vec<String> {
        match self {
            Self::Nothing => Vec::new(),
            Self::BeginUnrecorded => vec![format!("bug:{}:{}", sqlite::fault::ANSWER_BEFORE_COMMIT, JOBS[0])],
            Self::Unmarked => vec!["bug:mailbox.turn_unmarked".to_owned()],
            Self::ReplyApart => vec!["bug:mailbox.turn_reply_apart".to_owned()],
            Self::RefusedAndStored => {
                let refused = |job| format!("bug:{}:{job}", sqlite::fault::REFUSED_AND_STORED);
                vec![refused("mailbox.accept"), refused(JOBS[0])]
            }
        }
    }

    /// The points whose window the bug opens; all of them without one.
    fn points(self) -> Vec<String> {
        let both = |job: &str| ["before_commit", "after_commit"].map(|moment| format!("{job}.{moment}"));
        match self {
            Self::Nothing | Self::Unmarked => JOBS.into_iter().flat_map(both).collect(),
            Self::BeginUnrecorded => vec![format!("{}.before_commit", JOBS[0])],
            Self::ReplyApart => vec![format!("{}.after_commit", JOBS[1])],
            Self::RefusedAndStored => vec![format!("{}.after_commit", JOBS[0])],
        }
    }
}

impl Outcome {
    /// Nothing lost, doubled, broken, or stored although it was refused.
    pub fn holds(&self) -> bool {
        self.findings().is_empty()
    }

    /// Everything that must not be.
    pub fn findings(&self) -> Vec<String> {
        let all = self.lost.iter().chain(&self.doubled).chain(&self.broken).chain(&self.refused.stored);
        all.cloned().collect()
    }
}

fn kill_again_and_again(plan: &Plan, stage: &Stage<'_>) -> Result<BTreeMap<String, u64>, KillsError> {
    let (mut seeded, points) = (Seeded::new(plan.seed), plan.planted.points());
    let mut deaths: BTreeMap<String, u64> = BTreeMap::new();
    for n in 0..plan.kills {
        // The points in turn, each alone and with the agents; a random moment between. A planted bug shows at a point.
        let planted = plan.planted != Planted::Nothing;
        let turn = if planted { n as usize } else { n as usize / 2 };
        let point = (planted || n % 2 == 0).then(|| points[turn % points.len()].as_str());
        stage.set_mortal(planted || (turn / points.len()).is_multiple_of(2));
        *deaths.entry(die(plan, stage, point, &mut seeded)?).or_default() += 1;
    }
    stage.set_mortal(false);
    Ok(deaths)
}

fn die(
    plan: &Plan,
    stage: &Stage<'_>,
    point: Option<&str>,
    seeded: &mut Seeded,
) -> Result<String, KillsError> {
    let mut faults = plan.planted.faults();
    let bound = match point {
        Some(point) => {
            faults.push(format!("crash:{point}:{}", 1 + seeded.below(3)));
            POINT_BOUND
        }
        None => Duration::from_millis(300 + seeded.below(LIFE_MAX_MS)),
    };
    let mut process = Product::spawn(stage.home, &Options { faults, ..Options::default() })?;
    match (point, process.wait_exit(bound)) {
        (Some(point), Ok(_)) if process.text(Channel::Stderr).contains(&format!("crash at {point}")) => {
            Ok(format!("product at {point}"))
        }
        (_, Ok(status)) => Err(KillsError::EndedByItself {
            how: status.to_string(),
            printed: format!("{}{}", process.text(Channel::Stdout), process.text(Channel::Stderr)),
        }),
        (point, Err(_)) => {
            process.kill9();
            Ok(if point.is_some() { POINT_NOT_REACHED } else { AT_RANDOM }.to_owned())
        }
    }
}
