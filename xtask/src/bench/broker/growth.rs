//! Whether many ids make an accept slower, and how much memory that takes.

use super::{Bar, Measured, Request, Row, Table, measuring, memory_mib};
use ledger_rounds::Books;
use testkit::postgres::Private;
use testkit::stopwatch::Stopwatch;
use tokio::runtime::Runtime;

/// Ids at which a ledger is small, long, and as long as the bar asks.
const SIZES: [u64; 3] = [10_000, 1_000_000, 5_000_000];
const QUICK_SIZES: [u64; 3] = [1_000, 5_000, 10_000];
const CALLERS: usize = 64;
/// Odd, so that a median is a measured value.
const ROUNDS: u64 = 3;
const QUICK_ROUNDS: u64 = 1;
/// What the growth of a file may cost.
const RATE_MIN: f64 = 0.9;
/// What the process that serves the longest may hold.
const MEMORY_MIB_MAX: f64 = 256.0;

/// A file at each size.
pub fn sqlite(runtime: &Runtime, request: &Request<'_>, table: &mut Table) -> anyhow::Result<()> {
    let folder = request.folder()?;
    let books = runtime.block_on(Books::sqlite(&folder.path().join("grown.db")))?;
    let [small, long, longest] = sizes(request);
    let mut grown = Grown::new("SQLite", books, request);
    let at_first = grown.to(runtime, small, table)?;
    grown.to(runtime, long, table)?;
    let at_last = grown.to(runtime, longest, table)?;
    let rate = format!("SQLite, {longest} ids / {small} ids");
    table.push(Row::ratio(rate, at_last / at_first, Bar::AtLeast(RATE_MIN)));
    match memory_mib() {
        Some(memory) => {
            let held = format!("memory at {longest} ids / 1 MiB");
            table.push(Row::ratio(held, memory, Bar::AtMost(MEMORY_MIB_MAX)));
        }
        None => table.push(Row::not_run("memory", "this system has no /proc/self/status")),
    }
    runtime.block_on(grown.books.close());
    Ok(())
}

/// A database at the first two sizes.
pub fn postgres(runtime: &Runtime, request: &Request<'_>, table: &mut Table) -> anyhow::Result<()> {
    let server = Private::start()?;
    let books = runtime.block_on(Books::postgres(&server.url()))?;
    let [small, long, _] = sizes(request);
    let mut grown = Grown::new("PostgreSQL", books, request);
    let at_first = grown.to(runtime, small, table)?;
    let at_last = grown.to(runtime, long, table)?;
    table.push(Row::ratio(format!("PostgreSQL, {long} ids / {small} ids"), at_last / at_first, Bar::Told));
    Ok(())
}

fn sizes(request: &Request<'_>) -> [u64; 3] {
    if request.quick { QUICK_SIZES } else { SIZES }
}

/// A ledger that is filled further and further.
struct Grown {
    name: &'static str,
    books: Books,
    ids: u64,
    rounds: u64,
}

impl Grown {
    fn new(name: &'static str, books: Books, request: &Request<'_>) -> Self {
        let rounds = if request.quick { QUICK_ROUNDS } else { ROUNDS };
        Self { name, books, ids: 0, rounds }
    }

    /// Fills up to `ids`, then measures; answers with the rate.
    fn to(&mut self, runtime: &Runtime, ids: u64, table: &mut Table) -> anyhow::Result<f64> {
        measuring(format_args!("{}: growing to {ids} ids", self.name));
        let watch = Stopwatch::start();
        runtime.block_on(self.books.fill(self.ids, ids))?;
        let filled = (ids - self.ids) as f64 / watch.elapsed().as_secs_f64();
        self.ids = ids;
        let mut rounds = Vec::new();
        for _ in 0..self.rounds {
            rounds.push(runtime.block_on(self.books.round(CALLERS))?);
        }
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
