//! A number of callers, each asking again as soon as it is answered, for one round.

use super::median;
use super::table::{SCHEMA, accept, id};
use anyhow::Context;
use sqlite::rusqlite::Connection;
use sqlite::{Db, Options, StorageError};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use testkit::stopwatch::Stopwatch;

const ROUND: Duration = Duration::from_secs(1);

/// One round's figures.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
}

impl Measured {
    /// The round in the middle, by rate.
    pub fn median(rounds: &mut [Self]) -> Self {
        rounds.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
        rounds[rounds.len() / 2]
    }

    /// The middle one of the ratios of each round's rates, both in the order they were measured.
    pub fn ratio(these: &[Self], those: &[Self]) -> f64 {
        let pairs = these.iter().zip(those);
        median(&mut pairs.map(|(this, that)| this.per_second / that.per_second).collect::<Vec<_>>())
    }

    fn of(mut waits_us: Vec<u64>, round: Duration) -> Self {
        waits_us.sort_unstable();
        let rank = |hundredths: usize| waits_us[(waits_us.len() - 1) * hundredths / 100] as f64;
        let per_second = waits_us.len() as f64 / round.as_secs_f64();
        Self { per_second, p50_us: rank(50), p99_us: rank(99) }
    }
}

/// The engine on a new file.
pub fn engine(folder: &Path, callers: usize) -> anyhow::Result<Measured> {
    let db = Db::open(Options::new(folder.join("engine.db"), SCHEMA))?;
    let measured = engine_round(&db, callers, 0)?;
    db.close_blocking();
    Ok(measured)
}

/// The engine on an open file whose ids end below `first`.
pub fn engine_round(db: &Db, callers: usize, first: u64) -> anyhow::Result<Measured> {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().context("a runtime")?;
    let (waits_us, round) = runtime.block_on(async {
        let watch = Stopwatch::start();
        let mut tasks = tokio::task::JoinSet::new();
        for caller in 0..callers {
            let db = db.clone();
            tasks.spawn(async move { call(&db, watch, caller as u64, first).await });
        }
        let mut waits_us = Vec::new();
        while let Some(done) = tasks.join_next().await {
            waits_us.extend(done.context("a caller ended early")??);
        }
        Ok::<_, anyhow::Error>((waits_us, watch.elapsed()))
    })?;
    Ok(Measured::of(waits_us, round))
}

async fn call(db: &Db, watch: Stopwatch, caller: u64, first: u64) -> Result<Vec<u64>, StorageError> {
    let mut waits_us = Vec::with_capacity(1 << 14);
    let mut n = first;
    while watch.elapsed() < ROUND {
        let asked = Stopwatch::start();
        let id = id(n, caller);
        db.write("item.accept", move |conn| accept(conn, id)).await?;
        waits_us.push(asked.elapsed_us());
        n += 1;
    }
    Ok(waits_us)
}

/// What most programs do: a lock around a connection, and a transaction per call.
pub fn transaction_per_call(folder: &Path, callers: usize) -> anyhow::Result<Measured> {
    let conn = Connection::open(folder.join("single.db"))?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.execute_batch(SCHEMA.sum)?;
    let conn = &Mutex::new(conn);
    let watch = Stopwatch::start();
    let waits_us = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..callers).map(|caller| scope.spawn(move || call_alone(conn, watch, caller as u64))).collect();
        let mut waits_us = Vec::new();
        for thread in threads {
            waits_us.extend(thread.join().map_err(|_| anyhow::anyhow!("a caller panicked"))??);
        }
        Ok::<_, anyhow::Error>(waits_us)
    })?;
    Ok(Measured::of(waits_us, watch.elapsed()))
}

fn call_alone(conn: &Mutex<Connection>, watch: Stopwatch, caller: u64) -> Result<Vec<u64>, StorageError> {
    let mut waits_us = Vec::with_capacity(1 << 14);
    let mut n = 0;
    while watch.elapsed() < ROUND {
        let asked = Stopwatch::start();
        let conn = conn.lock().expect("no caller panics while it holds the connection");
        conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        accept(&conn, id(n, caller))?;
        conn.prepare_cached("COMMIT")?.execute([])?;
        drop(conn);
        waits_us.push(asked.elapsed_us());
        n += 1;
    }
    Ok(waits_us)
}
