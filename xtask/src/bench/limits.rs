//! `bench limits`: the floor under every durable figure.

use super::{Bar, Measured, Request, Row, Table, median};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use testkit::stopwatch::Stopwatch;

/// Odd, so that a median is a measured value.
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(1);
const BLOCK: [u8; 256] = [7; 256];
/// As much room as the overwriting loop cycles through.
const ROOM_BLOCKS: u64 = 4096;

/// Where the loop writes.
#[derive(Clone, Copy)]
enum Place {
    /// Inside the file: a log that restarts in place.
    Inside,
    /// Behind its end: a log that grows.
    Behind,
}

pub fn run(request: &Request<'_>) -> anyhow::Result<Table> {
    let folder = request.folder()?;
    let (mut overwrites, mut appends) = (Vec::new(), Vec::new());
    // Interleaved, so that a slow minute of the machine touches both alike.
    for _ in 0..ROUNDS {
        overwrites.push(rate(&folder.path().join("overwritten"), Place::Inside)?);
        appends.push(rate(&folder.path().join("appended"), Place::Behind)?);
    }
    let (overwrite, append) = (median(&mut overwrites), median(&mut appends));
    let mut table = Table::default();
    table.push(Row::measured("overwrite 256 B + fdatasync, one caller", overwrite, "/s"));
    table.push(Row::measured("append 256 B + fdatasync, one caller", append, "/s"));
    table.push(Row::ratio("overwrite / append", overwrite / append, Bar::Told));
    Ok(table)
}

/// How often a block of a file in `folder` can be overwritten and synced in a second, one after the other: what
/// one caller without group commit can reach at best.
pub fn syncs_per_second(folder: &Path) -> std::io::Result<f64> {
    rate(&folder.join("synced"), Place::Inside)
}

/// How long each of a round's overwrites with its sync took.
pub fn syncs(folder: &Path) -> std::io::Result<Measured> {
    let file = File::options().create(true).truncate(true).write(true).open(folder.join("synced"))?;
    file.write_all_at(&vec![0; BLOCK.len() * usize::try_from(ROOM_BLOCKS).expect("a few thousand")], 0)?;
    file.sync_all()?;
    let watch = Stopwatch::start();
    let mut waits_us = Vec::new();
    while watch.elapsed() < ROUND {
        let asked = Stopwatch::start();
        file.write_all_at(&BLOCK, waits_us.len() as u64 % ROOM_BLOCKS * BLOCK.len() as u64)?;
        file.sync_data()?;
        waits_us.push(asked.elapsed_us());
    }
    Ok(Measured::of(waits_us, watch.elapsed()))
}

fn rate(path: &Path, place: Place) -> std::io::Result<f64> {
    let file = File::options().create(true).truncate(true).write(true).open(path)?;
    if let Place::Inside = place {
        file.write_all_at(&vec![0; BLOCK.len() * usize::try_from(ROOM_BLOCKS).expect("a few thousand")], 0)?;
    }
    file.sync_all()?;
    let watch = Stopwatch::start();
    let mut written = 0_u64;
    while watch.elapsed() < ROUND {
        let block = match place {
            Place::Inside => written % ROOM_BLOCKS,
            Place::Behind => written,
        };
        file.write_all_at(&BLOCK, block * BLOCK.len() as u64)?;
        file.sync_data()?;
        written += 1;
    }
    Ok(written as f64 / watch.elapsed().as_secs_f64())
}
