//! Whether many ids make an accept slower, and how much memory that takes.

use super::books::Books;
use super::{Bar, Measured, Request, Row, Table, memory_mib};
use testkit::postgres::Private;
use testkit::stopwatch::Stopwatch;
use tokio::runtime::Runtime;

const MILLION: u64 = 1_000_000;
/// Where a file begins to be compared.
const SMALL: u64 = 10_000;
const CALLERS: usize = 64;
/// Odd, so that a median is a measured value.
const ROUNDS: u64 = 3;
/// What the growth of a file may cost.
const RATE_MIN: f64 = 0.9;
/// What the process that serves 5 M ids may hold.
const MEMORY_MIB_MAX: f64 = 256.0;

/// A file at ten thousand, one and five million ids.
pub fn sqlite(runtime: &Runtime, request: &Request<'_>, table: &mut Table) -> anyhow::Result<()> {
    let folder = request.folder()?;
    let books = runtime.block_on(Books::sqlite(&folder.path().join("grown.db")))?;
    let mut grown = Grown { name: "SQLite", books, ids: 0, first_round: 0 };
    let small = grown.to(runtime, SMALL, table)?;
    grown.to(runtime, MILLION, table)?;
    let large = grown.to(runtime, 5 * MILLION, table)?;
    table.push(Row::ratio("SQLite, 5,000,000 ids / 10,000 ids", large / small, Bar::AtLeast(RATE_MIN)));
    match memory_mib() {
        Some(memory) => {
            table.push(Row::ratio("memory at 5,000,000 ids / 1 MiB", memory, Bar::AtMost(MEMORY_MIB_MAX)));
        }
        None => table.push(Row::not_run("memory", "this system has no /proc/self/status")),
    }
    runtime.block_on(grown.books.close());
    Ok(())
}

/// A database at ten thousand and one million ids.
pub fn postgres(runtime: &Runtime, table: &mut Table) -> anyhow::Result<()> {
    let server = Private::start()?;
    let books = runtime.block_on(Books::postgres(&server.url()))?;
    let mut grown = Grown { name: "PostgreSQL", books, ids: 0, first_round: 0 };
    let small = grown.to(runtime, SMALL, table)?;
    let large = grown.to(runtime, MILLION, table)?;
    table.push(Row::ratio("PostgreSQL, 1,000,000 ids / 10,000 ids", large / small, Bar::Told));
    Ok(())
}

/// A ledger that is filled further and further.
struct Grown {
    name: &'static str,
    books: Books,
    ids: u64,
    first_round: u64,
}

impl Grown {
    /// Fills up to `ids`, then measures; answers with the rate.
    fn to(&mut self, runtime: &Runtime, ids: u64, table: &mut Table) -> anyhow::Result<f64> {
        let watch = Stopwatch::start();
        runtime.block_on(self.books.fill(self.ids, ids))?;
        let filled = (ids - self.ids) as f64 / watch.elapsed().as_secs_f64();
        self.ids = ids;
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            rounds.push(runtime.block_on(self.books.round(CALLERS, self.first_round + round))?);
        }
        self.first_round += ROUNDS;
        let middle = Measured::median(&mut rounds);
        let named = |what: &str| format!("{} from {ids} ids on, {what}", self.name);
        table.push(Row::measured(named("64 callers, 10 fan-out rows"), middle.per_second, "/s"));
        table.push(Row::measured(named("p99"), middle.p99_us, "µs"));
        table.push(Row::measured(named("filled in frames of 64 without readers"), filled, "/s"));
        if let Some(memory) = memory_mib() {
            table.push(Row::measured(named("memory of the process"), memory, "MiB"));
        }
        Ok(middle.per_second)
    }
}
