//! `bench daemon`: what a send costs at the local door of a real daemon, for one caller and for many, beside its
//! peers; how a backlog drains; how the outbox ages.
//!
//! Every side is a process of its own behind a socket, asked by the same callers over their own connections, in
//! turn, round by round. A ratio is the median of the rounds' own ratios: what slows the machine for some seconds
//! slows both sides. While sends are measured the broker is away: what is measured is the accept.
//!
//! Each side begins with memory at hand: those who write most would else wait for what a virtual machine's host has not
//! given yet.

mod builds;
mod door;
mod growth;
mod place;
mod redis;

use super::broker::same_disk;
use super::callers::{Caller, round, runtime};
use super::engine::engine;
use super::limits::syncs;
use super::memory;
use super::peer::nats;
use super::{Bar, Measured, Request, Row, Table, measuring, median};
use anyhow::Context;
use door::Ids;
use place::Place;
use std::collections::BTreeMap;
use tokio::runtime::Runtime;

/// Odd, so that a median is a measured value.
const ROUNDS: u64 = 5;
const QUICK_ROUNDS: u64 = 1;
/// Callers and bytes of a body.
const LOADS: [(usize, usize); 4] = [(64, 256), (16, 256), (1, 256), (64, 4096)];

pub use builds::against;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Daemon,
    DaemonRandom,
    Nats,
    Redis,
    Engine,
    Sync,
}

impl Side {
    const ALL: [Side; 6] =
        [Side::Daemon, Side::DaemonRandom, Side::Nats, Side::Redis, Side::Engine, Side::Sync];

    fn name(self) -> &'static str {
        match self {
            Side::Daemon => "POST /v1/send, minted ids",
            Side::DaemonRandom => "POST /v1/send, random ids of the caller",
            Side::Nats => "NATS JetStream, sync_interval always, dedupe",
            Side::Redis => "Redis appendfsync always, Lua dedupe",
            Side::Engine => "engine in process, no socket",
            Side::Sync => "bare overwrite + fdatasync",
        }
    }

    /// Random ids and the limits are compared at some loads only.
    fn carries(self, (callers, bytes): (usize, usize)) -> bool {
        match self {
            Side::Daemon | Side::Nats | Side::Redis => true,
            Side::DaemonRandom | Side::Engine => (callers, bytes) == (64, 256),
            Side::Sync => (callers, bytes) == (1, 256),
        }
    }
}

/// Callers and bytes of a body.
type Load = (usize, usize);
type Rounds = BTreeMap<(Side, Load), Vec<Measured>>;

pub fn run(request: &Request<'_>) -> anyhow::Result<Table> {
    let runtime = runtime()?;
    let mut table = Table::default();
    same_disk(request.folder()?.path())?;
    let mut place = Place::open(request.binary()?)?;
    let nats = nats::Server::start(request);
    let redis = testkit::redis::Private::start()?;
    super::broker::make_durable(&redis)?;
    let peers = Peers { place: &place, nats: nats.as_ref().ok(), redis: &redis };
    let rounds = measure(&runtime, request, &peers)?;
    for load in LOADS {
        for side in Side::ALL {
            figures(&mut table, side, load, &rounds);
        }
    }
    if let Err(why) = &nats {
        table.push(Row::not_run(Side::Nats.name(), format!("{why:#}")));
    }
    ratios(&mut table, &rounds);
    drop(nats);
    place.drain(&mut table)?;
    drop(place);
    growth::run(&runtime, request, &mut table)?;
    Ok(table)
}

/// What is asked.
struct Peers<'run> {
    place: &'run Place,
    nats: Option<&'run nats::Server>,
    redis: &'run testkit::redis::Private,
}

/// Every side at every load, in turn.
fn measure(runtime: &Runtime, request: &Request<'_>, peers: &Peers<'_>) -> anyhow::Result<Rounds> {
    let mut rounds = Rounds::new();
    let times = if request.quick { QUICK_ROUNDS } else { ROUNDS };
    for number in 0..times {
        for load in LOADS {
            measuring(format_args!("round {} of {times}: {} callers, {} B", number + 1, load.0, load.1));
            for side in Side::ALL.into_iter().filter(|side| side.carries(load)) {
                if !request.quick {
                    memory::at_hand();
                }
                let measured = measure_one(runtime, request, peers, side, load, number);
                let measured = measured.with_context(|| format!("{}, {load:?}", side.name()))?;
                rounds.entry((side, load)).or_default().extend(measured);
            }
        }
    }
    Ok(rounds)
}

