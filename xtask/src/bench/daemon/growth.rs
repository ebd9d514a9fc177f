//! D7: whether a long outbox makes a send slower, a start later, or the daemon larger.

use super::door::Ids;
use super::place::Place;
use super::{Bar, Measured, Request, Row, Table, measuring};
use sqlite::rusqlite::{Connection, OpenFlags};
use testkit::seeded::Seeded;
use testkit::stopwatch::Stopwatch;
use tokio::runtime::Runtime;

const CALLERS: usize = 64;
const BYTES: usize = 256;
/// Odd, so that a median is a measured value.
const ROUNDS: usize = 3;
const LOOKUPS: usize = 20_000;
/// Rows at which a file is small, long, and as long as the bar asks.
const SIZES: [u64; 3] = [10_000, 1_000_000, 5_000_000];
const QUICK_SIZES: [u64; 3] = [1_000, 5_000, 10_000];

/// A daemon whose outbox grows.
pub fn run(runtime: &Runtime, request: &Request<'_>, table: &mut Table) -> anyhow::Result<()> {
    let sizes = if request.quick { QUICK_SIZES } else { SIZES };
    let mut grown = Grown { place: Place::open(request.binary()?)?, rows: 0, log_mib: 0.0 };
    let small = grown.to(runtime, sizes[0], table)?;
    grown.to(runtime, sizes[1], table)?;
    let start = grown.place.restart()?;
    let what = format!("from a killed daemon with {} rows to an accepted send", sizes[1]);
    table.push(Row::measured(&what, start.as_secs_f64() * 1_000.0, "ms"));
    table.push(Row::ratio(format!("{what} / 1 s"), start.as_secs_f64(), Bar::AtMost(1.0)));
    let large = grown.to(runtime, sizes[2], table)?;
    let rate = format!("D7 {} rows / {} rows", sizes[2], sizes[0]);
    table.push(Row::ratio(rate, large / small, Bar::AtLeast(0.9)));
    match grown.place.memory_mib() {
        Some((_, peak)) => table.push(Row::ratio("D7 most memory / 1 MiB", peak, Bar::AtMost(128.0))),
        None => table.push(Row::not_run("D7 memory", "this system has no /proc")),
    }
    table.push(Row::ratio("D7 longest log seen / 1 MiB", grown.log_mib, Bar::AtMost(64.0)));
    grown.place.stop();
    let lookup_us = lookup_us(&grown.place)?;
    table.push(Row::ratio("D7 look-up by sender and id, p50 / 1 µs", lookup_us, Bar::AtMost(12.0)));
    Ok(())
}

struct Grown {
    place: Place,
    rows: u64,
    log_mib: f64,
}

impl Grown {
    /// Sends until about so many rows are there, then measures; answers with the rate.
    fn to(&mut self, runtime: &Runtime, rows: u64, table: &mut Table) -> anyhow::Result<f64> {
        measuring(format_args!("growing to {rows} rows"));
        while self.rows < rows {
            self.send(runtime)?;
        }
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push(self.send(runtime)?);
        }
        let middle = Measured::median(&mut rounds);
        let what = format!("POST /v1/send from {rows} rows on, 64 callers");
        table.push(Row::measured(&what, middle.per_second, "/s"));
        table.push(Row::measured(format!("{what}, p99"), middle.p99_us, "µs"));
        if let Some((now, _)) = self.place.memory_mib() {
            table.push(Row::measured(format!("memory of the daemon at {rows} rows"), now, "MiB"));
        }
        Ok(middle.per_second)
    }

    fn send(&mut self, runtime: &Runtime) -> anyhow::Result<Measured> {
        let watch = Stopwatch::start();
        let measured = runtime.block_on(self.place.round(CALLERS, BYTES, Ids::Minted))?;
        self.rows += (measured.per_second * watch.elapsed().as_secs_f64()) as u64;
        self.log_mib = self.log_mib.max(self.place.log_mib());
        Ok(measured)
    }
}

/// The median time to find a row by its sender and its own id, picked at random.
fn lookup_us(place: &Place) -> anyhow::Result<f64> {
    let conn = Connection::open_with_flags(place.mailbox(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let last: i64 = conn.query_row("SELECT max(seq) FROM outbox", [], |row| row.get(0))?;
    let mut by_seq =
        conn.prepare("SELECT id, sender_member_id, client_message_id FROM outbox WHERE seq >= ?1 LIMIT 1")?;
    let mut by_id = conn.prepare(
        "SELECT seq FROM outbox WHERE id = ?1 AND sender_member_id = ?2 AND client_message_id = ?3",
    )?;
    let mut dice = Seeded::new(7);
    let mut waits_ns = Vec::with_capacity(LOOKUPS);
    for _ in 0..LOOKUPS {
        let seq = 1 + i64::try_from(dice.below(u64::try_from(last)?))?;
        let key: (Vec<u8>, Vec<u8>, String) =
            by_seq.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let asked = Stopwatch::start();
        let _seq: i64 = by_id.query_row((&key.0, &key.1, &key.2), |row| row.get(0))?;
        waits_ns.push(asked.elapsed().as_nanos());
    }
    waits_ns.sort_unstable();
    Ok(waits_ns[waits_ns.len() / 2] as f64 / 1_000.0)
}
