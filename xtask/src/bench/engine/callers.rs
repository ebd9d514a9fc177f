//! A number of callers, each asking again as soon as it is answered, for one round.

use super::super::Measured;
use super::table::{SCHEMA, accept, id};
use anyhow::Context;
use sqlite::rusqlite::Connection;
use sqlite::{Db, Options, StorageError};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use testkit::stopwatch::Stopwatch;

const ROUND: Duration = Duration::from_secs(1);

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
