//! `bench broker --against REV`: the ledgers of both builds, each in a process of its own that runs this checkout's
//! rounds.

use super::postgres::{self, Statements};
use super::{Side, make_durable, redis, same_disk};
use crate::bench::against::{Build, Field, Figure, Wanted, chosen, compare};
use crate::bench::callers::with_cpu;
use crate::bench::{Against, Bar, Comparison, Measured};
use crate::build::{self, LEDGER_ROUNDS, Profile};
use anyhow::{Context, bail, ensure};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use testkit::postgres::Private as PrivatePostgres;
use testkit::redis::Private as PrivateRedis;
use tokio::runtime::Runtime;

/// Who is measured, with how many callers.
type Task = (Side, usize);

/// See the module.
pub fn against(against: &Against<'_>) -> anyhow::Result<Comparison> {
    let wanted = chosen(rows(), &against.rows)?;
    let workspace = against.request.workspace;
    let other = against.other.ledger_rounds(workspace, Profile::Dist)?;
    let this = build::in_profile(workspace, Profile::Dist, LEDGER_ROUNDS)?;
    let folder = against.request.folder()?;
    same_disk(folder.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("a runtime")?;
    let (server, cache) = (PrivatePostgres::start()?, PrivateRedis::start()?);
    make_durable(&cache)?;
    for name in ["this", "other", "peer"] {
        server.execute("postgres", &format!("CREATE DATABASE {name}")).context("a database")?;
    }
    let peer = postgres::Peer::new(&server.url_of("peer"));
    runtime.block_on(peer.prepare())?;
    let ledgers = |binary: &Path, name: &str| {
        let file = folder.path().join(name).with_extension("db");
        Ok::<_, anyhow::Error>(Ledgers {
            sqlite: LedgerProcess::start(binary, &["sqlite", &file.to_string_lossy()])?,
            postgres: LedgerProcess::start(binary, &["postgres", &server.url_of(name)])?,
        })
    };
    let (this, other) = (ledgers(&this, "this")?, ledgers(&other, "other")?);
    compare(&mut Stores { runtime, this, other, peer, cache }, &wanted, against.rounds)
}

/// B1 to B3 and C1.
fn rows() -> Vec<Wanted<Task>> {
    const MANY: usize = 64;
    const BATCH: Task = (Side::Batch, MANY);
    const REDIS: Task = (Side::RedisLua, MANY);
    const LITERAL: Task = (Side::Literal, MANY);
    const SINGLE: Task = (Side::SingleStatement, MANY);
    let row = |row, side, figure, peers| Wanted { row, side, figure, peers };
    let (many, one, postgres) = ((Side::Sqlite, MANY), (Side::Sqlite, 1), (Side::Postgres, MANY));
    vec![
        row("B1", many, Figure::Rate, &[(BATCH, Bar::AtLeast(1.8)), (REDIS, Bar::AtLeast(1.05))]),
        row("B1", many, Figure::P99, &[]),
        row("B2", one, Figure::P50, &[]),
        row("B2", one, Figure::P99, &[((Side::Batch, 1), Bar::AtMost(1.0))]),
        row("B3", postgres, Figure::Rate, &[(LITERAL, Bar::AtLeast(3.5)), (SINGLE, Bar::AtLeast(2.0))]),
        row("C1", many, Figure::Cpu, &[(REDIS, Bar::Told)]),
    ]
}

struct Stores {
    runtime: Runtime,
    this: Ledgers,
    other: Ledgers,
    peer: postgres::Peer,
    cache: PrivateRedis,
}

/// Those of one build.
struct Ledgers {
    sqlite: LedgerProcess,
    postgres: LedgerProcess,
}

impl Field for Stores {
    type Side = Task;

    fn name((side, callers): Task) -> String {
        format!("{}, {callers} callers", side.name())
    }

    fn build(&mut self, build: Build, (side, callers): Task, _: u64) -> anyhow::Result<Measured> {
        let ledgers = match build {
            Build::This => &mut self.this,
            Build::Other => &mut self.other,
        };
        let ledger = match side {
            Side::Sqlite => &mut ledgers.sqlite,
            Side::Postgres => &mut ledgers.postgres,
            _ => bail!("{side:?} is no build's"),
        };
        self.runtime.block_on(with_cpu(async { ledger.round(callers) }))
    }

    fn peer(&mut self, (side, callers): Task, _: u64) -> anyhow::Result<Measured> {
        let (peer, url) = (&self.peer, self.cache.url());
        self.runtime.block_on(async {
            match side {
                Side::RedisLua => redis::round(&url, redis::PLAIN, callers).await,
                Side::Batch => peer.batched(callers).await,
                Side::SingleStatement => peer.round(Statements::One, callers).await,
                Side::Literal => peer.round(Statements::Literal, callers).await,
                Side::Sqlite | Side::Postgres | Side::RedisFanned => bail!("{side:?} is no peer here"),
            }
        })
    }
}

/// A ledger in a process of its own; it ends with its standard input, also when this process is killed.
struct LedgerProcess {
    child: Child,
    orders: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl LedgerProcess {
    fn start(binary: &Path, words: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(binary);
        let mut child = command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| binary.display().to_string())?;
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("its answers")?).lines();
        let mut process = Self { child, orders, answers };
        let line = process.answer()?;
        ensure!(line == "ready", "{words:?}: {line}");
        Ok(process)
    }

    fn round(&mut self, callers: usize) -> anyhow::Result<Measured> {
        let orders = self.orders.as_mut().context("its orders")?;
        writeln!(orders, "{callers}").context("its orders")?;
        let line = self.answer()?;
        serde_json::from_str(&line).with_context(|| format!("a round's figures: {line}"))
    }

    fn answer(&mut self) -> anyhow::Result<String> {
        Ok(self.answers.next().context("the process with the ledger ended")??)
    }
}

impl Drop for LedgerProcess {
    fn drop(&mut self) {
        // Its orders end, and so does it.
        self.orders = None;
        let _status = self.child.wait();
    }
}
