//! Whether a large file is as fast as a small one, and how much memory and log that takes.

use super::super::memory_peak_mib;
use super::callers::engine_round;
use super::table::{SCHEMA, find, id, insert};
use super::{Bar, Measured, ROUNDS, Request, Row, Table};
use sqlite::{Db, Options, StorageError};
use testkit::seeded::Seeded;
use testkit::stopwatch::Stopwatch;

const SMALL: u64 = 10_000;
const LARGE: u64 = 5_000_000;
/// Rows written by one filling job: large enough to be quick, small enough for the log.
const FILL: u64 = 10_000;
const CALLERS: usize = 64;
const LOOKUPS: usize = 20_000;
/// A file's page; the log has some bytes more for each.
const PAGE: f64 = 4096.0 + 24.0;
const MIB: f64 = 1024.0 * 1024.0;

const RATE_MIN: f64 = 0.9;
const LOOKUP_US_MAX: f64 = 12.0;
const MEMORY_MIB_MAX: f64 = 128.0;
const LOG_MIB_MAX: f64 = 64.0;

pub fn run(request: &Request<'_>, table: &mut Table) -> anyhow::Result<()> {
    let folder = request.folder()?;
    let large = Db::open(Options::new(folder.path().join("large.db"), SCHEMA))?;
    fill(&large, LARGE)?;
    let (mut small_rounds, mut large_rounds) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS as u64 {
        let small = Db::open(Options::new(folder.path().join(format!("small-{round}.db")), SCHEMA))?;
        fill(&small, SMALL)?;
        small_rounds.push(engine_round(&small, CALLERS, SMALL)?);
        small.close_blocking();
        // Each round's ids lie behind the last one's: a round cannot reach a million per caller.
        large_rounds.push(engine_round(&large, CALLERS, LARGE + round * 1_000_000)?);
    }
    let ratio = Measured::ratio(&large_rounds, &small_rounds);
    let (small, grown) = (Measured::median(&mut small_rounds), Measured::median(&mut large_rounds));
    table.push(Row::measured("engine from 10,000 rows on, 64 callers", small.per_second, "/s"));
    table.push(Row::measured("engine from 5,000,000 rows on, 64 callers", grown.per_second, "/s"));
    table.push(Row::ratio("5,000,000 rows / 10,000 rows", ratio, Bar::AtLeast(RATE_MIN)));
    push_costs(&large, table)?;
    large.close_blocking();
    Ok(())
}

fn push_costs(large: &Db, table: &mut Table) -> anyhow::Result<()> {
    let lookup_us = lookup_us(large)?;
    table.push(Row::measured("look-up by id at 5,000,000 rows, p50", lookup_us, "µs"));
    table.push(Row::ratio("look-up p50 / 1 µs", lookup_us, Bar::AtMost(LOOKUP_US_MAX)));
    let log = large.stats().wal_pages_peak as f64 * PAGE / MIB;
    table.push(Row::measured("longest log while filling and under load", log, "MiB"));
    table.push(Row::ratio("longest log / 1 MiB", log, Bar::AtMost(LOG_MIB_MAX)));
    match memory_peak_mib() {
        Some(memory) => {
            table.push(Row::measured("most memory of this process", memory, "MiB"));
            table.push(Row::ratio("memory / 1 MiB", memory, Bar::AtMost(MEMORY_MIB_MAX)));
        }
        None => table.push(Row::not_run("memory", "this system has no /proc/self/status")),
    }
    Ok(())
}

fn fill(db: &Db, rows: u64) -> Result<(), StorageError> {
    for start in (0..rows).step_by(usize::try_from(FILL).expect("a few thousand")) {
        db.write_blocking("item.fill", move |conn| {
            (start..start + FILL).try_for_each(|n| insert(conn, id(n, 0)))
        })?;
    }
    Ok(())
}

/// The median time to find a row by its id, ids picked at random, through a reader of the engine.
fn lookup_us(db: &Db) -> Result<f64, StorageError> {
    let mut waits_ns: Vec<u128> = db.read_blocking("item.find", |conn| {
        let mut dice = Seeded::new(5);
        let mut waits = Vec::with_capacity(LOOKUPS);
        for _ in 0..LOOKUPS {
            let id = id(dice.below(LARGE), 0);
            let asked = Stopwatch::start();
            let found = find(conn, id)?;
            waits.push(asked.elapsed().as_nanos());
            assert!(found.is_some(), "every id below the filled number is there");
        }
        Ok::<_, StorageError>(waits)
    })?;
    waits_ns.sort_unstable();
    Ok(waits_ns[waits_ns.len() / 2] as f64 / 1000.0)
}
