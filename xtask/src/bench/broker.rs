//! `bench broker`: what an accept costs, for one caller and for 64, on each store and at its peers.
//!
//! An accept here is what stands between the limiter and the answer: the look-up of the id and the transaction
//! that writes id, message and 10 delivery rows, through the ledger's own doors. The peers do as much as their
//! row says, in this run, in turn, round by round. A ratio is the median of the rounds' own ratios: what slows
//! the machine for some seconds slows both sides.

mod builds;
mod growth;
mod postgres;
mod redis;

use super::{Bar, Measured, Request, Row, Table, callers, measuring, memory_mib, syncs_per_second};
use anyhow::Context;
use callers::with_cpu;
use ledger_rounds::{Books, FAN_OUT};
use postgres::Statements;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use testkit::postgres::Private as PrivatePostgres;
use testkit::redis::Private as PrivateRedis;
use tokio::runtime::Runtime;

pub(super) use builds::against;
pub(super) use redis::make_durable;

/// Odd, so that a median is a measured value.
const ROUNDS: u64 = 5;
const QUICK_ROUNDS: u64 = 1;
const CALLERS: [usize; 2] = [64, 1];

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Sqlite,
    Postgres,
    RedisLua,
    RedisFanned,
    Batch,
    SingleStatement,
    Literal,
}

impl Side {
    const ALL: [Side; 7] = [
        Side::Sqlite,
        Side::Postgres,
        Side::RedisLua,
        Side::RedisFanned,
        Side::Batch,
        Side::SingleStatement,
        Side::Literal,
    ];

    fn name(self) -> &'static str {
        match self {
            Side::Sqlite => "ledger on SQLite",
            Side::Postgres => "ledger on PostgreSQL",
            Side::RedisLua => "Redis appendfsync always, Lua dedupe, no fan-out",
            Side::RedisFanned => "Redis appendfsync always, Lua dedupe, 10 entries",
            Side::Batch => "PostgreSQL, one unnest CTE per batch, 2 connections",
            Side::SingleStatement => "PostgreSQL, one CTE per message",
            Side::Literal => "PostgreSQL, statement by statement",
        }
    }
}

type Rounds = BTreeMap<(Side, usize), Vec<Measured>>;

pub fn run(request: &Request<'_>) -> anyhow::Result<Table> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("a runtime")?;
    let mut table = Table::default();
    // First, while this process holds nothing else.
    growth::sqlite(&runtime, request, &mut table)?;
    let sync = syncs_per_second(request.folder()?.path())?;
    table.push(Row::measured("bare overwrite + fdatasync, one caller", sync, "/s"));
    let rounds = measure(&runtime, request)?;
    for callers in CALLERS {
        for side in Side::ALL {
            figures(&mut table, side, callers, &rounds);
        }
    }
    ratios(&mut table, &rounds);
    growth::postgres(&runtime, request, &mut table)?;
    Ok(table)
}

/// Every side at every number of callers, in turn.
fn measure(runtime: &Runtime, request: &Request<'_>) -> anyhow::Result<Rounds> {
    let folder = request.folder()?;
    let (server, cache) = (PrivatePostgres::start()?, PrivateRedis::start()?);
    same_disk(folder.path())?;
    let sqlite = runtime.block_on(Books::sqlite(&folder.path().join("ledger.db")))?;
    server.execute("postgres", "CREATE DATABASE ledger").context("a database")?;
    server.execute("postgres", "CREATE DATABASE peer").context("a database")?;
    let product = runtime.block_on(Books::postgres(&server.url_of("ledger")))?;
    let peer = postgres::Peer::new(&server.url_of("peer"));
    runtime.block_on(peer.prepare())?;
    redis::make_durable(&cache)?;
    let mut rounds = Rounds::new();
    let times = if request.quick { QUICK_ROUNDS } else { ROUNDS };
    for number in 0..times {
        for callers in CALLERS {
            measuring(format_args!("round {} of {times}: {callers} callers", number + 1));
            for side in Side::ALL {
                let measured = runtime.block_on(async {
                    match side {
                        Side::Sqlite => with_cpu(sqlite.round(callers)).await,
                        Side::Postgres => with_cpu(product.round(callers)).await,
                        Side::RedisLua => redis::round(&cache.url(), redis::PLAIN, callers).await,
                        Side::RedisFanned => redis::round(&cache.url(), redis::FANNED, callers).await,
                        Side::Batch => peer.batched(callers).await,
                        Side::SingleStatement => peer.round(Statements::One, callers).await,
                        Side::Literal => peer.round(Statements::Literal, callers).await,
                    }
                });
                let measured = measured.with_context(|| format!("{}, {callers} callers", side.name()))?;
                rounds.entry((side, callers)).or_default().push(measured);
            }
        }
    }
    runtime.block_on(sqlite.close());
    Ok(rounds)
}

