//! `bench daemon --against REV`: daemons of both builds, each joined to a mesh whose broker is away.

use super::door::Ids;
use super::place::Place;
use super::{LOADS, Load, Side, redis};
use crate::bench::against::{Build, Field, Figure, Wanted, chosen, compare};
use crate::bench::broker::{make_durable, same_disk};
use crate::bench::callers::runtime;
use crate::bench::limits::syncs;
use crate::bench::{Against, Bar, Comparison, Measured, memory};
use crate::build::{self, Profile};
use anyhow::bail;
use std::path::Path;
use tempfile::TempDir;
use testkit::bin::Binary;
use testkit::redis::Private as PrivateRedis;
use tokio::runtime::Runtime;

const MANY: Load = LOADS[0];
const SOME: Load = LOADS[1];
const ONE: Load = LOADS[2];
const LARGE: Load = LOADS[3];

type Task = (Side, Load);

/// See the module.
pub fn against(against: &Against<'_>) -> anyhow::Result<Comparison> {
    let wanted = chosen(rows(), &against.rows)?;
    let workspace = against.request.workspace;
    let other = Binary::at(against.other.product(workspace, Profile::Dist)?);
    let this = Binary::at(build::in_profile(workspace, Profile::Dist, build::PRODUCT)?);
    let folder = against.request.folder()?;
    same_disk(folder.path())?;
    let redis = PrivateRedis::start()?;
    make_durable(&redis)?;
    let (this, other) = (Place::open(this)?, Place::open(other)?);
    compare(&mut Daemons { runtime: runtime()?, this, other, redis, folder }, &wanted, against.rounds)
}

/// D1 to D6 and C1, without the ratios to NATS: those to Redis are the closer ones.
fn rows() -> Vec<Wanted<Task>> {
    const REDIS_MANY: Task = (Side::Redis, MANY);
    const REDIS_SOME: Task = (Side::Redis, SOME);
    const REDIS_ONE: Task = (Side::Redis, ONE);
    const REDIS_LARGE: Task = (Side::Redis, LARGE);
    const SYNC: Task = (Side::Sync, ONE);
    let row = |row, side, figure, peers| Wanted { row, side, figure, peers };
    let (minted, random) = (|load| (Side::Daemon, load), (Side::DaemonRandom, MANY));
    vec![
        row("D1", minted(MANY), Figure::Rate, &[(REDIS_MANY, Bar::AtLeast(1.5))]),
        row("D2", random, Figure::Rate, &[(REDIS_MANY, Bar::AtLeast(0.75))]),
        row("D2", random, Figure::P99, &[]),
        row("D3", minted(SOME), Figure::Rate, &[(REDIS_SOME, Bar::AtLeast(1.6))]),
        row("D3", minted(SOME), Figure::P99, &[(REDIS_SOME, Bar::AtMost(1.0))]),
        row("D4", minted(ONE), Figure::P50, &[(SYNC, Bar::AtMost(2.6)), (REDIS_ONE, Bar::AtMost(1.05))]),
        row("D4", minted(ONE), Figure::P99, &[(SYNC, Bar::AtMost(2.5))]),
        row("D5", minted(MANY), Figure::P99, &[(REDIS_MANY, Bar::AtMost(1.25))]),
        row("D6", minted(LARGE), Figure::Rate, &[(REDIS_LARGE, Bar::AtLeast(1.15))]),
        row("D6", minted(LARGE), Figure::P99, &[(REDIS_LARGE, Bar::AtMost(2.0))]),
        row("C1", minted(MANY), Figure::Cpu, &[(REDIS_MANY, Bar::Told)]),
    ]
}

struct Daemons {
    runtime: Runtime,
    this: Place,
    other: Place,
    redis: PrivateRedis,
    folder: TempDir,
}

impl Field for Daemons {
    type Side = Task;

    fn name((side, (callers, bytes)): Task) -> String {
        format!("{}, {callers} callers, {bytes} B", side.name())
    }

    fn build(&mut self, build: Build, task: Task, round: u64) -> anyhow::Result<Measured> {
        let place = match build {
            Build::This => &self.this,
            Build::Other => &self.other,
        };
        let (side, (callers, bytes)) = task;
        let ids = match side {
            Side::Daemon => Ids::Minted,
            Side::DaemonRandom => Ids::Random { seed: seed(task, round) },
            Side::Nats | Side::Redis | Side::Engine | Side::Sync => bail!("{side:?} is no build's"),
        };
        at_hand(bytes);
        self.runtime.block_on(place.round(callers, bytes, ids))
    }

    fn peer(&mut self, task: Task, round: u64) -> anyhow::Result<Measured> {
        let (side, (callers, bytes)) = task;
        at_hand(bytes);
        match side {
            Side::Redis => {
                let seed = seed(task, round);
                self.runtime.block_on(redis::round(&self.redis.url(), callers, bytes, seed))
            }
            Side::Sync => Ok(syncs(Path::new(self.folder.path()))?),
            Side::Daemon | Side::DaemonRandom | Side::Nats | Side::Engine => {
                bail!("{side:?} is no peer here")
            }
        }
    }
}

/// Long bodies alone write so much that they would wait for memory; touching it takes as long as a round.
fn at_hand(bytes: usize) {
    if bytes >= LARGE.1 {
        memory::at_hand();
    }
}

/// Another one for each round and load, so that no id is used twice.
fn seed((_, (callers, bytes)): Task, round: u64) -> u64 {
    round * 100_000 + bytes as u64 + callers as u64
}