fn measure_one(
    runtime: &Runtime,
    request: &Request<'_>,
    peers: &Peers<'_>,
    side: Side,
    (callers, bytes): Load,
    number: u64,
) -> anyhow::Result<Option<Measured>> {
    let seed = number * 1_000 + bytes as u64 + callers as u64;
    Ok(Some(match side {
        Side::Daemon => runtime.block_on(peers.place.round(callers, bytes, Ids::Minted))?,
        Side::DaemonRandom => runtime.block_on(peers.place.round(callers, bytes, Ids::Random { seed }))?,
        Side::Nats => match peers.nats {
            Some(server) => runtime.block_on(server.round(callers, bytes, seed))?,
            None => return Ok(None),
        },
        Side::Redis => runtime.block_on(redis::round(&peers.redis.url(), callers, bytes, seed))?,
        Side::Engine => engine(request.folder()?.path(), callers)?,
        Side::Sync => syncs(request.folder()?.path())?,
    }))
}

fn figures(table: &mut Table, side: Side, load: Load, rounds: &Rounds) {
    let Some(measured) = rounds.get(&(side, load)) else { return };
    let middle = Measured::median(&mut measured.clone());
    let named = |what: &str| format!("{}, {} callers, {} B{what}", side.name(), load.0, load.1);
    table.push(Row::measured(named(""), middle.per_second, "/s"));
    table.push(Row::measured(named(", p50"), middle.p50_us, "µs"));
    table.push(Row::measured(named(", p99"), middle.p99_us, "µs"));
}

/// D1 to D6.
fn ratios(table: &mut Table, rounds: &Rounds) {
    let (many, some, one, large) = (LOADS[0], LOADS[1], LOADS[2], LOADS[3]);
    let rate = |measured: &Measured| measured.per_second;
    let p50 = |measured: &Measured| measured.p50_us;
    let p99 = |measured: &Measured| measured.p99_us;
    let mut put = |what: &str, this: Side, that: Side, load: Load, figure: fn(&Measured) -> f64, bar| {
        let what = format!("{what}, {} callers, {} B", load.0, load.1);
        match (rounds.get(&(this, load)), rounds.get(&(that, load))) {
            (Some(these), Some(those)) => {
                let pairs = these.iter().zip(those).map(|(this, that)| figure(this) / figure(that));
                table.push(Row::ratio(what, median(&mut pairs.collect::<Vec<_>>()), bar));
            }
            _ => table.push(Row::not_run(what, "a side is missing")),
        }
    };
    let (daemon, random) = (Side::Daemon, Side::DaemonRandom);
    put("D1 send / NATS", daemon, Side::Nats, many, rate, Bar::AtLeast(12.0));
    put("D1 send / Redis", daemon, Side::Redis, many, rate, Bar::AtLeast(1.5));
    put("D1 send / engine in process", daemon, Side::Engine, many, rate, Bar::AtLeast(0.55));
    put("D2 send, random ids / NATS", random, Side::Nats, many, rate, Bar::AtLeast(6.0));
    put("D2 send, random ids / Redis", random, Side::Redis, many, rate, Bar::AtLeast(0.75));
    put("D3 send / NATS", daemon, Side::Nats, some, rate, Bar::AtLeast(6.5));
    put("D3 send / Redis", daemon, Side::Redis, some, rate, Bar::AtLeast(1.6));
    put("D3 send / Redis, p99", daemon, Side::Redis, some, p99, Bar::AtMost(1.0));
    put("D4 send / bare sync, p50", daemon, Side::Sync, one, p50, Bar::AtMost(2.6));
    put("D4 send / Redis, p50", daemon, Side::Redis, one, p50, Bar::AtMost(1.05));
    put("D4 send / bare sync, p99", daemon, Side::Sync, one, p99, Bar::AtMost(2.5));
    put("D5 send / Redis, p99", daemon, Side::Redis, many, p99, Bar::AtMost(1.25));
    put("D6 send / NATS", daemon, Side::Nats, large, rate, Bar::AtLeast(9.0));
    put("D6 send / Redis", daemon, Side::Redis, large, rate, Bar::AtLeast(1.15));
    put("D6 send / Redis, p99", daemon, Side::Redis, large, p99, Bar::AtMost(2.0));
}