/// The servers' files are in the temporary folder; a disk that syncs faster there would decide the ratios.
pub(super) fn same_disk(folder: &std::path::Path) -> anyhow::Result<()> {
    let device = |path: &std::path::Path| std::fs::metadata(path).map(|found| found.dev());
    let (here, there) = (device(folder)?, device(&std::env::temp_dir())?);
    anyhow::ensure!(here == there, "the build and the temporary folder are on two disks: set TMPDIR");
    Ok(())
}

fn figures(table: &mut Table, side: Side, callers: usize, rounds: &Rounds) {
    let middle = Measured::median(&mut rounds[&(side, callers)].clone());
    let named = |what: &str| format!("{}, {callers} callers{what}", side.name());
    table.push(Row::measured(named(""), middle.per_second, "/s"));
    table.push(Row::measured(named(", p50"), middle.p50_us, "µs"));
    table.push(Row::measured(named(", p99"), middle.p99_us, "µs"));
    if let Some(cpu_us) = cpu_us(&rounds[&(side, callers)]) {
        table.push(Row::measured(named(", processor time an accept"), cpu_us, "µs"));
    }
}

/// B1, B2 and B3.
fn ratios(table: &mut Table, rounds: &Rounds) {
    let mut rate = |what: &str, this, that, bar| {
        let ratio = Measured::ratio(&rounds[&(this, 64)], &rounds[&(that, 64)]);
        table.push(Row::ratio(format!("{what}, 64 callers"), ratio, bar));
    };
    rate("B1 SQLite / PostgreSQL batch", Side::Sqlite, Side::Batch, Bar::AtLeast(1.8));
    rate("B1 SQLite / Redis Lua", Side::Sqlite, Side::RedisLua, Bar::AtLeast(1.05));
    rate("B1 SQLite / Redis Lua with 10 entries", Side::Sqlite, Side::RedisFanned, Bar::Told);
    rate("B3 PostgreSQL / statement by statement", Side::Postgres, Side::Literal, Bar::AtLeast(3.5));
    rate("B3 PostgreSQL / one CTE per message", Side::Postgres, Side::SingleStatement, Bar::AtLeast(2.0));
    rate("PostgreSQL / PostgreSQL batch", Side::Postgres, Side::Batch, Bar::Told);
    let mut cost = |what: &str, this, that| {
        let both = cpu_us(&rounds[&(this, 64)]).zip(cpu_us(&rounds[&(that, 64)]));
        if let Some((this, that)) = both {
            table.push(Row::ratio(format!("processor time, {what}, 64 callers"), this / that, Bar::Told));
        }
    };
    cost("SQLite / PostgreSQL batch", Side::Sqlite, Side::Batch);
    cost("SQLite / Redis Lua with 10 entries", Side::Sqlite, Side::RedisFanned);
    cost("SQLite / Redis Lua", Side::Sqlite, Side::RedisLua);
    cost("PostgreSQL / statement by statement", Side::Postgres, Side::Literal);
    cost("PostgreSQL / one CTE per message", Side::Postgres, Side::SingleStatement);
    cost("PostgreSQL / PostgreSQL batch", Side::Postgres, Side::Batch);
    let p99 = |side| rounds[&(side, 1)].iter().map(|round: &Measured| round.p99_us);
    let mut tails: Vec<f64> =
        p99(Side::Sqlite).zip(p99(Side::Batch)).map(|(ours, theirs)| ours / theirs).collect();
    let tail = super::median(&mut tails);
    table.push(Row::ratio("B2 SQLite / PostgreSQL batch, 1 caller, p99", tail, Bar::AtMost(1.0)));
}

/// The middle of the rounds' processor times an accept. A busy machine slows rates, and those of many processes most;
/// it changes this little.
fn cpu_us(rounds: &[Measured]) -> Option<f64> {
    let mut times: Vec<f64> = rounds.iter().map(|round| round.cpu_us).collect::<Option<_>>()?;
    Some(super::median(&mut times))
}
