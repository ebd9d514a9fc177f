//! `bench engine`: what a durable one-row commit costs, for one caller and for many, and how it ages.
//!
//! Measured interleaved, round by round: the engine, a transaction per call behind a mutex on the same kind of
//! file, and the bare sync of the disk. Then growth: the same engine on a small and on a large file in turn. A
//! ratio is the median of the rounds' own ratios: what slows the machine for some seconds slows both sides.

mod callers;
mod growth;
mod table;

use super::{Bar, Measured, Request, Row, Table, median, syncs_per_second};
use callers::transaction_per_call;

pub(super) use callers::engine;

/// Odd, so that a median is a measured value.
const ROUNDS: usize = 5;
const CALLERS: [usize; 3] = [1, 16, 64];
/// The ratio that group commit owes at 64 callers.
const GROUP_COMMIT_RATIO: f64 = 6.0;

pub fn run(request: &Request<'_>) -> anyhow::Result<Table> {
    let mut syncs = Vec::new();
    let mut grouped = [const { Vec::new() }; CALLERS.len()];
    let mut single = [const { Vec::new() }; CALLERS.len()];
    for _ in 0..ROUNDS {
        syncs.push(syncs_per_second(request.folder()?.path())?);
        for (place, callers) in CALLERS.into_iter().enumerate() {
            grouped[place].push(engine(request.folder()?.path(), callers)?);
            single[place].push(transaction_per_call(request.folder()?.path(), callers)?);
        }
    }
    let sync = median(&mut syncs);
    let mut table = Table::default();
    table.push(Row::measured("bare overwrite + fdatasync, one caller", sync, "/s"));
    for (place, callers) in CALLERS.into_iter().enumerate() {
        compare(&mut table, callers, sync, &mut grouped[place], &mut single[place]);
    }
    growth::run(request, &mut table)?;
    Ok(table)
}

fn compare(table: &mut Table, callers: usize, sync: f64, grouped: &mut [Measured], single: &mut [Measured]) {
    let ratio = Measured::ratio(grouped, single);
    let (grouped, single) = (Measured::median(grouped), Measured::median(single));
    let named = |what: &str| format!("{what}, {callers} callers");
    table.push(Row::measured(named("engine"), grouped.per_second, "/s"));
    table.push(Row::measured(named("engine, p50"), grouped.p50_us, "µs"));
    table.push(Row::measured(named("engine, p99"), grouped.p99_us, "µs"));
    table.push(Row::measured(named("transaction per call"), single.per_second, "/s"));
    table.push(Row::measured(named("transaction per call, p99"), single.p99_us, "µs"));
    let bar = if callers == 64 { Bar::AtLeast(GROUP_COMMIT_RATIO) } else { Bar::Told };
    table.push(Row::ratio(named("engine / transaction per call"), ratio, bar));
    table.push(Row::ratio(named("engine / bare sync"), grouped.per_second / sync, Bar::Told));
}
